/// What a user may send in one billing period: the columns of `message_usage` other than the counts.
///
/// It is a class, so that the answers to a user share one instance instead of copying it from a lane to an event loop.
public final class Entitlement: Sendable {
    public let plan: Plan
    public let state: SubscriptionState
    public let period: BillingPeriod
    /// Messages allowed in this period, including grants and edits by operators; nil is unlimited.
    public let limit: Int?
    /// What `limit` includes of balances; nil without any.
    public let balances: Balances?
    /// The user's window; nil if the plan has none.
    public let window: UsageWindow?
    /// Whether there are allowances beside the period's. It is a flag, because each message reads it and most plans
    /// have none.
    @usableFromInline let hasOtherAllowances: Bool
    /// When the trial or the period began.
    public let startedAt: Instant
    /// When the allowance resets; nil if it never does.
    public let resetsAt: Instant?
    /// `resetsAt` as answers show it. It is formatted once, because nearly every answer has it.
    public let writtenResetsAt: WrittenInstant?
    /// When the trial, the paid time or the grace period ends.
    public let expiresAt: Instant?
    /// The last plan with periods before this one, or the plan that has ended. A paywall can highlight it.
    public let previousPlan: String?
    /// Whether a store renews the subscription at `expiresAt`; nil if it does not come from a store.
    public let renews: Bool?
    /// What the store reported about the subscription. It is nil also if it was not looked up, because only `USAGE`
    /// needs it. `==` ignores it, because it does not change what may be sent now.
    public let details: SubscriptionDetails?
    /// The parts to which the messages of the present request belong; empty for a request that names none. They are
    /// here so that snapshots and answers, which are copied for each message, are no larger for them.
    @usableFromInline let parts: [PartUsage]
    /// How many messages of the user's allowances a message of the present request takes.
    let weight: Int

    public init(
        plan: Plan,
        state: SubscriptionState,
        period: BillingPeriod,
        limit: Int?,
        balances: Balances? = nil,
        window: UsageWindow? = nil,
        startedAt: Instant,
        resetsAt: Instant? = nil,
        expiresAt: Instant? = nil,
        previousPlan: String? = nil,
        renews: Bool? = nil,
        details: SubscriptionDetails? = nil,
        parts: [PartUsage] = []
    ) {
        self.plan = plan
        self.state = state
        self.period = period
        self.limit = limit
        self.balances = balances
        self.window = window
        hasOtherAllowances = window != nil || !parts.isEmpty
        self.startedAt = startedAt
        self.resetsAt = resetsAt
        writtenResetsAt = resetsAt.map(WrittenInstant.init)
        self.expiresAt = expiresAt
        self.previousPlan = previousPlan
        self.renews = renews
        self.details = details
        self.parts = parts
        weight = parts.weight
    }

    private init(_ other: Entitlement, parts: [PartUsage]) {
        plan = other.plan
        state = other.state
        period = other.period
        limit = other.limit
        balances = other.balances
        window = other.window
        hasOtherAllowances = window != nil || !parts.isEmpty
        startedAt = other.startedAt
        resetsAt = other.resetsAt
        writtenResetsAt = other.writtenResetsAt
        expiresAt = other.expiresAt
        previousPlan = other.previousPlan
        renews = other.renews
        details = other.details
        self.parts = parts
        weight = parts.weight
    }

    /// Returns a copy for a request that names these parts.
    public func with(parts: [PartUsage]) -> Entitlement { Entitlement(self, parts: parts) }

    /// Returns a copy with the given values; `.some(nil)` sets an optional one to nil.
    public func with(
        plan: Plan? = nil,
        period: BillingPeriod? = nil,
        limit: Int?? = nil,
        balances: Balances?? = nil,
        window: UsageWindow?? = nil,
        startedAt: Instant? = nil,
        resetsAt: Instant?? = nil,
        expiresAt: Instant?? = nil,
        previousPlan: String?? = nil,
        renews: Bool?? = nil,
        details: SubscriptionDetails?? = nil
    ) -> Entitlement {
        Entitlement(
            plan: plan ?? self.plan,
            state: state,
            period: period ?? self.period,
            limit: limit ?? self.limit,
            balances: balances ?? self.balances,
            window: window ?? self.window,
            startedAt: startedAt ?? self.startedAt,
            resetsAt: resetsAt ?? self.resetsAt,
            expiresAt: expiresAt ?? self.expiresAt,
            previousPlan: previousPlan ?? self.previousPlan,
            renews: renews ?? self.renews,
            details: details ?? self.details,
            parts: parts
        )
    }
}

extension Entitlement: Equatable {
    public static func == (lhs: Entitlement, rhs: Entitlement) -> Bool {
        lhs === rhs
            || lhs.plan == rhs.plan && lhs.state == rhs.state && lhs.period == rhs.period && lhs.limit == rhs.limit
                && lhs.balances == rhs.balances && lhs.window == rhs.window
                && lhs.startedAt == rhs.startedAt && lhs.resetsAt == rhs.resetsAt && lhs.expiresAt == rhs.expiresAt
                && lhs.previousPlan == rhs.previousPlan && lhs.renews == rhs.renews && lhs.parts == rhs.parts
    }
}

/// What a store reports about a subscription and only `USAGE` shows.
public struct SubscriptionDetails: Sendable, Equatable {
    /// The plan after the store's next renewal, if it is another one.
    public var nextPlan: String?
    /// The price that was paid at the last renewal, as a decimal number in units of `currency`: "9.99".
    public var price: String?
    /// The currency of `price` by ISO 4217: "USD".
    public var currency: String?
    /// The address where the user changes the subscription.
    public var manage: String?

    public init(nextPlan: String? = nil, price: String? = nil, currency: String? = nil, manage: String? = nil) {
        self.nextPlan = nextPlan
        self.price = price
        self.currency = currency
        self.manage = manage
    }
}
