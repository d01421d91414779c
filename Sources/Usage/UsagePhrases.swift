/// Chooses the sentences of an answer; `Phrase.text(in:)` fills their values in. `zone` is the time zone of dates that
/// the request names; nil means the plan's, and UTC for a plan without one.
extension UsageSnapshot {
    /// The sentence about the messages that are left, or nil.
    public var banner: Phrase? { banner(at: tier) }

    /// - Parameter tier: the snapshot's tier.
    func banner(at tier: Tier, in zone: CivilTimeZone? = nil) -> Phrase? {
        isPast || isSilent(at: tier) ? nil : messagesPhrase(at: tier, in: zone)
    }

    /// Most answers are silent, so this is checked before a phrase is made.
    @inline(__always)
    fileprivate func isSilent(at tier: Tier) -> Bool { tier == .silent && entitlement.plan.cycle.isPeriodic }

    /// Returns the same phrase as `banner`, also after the end of the period.
    fileprivate func messagesPhrase(at tier: Tier, in zone: CivilTimeZone?) -> Phrase? {
        if tier == .silent {
            return plan.isTrial ? trialPhrase(in: zone) : hasLifetimeLimit ? phrase(.lifetime) : nil
        }
        let allowance = denialReason == nil ? allowances.fullest : allowances.period
        if tier == .blocked, allowance.name == .period, let sentence = blockedSentence {
            return naming(phrase(sentence, date: expiresAt, in: zone))
        }
        if tier != .blocked {
            if allowance.name == .period, plan.isTrial { return trialPhrase(in: zone) }
            // The plan is unenforced, so the user can go on.
            if allowance.isUsedUp { return nil }
        }
        var phrase = phrase(.about(allowance, tier), allowance, comeback(of: allowance), in: zone)
        if allowance.name == .model { phrase.values.modelLabel = parts.first { $0.part.kind == .model }?.label }
        return phrase
    }

    private func trialPhrase(in zone: CivilTimeZone?) -> Phrase {
        guard let (day, days) = trialDay, day == days, let expiresAt else { return phrase(.trial) }
        return phrase(.trialLastDay, date: expiresAt, in: zone)
    }

    /// The sentence for a user who may send nothing and for whom waiting does not help.
    private var blockedSentence: Sentence? {
        if denialReason == .revoked { return .blockedRefunded }
        if denialReason == .billingRetry { return .blockedBillingRetry }
        if plan.isTrial, denialReason == nil || denialReason == .trialEnded || denialReason == .expired {
            return allowances.period.isUsedUp ? .blockedTrial : .blockedTrialEnded
        }
        // It does not come from a store: an operator has set its end, of a gift for example. The user has cancelled
        // nothing.
        if denialReason == .expired, renews == nil, expiresAt != nil { return .blockedEnded }
        if let reason = accessDenialReason {
            return reason == .noSubscription && previousPlan == nil ? .blockedNeverSubscribed : .blockedNoAccess
        }
        if plan.cycle == .lifetime { return .blockedLifetime }
        // The next period has no messages either, or none was sent in this one.
        return limit == 0 && (plan.allowance == 0 || used == 0) ? .blockedNoMessages : nil
    }

    /// Returns the sentence about messages that were refused because fewer are left in an allowance.
    fileprivate func refusalPhrase(of requested: Int, in zone: CivilTimeZone?) -> Phrase {
        let allowance = allowances.refusing(requested) ?? allowances.period
        var phrase = phrase(.exceeded, allowance, comeback(of: allowance), in: zone)
        phrase.values.requested = requested * allowance.weight
        return phrase
    }

    private func comeback(of allowance: Allowance) -> Comeback {
        // The next period of a plan without messages has none.
        guard allowance.renewedLimit != 0, let availableAt = availableAgainAt(allowance) else { return .never }
        return allowance.windowSeconds == nil ? reset : .after(seconds: availableAt.secondsRoundedUp(since: observedAt))
    }

    private var reset: Comeback {
        guard let resetsAt else { return .never }
        // The date of a reset says little if each day has one.
        return plan.cycle == .daily ? .after(seconds: resetsAt.secondsRoundedUp(since: observedAt)) : .atReset
    }

    /// The sentence about the subscription, or nil.
    public var notice: Phrase? { notice() }

    func notice(in zone: CivilTimeZone? = nil) -> Phrase? {
        noticeSentence.map { phrase($0, date: expiresAt, in: zone) }
    }

    private var noticeSentence: Sentence? {
        if isPast { return nil }
        return switch state {
        // A store may report the cancellation before its date. The sentence needs the date.
        case .cancelled: expiresAt == nil ? nil : .cancelled
        case .gracePeriod: expiresAt == nil ? .billingIssueUndated : .billingIssue
        case .billingRetry: .billingRetry
        case .trial where renews == false && denialReason == nil: expiresAt == nil ? nil : .cancelledTrial
        case .trial, .active, .expired, .revoked, .free: nil
        }
    }

    /// The sentence about what the user can do about a billing issue, or nil.
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

    /// The label in English as it is shipped.
    public var label: String { label(in: Words.shipped.standard) }

    /// The usage as a sentence, for a screen reader.
    public var accessible: Phrase { accessible() }

    func accessible(in zone: CivilTimeZone? = nil) -> Phrase {
        if plan.isTrial { return phrase(.accessibleTrial) }
        if plan.cycle.isPeriodic, isPast {
            return naming(phrase(limit == nil ? .accessiblePastUnlimited : .accessiblePast))
        }
        // Without access, the present period is not one of the user's, so its end means nothing.
        let comeback = plan.cycle.isPeriodic && denialReason == nil ? reset : .never
        return phrase(limit == nil ? .accessibleUnlimited : .accessible, allowances.period, comeback, in: zone)
    }

    /// Adds the plan and the period to a phrase.
    private func naming(_ phrase: Phrase) -> Phrase {
        var phrase = phrase
        phrase.values.entitlement = entitlement
        return phrase
    }

    private func phrase(
        _ sentences: TimedSentences,
        _ allowance: Allowance,
        _ comeback: Comeback,
        in zone: CivilTimeZone?
    ) -> Phrase {
        if case .after(let seconds) = comeback {
            var phrase = phrase(sentences.waiting, about: allowance)
            phrase.values.waitSeconds = seconds
            return phrase
        }
        let end = resetsAt.map { relativeDate($0, in: zone) }
        let isThisMonth = plan.cycle == .monthly && end?.endsThisMonth ?? true
        guard case .atReset = comeback else {
            return phrase(isThisMonth ? sentences.undatedThisMonth : sentences.undated, about: allowance)
        }
        var phrase = phrase(isThisMonth ? sentences.datedThisMonth : sentences.dated, about: allowance)
        phrase.values.date = end
        return phrase
    }

    private func phrase(
        _ sentence: Sentence,
        about allowance: Allowance? = nil,
        date: Instant? = nil,
        in zone: CivilTimeZone? = nil
    ) -> Phrase {
        var phrase = Phrase(sentence)
        phrase.values.allowance = allowance ?? allowances.period
        phrase.values.date = date.map { relativeDate($0, in: zone) }
        return phrase
    }

    private func relativeDate(_ instant: Instant, in zone: CivilTimeZone?) -> RelativeDate {
        RelativeDate(instant, observedAt: observedAt, in: zone ?? plan.civilTimeZone)
    }
}

extension Answer {
    /// The sentence about the messages that are left, or nil. A refusal always has one.
    ///
    /// - Parameters:
    ///   - tier: the snapshot's tier.
    ///   - zone: the time zone of dates that the request names. Nil is the plan's, and UTC for a plan without one.
    @inline(__always)
    func banner(at tier: Tier, in zone: CivilTimeZone? = nil) -> Phrase? {
        guard case .blocked(let reason) = status else {
            return snapshot.isSilent(at: tier) ? nil : snapshot.banner(at: tier, in: zone)
        }
        if reason.isExceeded { return snapshot.refusalPhrase(of: requested, in: zone) }
        return snapshot.messagesPhrase(at: tier, in: zone)
    }

    public var banner: Phrase? { banner(at: snapshot.tier) }
}

/// The texts for a request, in its language and with dates in its time zone.
extension UsageSnapshot {
    public func notice(in vocabulary: Vocabulary) -> String? {
        // Most snapshots have no notice, so the sentence is looked for first.
        noticeSentence.map { phrase($0, date: expiresAt, in: vocabulary.timeZone).text(in: vocabulary) }
    }

    public func accessible(in vocabulary: Vocabulary) -> String {
        accessible(in: vocabulary.timeZone).text(in: vocabulary)
    }
}

extension Answer {
    /// - Parameters:
    ///   - tier: the snapshot's tier.
    ///   - fallback: the model to offer, in a sentence of its own.
    public func banner(at tier: Tier, _ fallback: PartUsage.Fallback?, in vocabulary: Vocabulary) -> String? {
        guard let banner = banner(at: tier, in: vocabulary.timeZone)?.text(in: vocabulary) else { return nil }
        guard let fallback else { return banner }
        var offer = Phrase(.fallback)
        (offer.values.banner, offer.values.fallback) = (banner, fallback.label)
        return offer.text(in: vocabulary)
    }
}
