/// Chooses the sentences of an answer. `Phrase.text(in:)` fills their values in.
///
/// - Parameter zone: of their dates, as the request names it. Nil is the plan's, and UTC for a plan without one.
extension UsageSnapshot {
    /// About the messages that are left, or nil.
    public var banner: Phrase? { banner(at: tier) }

    /// - Parameter tier: the snapshot's.
    public func banner(at tier: Tier, in zone: CivilTimeZone? = nil) -> Phrase? {
        isPast || isSilent(at: tier) ? nil : messagesPhrase(at: tier, in: zone)
    }

    /// Nearly always so: asked before anything is put together.
    @inline(__always)
    fileprivate func isSilent(at tier: Tier) -> Bool { tier == .silent && entitlement.plan.cycle.isPeriodic }

    /// As `banner`, also after the end of the period.
    fileprivate func messagesPhrase(at tier: Tier, in zone: CivilTimeZone?) -> Phrase? {
        if tier == .silent {
            return plan.isTrial ? trialPhrase(in: zone) : hasLifetimeLimit ? phrase(.lifetime) : nil
        }
        let name = entitlement.hasWindow && denialReason == nil ? allowances.tightest : .period
        if tier == .blocked, name == .period, let row = Sentence.blocked.first(where: { $0.condition(self) }) {
            return naming(phrase(row.sentence, date: expiresAt, in: zone))
        }
        if tier != .blocked {
            if name == .period, plan.isTrial { return trialPhrase(in: zone) }
            // The limit is not enforced: the user can go on.
            if allowances[name].isUsedUp { return nil }
        }
        return phrase(.about(name, tier), name, comeback(of: name), in: zone)
    }

    private func trialPhrase(in zone: CivilTimeZone?) -> Phrase {
        guard let (day, days) = trialDay, day == days, let expiresAt else { return phrase(.trial) }
        return phrase(.trialLastDay, date: expiresAt, in: zone)
    }

    /// Whether what blocks the user is the end of a trial.
    var isAboutTrial: Bool {
        guard plan.isTrial else { return false }
        return denialReason == nil || denialReason == .trialEnded || denialReason == .expired
    }

    /// About messages that were refused because fewer are left in an allowance.
    fileprivate func refusalPhrase(of requested: Int, _ name: Allowances.Name, in zone: CivilTimeZone?) -> Phrase {
        var phrase = phrase(.exceeded, name, comeback(of: name), in: zone)
        phrase.values.requested = requested
        return phrase
    }

    private func comeback(of name: Allowances.Name) -> Comeback {
        switch name {
        case .period:
            // The next period of a plan without messages has none.
            plan.allowance == 0 ? .never : availableAgainAt.map { periodEnd($0) } ?? .never
        case .window: windowAvailableAt.map { .after(seconds: $0.secondsRoundedUp(since: observedAt)) } ?? .never
        }
    }

    /// The day of a reset says little where each day has one.
    private func periodEnd(_ end: Instant) -> Comeback {
        plan.cycle == .daily ? .after(seconds: end.secondsRoundedUp(since: observedAt)) : .on(end)
    }

    /// Whether a sentence may say "this month": the month of the answer and the period end at the same instant, in the
    /// time zone of the sentence.
    private func endsWithThisMonth(in zone: CivilTimeZone?) -> Bool {
        guard plan.cycle == .monthly else { return false }
        guard let resetsAt else { return true }
        let zone = zone ?? plan.civilTimeZone
        let end = CivilTime(resetsAt, in: zone)
        guard end.secondsSinceMidnight == 0, end.date.day == 1 else { return false }
        let now = CivilTime(observedAt, in: zone).date
        return (end.date.year * 12 + end.date.month) - (now.year * 12 + now.month) == 1
    }

    /// About the subscription, or nil.
    public var notice: Phrase? { notice() }

    public func notice(in zone: CivilTimeZone? = nil) -> Phrase? {
        if isPast { return nil }
        return switch state {
        // A store may report the cancellation before its date. The sentence needs the date.
        case .cancelled: expiresAt.map { phrase(.cancelled, date: $0, in: zone) }
        case .gracePeriod: phrase(expiresAt == nil ? .billingIssueUndated : .billingIssue, date: expiresAt, in: zone)
        case .billingRetry: phrase(.billingRetry)
        case .trial where renews == false && denialReason == nil:
            expiresAt.map { phrase(.cancelledTrial, date: $0, in: zone) }
        case .trial, .active, .expired, .revoked, .free: nil
        }
    }

    /// What the user does about a billing issue, or nil.
    public var steps: Phrase? {
        let hasIssue = state == .gracePeriod || state == .billingRetry
        return hasIssue && !isPast ? phrase(.billingIssueSteps) : nil
    }

    /// The state's label for users.
    public var stateLabel: Phrase {
        switch state {
        case .active: phrase(.stateActive)
        case .trial: phrase(.stateTrial)
        case .cancelled: phrase(.stateCancelled)
        case .gracePeriod, .billingRetry: phrase(.stateBillingIssue)
        case .expired: phrase(.stateExpired)
        case .revoked: phrase(.stateRefunded)
        case .free: phrase(.stateFree)
        }
    }

    /// The plan's label for users: "Premium", or "Trial — Day 2 of 3".
    public func label(in vocabulary: Vocabulary) -> String {
        guard let trialDay else { return plan.label }
        var label = naming(phrase(.labelTrial))
        (label.values.day, label.values.days) = trialDay
        return label.text(in: vocabulary)
    }

    /// In English, as it is shipped.
    public var label: String { label(in: Words.shipped.standard) }

    /// The usage as a sentence, for a screen reader.
    public var accessible: Phrase { accessible() }

    public func accessible(in zone: CivilTimeZone? = nil) -> Phrase {
        if plan.isTrial { return phrase(.accessibleTrial) }
        if plan.cycle.isPeriodic, isPast {
            return naming(phrase(limit == nil ? .accessiblePastUnlimited : .accessiblePast))
        }
        let end = plan.cycle.isPeriodic ? resetsAt.map { periodEnd($0) } : nil
        return phrase(limit == nil ? .accessibleUnlimited : .accessible, .period, end ?? .never, in: zone)
    }

    /// With the plan and the period.
    private func naming(_ phrase: Phrase) -> Phrase {
        var phrase = phrase
        phrase.values.entitlement = entitlement
        return phrase
    }

    private func phrase(
        _ sentences: TimedSentences,
        _ name: Allowances.Name,
        _ comeback: Comeback,
        in zone: CivilTimeZone?
    ) -> Phrase {
        let sentence = sentences.sentence(comeback, endsWithMonth: endsWithThisMonth(in: zone))
        var date: Instant?
        if case .on(let instant) = comeback { date = instant }
        var phrase = phrase(sentence, about: name, date: date, in: zone)
        if case .after(let seconds) = comeback { phrase.values.waitSeconds = seconds }
        return phrase
    }

    private func phrase(
        _ sentence: Sentence,
        about name: Allowances.Name = .period,
        date: Instant? = nil,
        in zone: CivilTimeZone? = nil
    ) -> Phrase {
        var phrase = Phrase(sentence)
        phrase.values.allowance = name == .period ? allowances.period : allowances[name]
        if let date {
            let zone = zone ?? plan.civilTimeZone
            let day = CivilTime(date, in: zone).date
            phrase.values.date = day
            phrase.values.isInOtherYear = day.year != CivilTime(observedAt, in: zone).date.year
        }
        return phrase
    }
}

extension Answer {
    /// About the messages that are left, or nil. A refusal always has one.
    ///
    /// - Parameters:
    ///   - tier: the snapshot's.
    ///   - zone: of dates, as the request names it. Nil is the plan's, and UTC for a plan without one.
    public func banner(at tier: Tier, in zone: CivilTimeZone? = nil) -> Phrase? {
        guard case .blocked(let reason) = status else {
            return snapshot.isSilent(at: tier) ? nil : snapshot.banner(at: tier, in: zone)
        }
        if let name = reason.exceeded { return snapshot.refusalPhrase(of: requested, name, in: zone) }
        return snapshot.messagesPhrase(at: tier, in: zone)
    }

    public var banner: Phrase? { banner(at: snapshot.tier) }
}
