/// How close a user is to the limit, and so how much the product says about it.
public enum Tier: String, Sendable, Comparable, CaseIterable {
    case silent, gentle, prominent, blocked

    /// The arithmetic is exact and uses integers, so that 639 of 800 is silent and 640 is not, however a division
    /// rounds.
    ///
    /// - Parameters:
    ///   - used: messages counted or held.
    ///   - limit: messages allowed; nil is unlimited and always silent. A limit that is 0 or used up is blocked, unless
    ///     the plan is unenforced.
    public init(used: Int, limit: Int?, plan: borrowing Plan) {
        guard let limit else {
            self = .silent
            return
        }
        if used >= limit, plan.isEnforced {
            self = .blocked
        } else if used * 100 >= limit * plan.prominentPercent {
            self = .prominent
        } else if used * 100 >= limit * plan.gentlePercent {
            self = .gentle
        } else {
            self = .silent
        }
    }

    var rank: Int {
        switch self {
        case .silent: 0
        case .gentle: 1
        case .prominent: 2
        case .blocked: 3
        }
    }

    public static func < (lhs: Tier, rhs: Tier) -> Bool { lhs.rank < rhs.rank }
}

/// How a client shows the counter.
public enum Display: String, Sendable, CaseIterable {
    case hidden, compact, trial, blocked

    /// Users of a trial, and of an allowance that never resets, always see the counter. Users of other plans see it
    /// from the gentle tier on.
    ///
    /// - Parameter limit: messages allowed; nil is unlimited.
    public init(tier: Tier, plan: borrowing Plan, limit: Int?) {
        self =
            switch tier {
            case .blocked: .blocked
            case _ where plan.isTrial: .trial
            case .silent where plan.cycle != .lifetime || limit == nil: .hidden
            case .silent, .gentle, .prominent: .compact
            }
    }
}

/// The state of a subscription at an instant, derived from the inputs in `headroom.subscriptions` and the database's
/// clock.
public enum SubscriptionState: String, Sendable, CaseIterable {
    case trial, active, cancelled
    case gracePeriod = "grace_period"
    case billingRetry = "billing_retry"
    case expired, revoked, free
}

/// What users without a subscription get.
public enum UnknownUsersPolicy: String, Sendable, CaseIterable {
    /// A trial, which starts with the first counted message.
    case trial
    /// The free plan's allowance.
    case free
    /// Nothing until a plan is set.
    case deny
}
