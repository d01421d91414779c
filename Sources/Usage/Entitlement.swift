/// What a user may send in one billing period: the columns of `message_usage` other than the counts.
///
/// A class, so that the answers to a user share one instance instead of copying it from a lane to an event loop.
public final class Entitlement: Sendable {
    public let plan: Plan
    public let state: SubscriptionState
    public let period: BillingPeriod
    /// Messages allowed in this period, including grants and edits by operators; nil is unlimited.
    public let limit: Int?
    /// Nil if the plan has no window.
    public let window: UsageWindow?
    /// Whether there is a window: a flag, because each message asks and most plans have none.
    let hasWindow: Bool
    /// Start of the trial or of the period.
    public let startedAt: Instant
    /// When the allowance is renewed.
    public let resetsAt: Instant?
    /// `resetsAt` as answers show it: nearly every one does.
    public let writtenResetsAt: WrittenInstant?
    /// When the trial, or a cancelled subscription, ends.
    public let expiresAt: Instant?
    /// The last plan with periods before this one, or the one that has ended. A paywall can highlight it.
    public let previousPlan: String?
    /// Whether a store renews it at `expiresAt`. Nil if it does not come from a store.
    public let renews: Bool?
    /// What the store told about the subscription. It is ignored by `==`, because it does not change what may be sent
    /// now. Nil also if it was not looked up: only `USAGE` needs it.
    public let details: SubscriptionDetails?

    public init(
        plan: Plan,
        state: SubscriptionState,
        period: BillingPeriod,
        limit: Int?,
        window: UsageWindow? = nil,
        startedAt: Instant,
        resetsAt: Instant? = nil,
        expiresAt: Instant? = nil,
        previousPlan: String? = nil,
        renews: Bool? = nil,
        details: SubscriptionDetails? = nil
    ) {
        self.plan = plan
        self.state = state
        self.period = period
        self.limit = limit
        self.window = window
        hasWindow = window != nil
        self.startedAt = startedAt
        self.resetsAt = resetsAt
        writtenResetsAt = resetsAt.map(WrittenInstant.init)
        self.expiresAt = expiresAt
        self.previousPlan = previousPlan
        self.renews = renews
        self.details = details
    }

    /// A copy with the given values; `.some(nil)` sets an optional one to nil.
    public func with(
        plan: Plan? = nil,
        period: BillingPeriod? = nil,
        limit: Int?? = nil,
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
            window: window ?? self.window,
            startedAt: startedAt ?? self.startedAt,
            resetsAt: resetsAt ?? self.resetsAt,
            expiresAt: expiresAt ?? self.expiresAt,
            previousPlan: previousPlan ?? self.previousPlan,
            renews: renews ?? self.renews,
            details: details ?? self.details
        )
    }
}

extension Entitlement: Equatable {
    public static func == (lhs: Entitlement, rhs: Entitlement) -> Bool {
        lhs === rhs
            || lhs.plan == rhs.plan && lhs.state == rhs.state && lhs.period == rhs.period && lhs.limit == rhs.limit
                && lhs.window == rhs.window
                && lhs.startedAt == rhs.startedAt && lhs.resetsAt == rhs.resetsAt && lhs.expiresAt == rhs.expiresAt
                && lhs.previousPlan == rhs.previousPlan && lhs.renews == rhs.renews
    }
}

/// What only `USAGE` shows of a subscription.
public struct SubscriptionDetails: Sendable, Equatable {
    /// The plan after the store's next renewal, if it is another one.
    public var nextPlan: String?
    /// As paid at the last renewal, a decimal number in units of `currency`: "9.99".
    public var price: String?
    /// ISO 4217: "USD".
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
