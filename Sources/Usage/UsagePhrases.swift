/// Chooses the sentences of an answer. `Phrase.text(in:)` fills their values in.
extension UsageSnapshot {
    /// About the messages that are left, or nil.
    public var banner: Phrase? { banner(at: tier) }

    /// - Parameter tier: the snapshot's.
    public func banner(at tier: Tier) -> Phrase? {
        if isPast { return nil }
        if entitlement.hasWindow, denialReason == nil, tier != .silent, allowances.tightest == .window {
            return windowBanner(tier)
        }
        return switch tier {
        case .blocked: blockedBanner
        case _ where plan.isTrial: phrase(.trial)
        case .silent: hasLifetimeLimit ? phrase(.lifetime) : nil
        case .gentle: gentleBanner
        // The limit is not enforced: the user can go on.
        case .prominent where allowances.period.isUsedUp: nil
        case .prominent: phrase(.prominent, date: availableAgainOn, orWithoutDate: .prominentUndated)
        }
    }

    /// About the window, which is fuller than the period.
    private func windowBanner(_ tier: Tier) -> Phrase? {
        guard let window = allowances.window else { return nil }
        // The limit is not enforced: the user can go on.
        if window.isUsedUp, tier != .blocked { return nil }
        let dated: Sentence = tier == .blocked ? .blockedWindow : .window
        let undated: Sentence =
            switch tier {
            case .blocked: .blockedUndated
            case .prominent: .prominentUndated
            case .gentle, .silent: .gentleLifetime
            }
        var phrase = Phrase(windowAvailableAt == nil ? undated : dated)
        phrase.values.allowance = window
        phrase.values.waitSeconds = windowAvailableAt?.secondsRoundedUp(since: observedAt)
        return phrase
    }

    private var gentleBanner: Phrase {
        switch plan.cycle {
        case .monthly where entitlement.isCalendarMonth: phrase(.gentle)
        case .monthly, .weekly, .daily: phrase(.gentleUntil, date: availableAgainOn, orWithoutDate: .gentleLifetime)
        // Such an allowance has no period.
        case .trial, .lifetime: phrase(.gentleLifetime)
        }
    }

    private var blockedBanner: Phrase {
        if plan.isTrial && (denialReason == nil || denialReason == .trialEnded) {
            return phrase(allowances.period.isUsedUp ? .blockedTrial : .blockedTrialEnded)
        }
        if denialReason == nil, entitlement.isCalendarMonth {
            return phrase(.blockedMonthly, date: availableAgainOn, orWithoutDate: .blockedMonthlyUndated)
        }
        if denialReason == nil, plan.cycle.isPeriodic {
            return phrase(.blockedUntil, date: availableAgainOn, orWithoutDate: .blockedUndated)
        }
        let hasNeverSubscribed = (state == .free || denialReason == .noSubscription) && previousPlan == nil
        return phrase(hasNeverSubscribed ? .blockedNeverSubscribed : .blockedNoAccess)
    }

    /// About the subscription, or nil.
    public var notice: Phrase? {
        if isPast { return nil }
        return switch state {
        // A store may report the cancellation before its date. The sentence needs the date.
        case .cancelled: expiresAt.map { phrase(.cancelled, date: $0) }
        case .gracePeriod: phrase(.billingIssue, date: expiresAt, orWithoutDate: .billingIssueUndated)
        case .billingRetry: phrase(.billingRetry)
        case .trial where renews == false && denialReason == nil: expiresAt.map { phrase(.cancelledTrial, date: $0) }
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
        var label = phrase(.labelTrial)
        label.values.entitlement = entitlement
        (label.values.day, label.values.days) = trialDay
        return label.text(in: vocabulary)
    }

    /// In English, as it is shipped.
    public var label: String { label(in: Words.shipped.standard) }

    /// The usage as a sentence, for a screen reader.
    public var accessible: Phrase {
        switch plan.cycle {
        case _ where plan.cycle.isPeriodic && isPast:
            pastPeriod(limit == nil ? .accessiblePastUnlimited : .accessiblePast)
        case .monthly where entitlement.isCalendarMonth:
            phrase(limit == nil ? .accessibleMonthlyUnlimited : .accessibleMonthly)
        case .monthly, .weekly, .daily:
            phrase(limit == nil ? .accessibleUntilUnlimited : .accessibleUntil, date: resetsOn)
        case .trial: phrase(.accessibleTrial)
        case .lifetime: phrase(limit == nil ? .accessibleLifetimeUnlimited : .accessibleLifetime)
        }
    }

    /// The day of the reset as sentences say it. The plan's time zone counts for a week or a day: in UTC, its midnight
    /// may be on another day.
    private var resetsOn: Instant? {
        plan.cycle == .monthly ? resetsAt : period.nextDay.map { Instant($0) } ?? resetsAt
    }

    private var availableAgainOn: Instant? { availableAgainAt == nil ? nil : resetsOn }

    private func pastPeriod(_ sentence: Sentence) -> Phrase {
        var phrase = phrase(sentence)
        phrase.values.entitlement = entitlement
        return phrase
    }

    private func phrase(_ sentence: Sentence, date: Instant?, orWithoutDate undated: Sentence) -> Phrase {
        date.map { phrase(sentence, date: $0) } ?? phrase(undated)
    }

    /// With the values of the period's allowance.
    private func phrase(_ sentence: Sentence, date: Instant? = nil) -> Phrase {
        var phrase = Phrase(sentence)
        phrase.values.allowance = allowances.period
        phrase.values.date = date
        return phrase
    }
}
