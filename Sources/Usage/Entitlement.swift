/// What a user may send in one billing period, as a row of `message_usage` says it until something other than a count
/// changes there.
///
/// A class so that all answers to a user share one, on their way from a lane to an event loop, instead of copying it.
public final class Entitlement: Sendable {
    public let plan: Plan
    public let state: SubscriptionState
    public let period: BillingPeriod
    /// Messages allowed in this period, grants and an operator's own edits included; nil is unlimited.
    public let limit: Int?
    /// Start of the trial or of the period.
    public let startedAt: Instant
    /// When a monthly allowance comes back.
    public let resetsAt: Instant?
    /// When the trial, or a cancelled subscription, ends.
    public let expiresAt: Instant?
    /// The paid plan held before this one, or the one that lapsed: what a paywall highlights.
    public let previousPlan: String?
    /// The plan that the store's subscription renews to, where that is another. Entitlement that differ in it alone are equal,
    /// because it changes nothing of what may be sent. Nil also where it was not looked up, which is needed for `USAGE` only.
    public let nextPlan: String?

    public init(
        plan: Plan,
        state: SubscriptionState,
        period: BillingPeriod,
        limit: Int?,
        startedAt: Instant,
        resetsAt: Instant? = nil,
        expiresAt: Instant? = nil,
        previousPlan: String? = nil,
        nextPlan: String? = nil
    ) {
        self.plan = plan
        self.state = state
        self.period = period
        self.limit = limit
        self.startedAt = startedAt
        self.resetsAt = resetsAt
        self.expiresAt = expiresAt
        self.previousPlan = previousPlan
        self.nextPlan = nextPlan
    }

    /// The same but for what is given; `.some(nil)` takes a value away.
    public func with(
        plan: Plan? = nil,
        period: BillingPeriod? = nil,
        limit: Int?? = nil,
        startedAt: Instant? = nil,
        resetsAt: Instant?? = nil,
        expiresAt: Instant?? = nil,
        previousPlan: String?? = nil,
        nextPlan: String?? = nil
    ) -> Entitlement {
        Entitlement(
            plan: plan ?? self.plan,
            state: state,
            period: period ?? self.period,
            limit: limit ?? self.limit,
            startedAt: startedAt ?? self.startedAt,
            resetsAt: resetsAt ?? self.resetsAt,
            expiresAt: expiresAt ?? self.expiresAt,
            previousPlan: previousPlan ?? self.previousPlan,
            nextPlan: nextPlan ?? self.nextPlan
        )
    }
}

extension Entitlement: Equatable {
    public static func == (lhs: Entitlement, rhs: Entitlement) -> Bool {
        lhs === rhs
            || lhs.plan == rhs.plan && lhs.state == rhs.state && lhs.period == rhs.period && lhs.limit == rhs.limit
                && lhs.startedAt == rhs.startedAt && lhs.resetsAt == rhs.resetsAt && lhs.expiresAt == rhs.expiresAt
                && lhs.previousPlan == rhs.previousPlan
    }
}
