/// When messages come back, as sentences say it.
enum Comeback {
    case on(Instant)
    case after(seconds: Int64)
    /// They do not, or not for this user.
    case never
}

/// The sentences of one situation: each says in another way when messages come back.
struct TimedSentences {
    let dated: Sentence
    let waiting: Sentence
    let undated: Sentence
    /// Those instead of `dated` and `undated` where the period ends with this month; nil: no sentence names the month.
    var thisMonth: (dated: Sentence, undated: Sentence)?

    /// - Parameter endsWithMonth: whether the period ends with this month.
    func sentence(_ comeback: Comeback, endsWithMonth: @autoclosure () -> Bool) -> Sentence {
        let isThisMonth = thisMonth != nil && endsWithMonth()
        switch comeback {
        case .on: return isThisMonth ? thisMonth?.dated ?? dated : dated
        case .after: return waiting
        case .never: return isThisMonth ? thisMonth?.undated ?? undated : undated
        }
    }

    static let gentle = TimedSentences(
        dated: .gentleUntil,
        waiting: .gentleWait,
        undated: .gentleLifetime,
        thisMonth: (.gentle, .gentle)
    )
    static let prominent = TimedSentences(dated: .prominent, waiting: .prominentWait, undated: .prominentUndated)
    static let usedUp = TimedSentences(
        dated: .blockedUntil,
        waiting: .blockedWait,
        undated: .blockedUndated,
        thisMonth: (.blockedMonthly, .blockedMonthlyUndated)
    )
    static let exceeded = TimedSentences(dated: .exceedsUntil, waiting: .exceedsWait, undated: .exceedsUndated)
    static let accessible = TimedSentences(
        dated: .accessibleUntil,
        waiting: .accessibleWait,
        undated: .accessibleLifetime,
        thisMonth: (.accessibleMonthly, .accessibleMonthly)
    )
    static let accessibleUnlimited = TimedSentences(
        dated: .accessibleUntilUnlimited,
        waiting: .accessibleWaitUnlimited,
        undated: .accessibleLifetimeUnlimited,
        thisMonth: (.accessibleMonthlyUnlimited, .accessibleMonthlyUnlimited)
    )

    /// About an allowance of which some messages are left, or which is used up.
    ///
    /// - Parameter tier: not silent.
    static func about(_ name: Allowances.Name, _ tier: Tier) -> TimedSentences {
        switch (name, tier) {
        case (.period, .silent), (.period, .gentle): gentle
        case (.period, .prominent): prominent
        case (.period, .blocked): usedUp
        case (.window, .silent), (.window, .gentle): gentleWindow
        case (.window, .prominent): prominentWindow
        case (.window, .blocked): usedUpWindow
        }
    }

    // A window has no date.
    private static let gentleWindow = TimedSentences(dated: .gentleUntil, waiting: .window, undated: .gentleLifetime)
    private static let prominentWindow = TimedSentences(dated: .prominent, waiting: .window, undated: .prominentUndated)
    private static let usedUpWindow = TimedSentences(
        dated: .blockedUntil,
        waiting: .blockedWindow,
        undated: .blockedUndated
    )
}

extension Sentence {
    /// For a user who may send nothing, unless waiting helps: the first sentence whose condition holds.
    static let blocked: [(sentence: Sentence, condition: @Sendable (UsageSnapshot) -> Bool)] = [
        (.blockedRefunded, { $0.denialReason == .revoked }),
        (.blockedBillingRetry, { $0.denialReason == .billingRetry }),
        (.blockedTrial, { $0.isAboutTrial && $0.allowances.period.isUsedUp }),
        (.blockedTrialEnded, { $0.isAboutTrial }),
        // Not one of a store: an operator has set its end, of a gift for example. The user has cancelled nothing.
        (.blockedEnded, { $0.denialReason == .expired && $0.renews == nil && $0.expiresAt != nil }),
        (.blockedNeverSubscribed, { $0.accessDenialReason == .noSubscription && $0.previousPlan == nil }),
        (.blockedNoAccess, { $0.accessDenialReason != nil }),
        (.blockedLifetime, { $0.plan.cycle == .lifetime }),
        // The next period has none either, or nothing was said in this one.
        (.blockedNoMessages, { $0.limit == 0 && ($0.plan.allowance == 0 || $0.used == 0) }),
    ]
}
