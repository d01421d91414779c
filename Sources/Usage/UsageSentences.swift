extension UsageSnapshot {
    /// The sentence about the messages that are left, or nil.
    public var banner: String? {
        if isPast { return nil }
        return switch tier {
        case .blocked: blockedBanner
        case _ where plan.isTrial: Sentence.trial.filled(from: self)
        case .silent: hasLifetimeLimit ? Sentence.lifetime.filled(from: self) : nil
        // A lifetime allowance does not belong to a month.
        case .gentle: (plan.cycle == .monthly ? Sentence.gentle : .gentleLifetime).filled(from: self)
        case .prominent:
            availableAgainAt.map { Sentence.prominent.filled(from: self, date: $0) }
                ?? Sentence.prominentUndated.filled(from: self)
        }
    }

    private var blockedBanner: String {
        if plan.isTrial && (denialReason == nil || denialReason == .trialEnded) {
            let hasMessagesLeft = limit.map { used + held < $0 } ?? true
            return (hasMessagesLeft ? Sentence.blockedTrialEnded : .blockedTrial).filled(from: self)
        }
        if denialReason == nil, plan.cycle == .monthly {
            return availableAgainAt.map { Sentence.blockedMonthly.filled(from: self, date: $0) }
                ?? Sentence.blockedMonthlyUndated.filled(from: self)
        }
        let hasNeverSubscribed = state == .free && previousPlan == nil
        return (hasNeverSubscribed ? Sentence.blockedNeverSubscribed : .blockedNoAccess).filled(from: self)
    }

    /// The sentence about the subscription, or nil.
    public var notice: String? {
        if isPast { return nil }
        return switch state {
        // A store may report the cancellation before its date. The sentence needs the date.
        case .cancelled: expiresAt.map { Sentence.cancelled.filled(from: self, date: $0) }
        case .gracePeriod:
            expiresAt.map { Sentence.billingIssue.filled(from: self, date: $0) }
                ?? Sentence.billingIssueUndated.filled(from: self)
        case .billingRetry: Sentence.billingRetry.filled(from: self)
        case .trial where renews == false && denialReason == nil:
            expiresAt.map { Sentence.cancelledTrial.filled(from: self, date: $0) }
        case .trial, .active, .expired, .revoked, .free: nil
        }
    }

    /// What the user does about a billing issue, or nil.
    public var steps: String? {
        let hasIssue = state == .gracePeriod || state == .billingRetry
        return hasIssue && !isPast ? Sentence.billingIssueSteps.filled(from: self) : nil
    }

    /// The state's label for users.
    public var stateLabel: String {
        let sentence: Sentence =
            switch state {
            case .active: .stateActive
            case .trial: .stateTrial
            case .cancelled: .stateCancelled
            case .gracePeriod, .billingRetry: .stateBillingIssue
            case .expired: .stateExpired
            case .revoked: .stateRefunded
            case .free: .stateFree
            }
        return sentence.filled(from: self)
    }

    /// The plan's label for users: "Premium", or "Trial — Day 2 of 3".
    public var label: String {
        plan.isTrial ? Sentence.labelTrial.filled(from: self) : plan.label
    }

    /// The usage as a sentence, for a screen reader.
    public var accessible: String {
        let sentence: Sentence =
            switch plan.cycle {
            case .monthly where isPast: limit == nil ? .accessiblePastUnlimited : .accessiblePast
            case .monthly: limit == nil ? .accessibleMonthlyUnlimited : .accessibleMonthly
            case .trial: .accessibleTrial
            case .lifetime: limit == nil ? .accessibleLifetimeUnlimited : .accessibleLifetime
            }
        return sentence.filled(from: self)
    }
}
