/// What a user may send in one billing period: the columns of `message_usage` other than the counts.
///
/// A class, so that the answers to a user share one instance instead of copying it from a lane to an event loop.
public final class Entitlement: Sendable {
    public let plan: Plan
    public let state: SubscriptionState
    public let period: BillingPeriod
    /// Messages allowed in this period, including grants and edits by operators; nil is unlimited.
    public let limit: Int?
    /// Start of the trial or of the period.
    public let startedAt: Instant
    /// When a monthly allowance is renewed.
    public let resetsAt: Instant?
    /// When the trial, or a cancelled subscription, ends.
    public let expiresAt: Instant?
    /// The last monthly plan before this one, or the one that has ended. A paywall can highlight it.
    public let previousPlan: String?
    /// The plan after the store's next renewal, if it is another one. It is ignored by `==`, because it does not change
    /// what may be sent now. Nil also if it was not looked up: only `USAGE` needs it.
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

    /// A copy with the given values; `.some(nil)` sets an optional one to nil.
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
