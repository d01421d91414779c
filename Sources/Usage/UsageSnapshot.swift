/// All that the database says about one user at one instant; every answer is derived from it.
///
/// Counts in place, and the entitlement by reference: a batch makes a snapshot per message, and all of a user's share the entitlement.
public struct UsageSnapshot: Sendable, Equatable {
    public var entitlement: Entitlement
    /// Messages counted in this period.
    public var used: Int
    /// Messages reserved but not yet committed; they count as used until they are, or are given back.
    public var held: Int
    /// Why nothing may be sent whatever is left; nil with access.
    public var denialReason: DenialReason?
    /// The database's clock when it said so.
    public var observedAt: Instant
    /// When the store renews an active subscription: it charges then, and access goes on. Nil also where it was not
    /// looked up, which is needed for `USAGE` only.
    public var renewsAt: Instant?

    @inlinable
    public init(
        entitlement: Entitlement,
        used: Int,
        held: Int = 0,
        denialReason: DenialReason? = nil,
        observedAt: Instant,
        renewsAt: Instant? = nil
    ) {
        self.entitlement = entitlement
        self.used = used
        self.held = held
        self.denialReason = denialReason
        self.observedAt = observedAt
        self.renewsAt = renewsAt
    }

    public init(
        plan: Plan,
        state: SubscriptionState,
        period: BillingPeriod,
        used: Int,
        held: Int = 0,
        limit: Int?,
        denialReason: DenialReason? = nil,
        startedAt: Instant,
        resetsAt: Instant? = nil,
        expiresAt: Instant? = nil,
        previousPlan: String? = nil,
        observedAt: Instant,
        renewsAt: Instant? = nil
    ) {
        let entitlement = Entitlement(
            plan: plan,
            state: state,
            period: period,
            limit: limit,
            startedAt: startedAt,
            resetsAt: resetsAt,
            expiresAt: expiresAt,
            previousPlan: previousPlan
        )
        self.init(
            entitlement: entitlement,
            used: used,
            held: held,
            denialReason: denialReason,
            observedAt: observedAt,
            renewsAt: renewsAt
        )
    }
}

/// The entitlement' values, as if they stood here. Setting one makes new entitlement.
extension UsageSnapshot {
    @inlinable public var plan: Plan {
        get { entitlement.plan }
        set { entitlement = entitlement.with(plan: newValue) }
    }
    @inlinable public var state: SubscriptionState { entitlement.state }
    @inlinable public var period: BillingPeriod {
        get { entitlement.period }
        set { entitlement = entitlement.with(period: newValue) }
    }
    @inlinable public var limit: Int? {
        get { entitlement.limit }
        set { entitlement = entitlement.with(limit: .some(newValue)) }
    }
    @inlinable public var startedAt: Instant {
        get { entitlement.startedAt }
        set { entitlement = entitlement.with(startedAt: newValue) }
    }
    @inlinable public var resetsAt: Instant? {
        get { entitlement.resetsAt }
        set { entitlement = entitlement.with(resetsAt: .some(newValue)) }
    }
    @inlinable public var expiresAt: Instant? {
        get { entitlement.expiresAt }
        set { entitlement = entitlement.with(expiresAt: .some(newValue)) }
    }
    @inlinable public var previousPlan: String? {
        get { entitlement.previousPlan }
        set { entitlement = entitlement.with(previousPlan: .some(newValue)) }
    }
    @inlinable public var nextPlan: String? {
        get { entitlement.nextPlan }
        set { if newValue != entitlement.nextPlan { entitlement = entitlement.with(nextPlan: .some(newValue)) } }
    }
}

extension UsageSnapshot {
    /// The period is over: it is history, nothing can be sent in it any more, and there is nothing to say about it.
    public var isPast: Bool {
        resetsAt.map { observedAt >= $0 } ?? false
    }

    /// When the allowance comes back, where there is something to come back: not to whom nothing is limited, or nothing is
    /// allowed, nor in a period that is over.
    public var resetsShown: Instant? {
        limit != nil && denialReason == nil && !isPast ? resetsAt : nil
    }

    /// When messages really come back: never to whom access has ended by then. Intervals are half-open, so access that ends
    /// at the reset has ended.
    public var comesBackAt: Instant? {
        guard let resetsShown, expiresAt.map({ $0 > resetsShown }) ?? true else { return nil }
        return resetsShown
    }

    /// When a trial, or a cancelled subscription, ends.
    public var expiresShown: Instant? {
        plan.isTrial || state == .cancelled ? expiresAt : nil
    }

    /// When the grace period ends, and with it access, unless the payment succeeds before.
    public var graceUntilShown: Instant? {
        state == .gracePeriod && denialReason == nil && !isPast ? expiresAt : nil
    }

    /// Whether the subscription can be one that a store renews. Only its record tells whether it is.
    public var mayRenew: Bool { state == .active && expiresAt != nil }

    /// `message_count` is an `integer`; an unlimited plan's count stops there instead of failing.
    public static let countMaximum = Int(Int32.max)

    public var tier: Tier {
        denialReason == nil ? Tier(used: used + held, limit: limit, plan: plan) : .blocked
    }

    public var display: Display { Display(tier: tier, plan: plan) }

    /// Messages that may still be sent; nil is unlimited. Never negative: a lowered limit blocks, it takes nothing
    /// back.
    public var remaining: Int? {
        guard denialReason == nil else { return 0 }
        return limit.map { max(0, $0 - used - held) }
    }

    /// Why there is no access at all; nil with access, also to an allowance that is used up, and of a period that is over.
    public var missingAccess: DenialReason? {
        if let denialReason { return denialReason }
        // A plan that allows nothing was never a subscription; there is no limit that somebody reached.
        return limit == 0 && plan.cycle == .lifetime && !isPast ? .noSubscription : nil
    }

    /// Why `messages` more may not be sent now, or nil when they may. All or nothing.
    public func refusal(of messages: Int) -> DenialReason? {
        if let missingAccess { return missingAccess }
        guard let limit, used + held + messages > limit else { return nil }
        return plan.isTrial ? .trialLimitReached : .limitReached
    }

    /// Counts `messages`, which `refusal(of:)` allowed. An unlimited count stops at `countMaximum`.
    public mutating func count(_ messages: Int) {
        used = min(used + messages, UsageSnapshot.countMaximum)
    }

    /// Seconds after which `messages` refused for `refusal` would be allowed by waiting alone; nil when waiting does
    /// not mend it: a trial never comes back, a subscription may end before the reset, and more than the whole
    /// allowance never fits.
    public func retryAfterSeconds(_ refusal: DenialReason, messages: Int) -> Int64? {
        guard refusal == .limitReached, let comesBackAt else { return nil }
        if let allowance = plan.allowance, messages > allowance { return nil }
        return comesBackAt.secondsRoundedUp(since: observedAt)
    }

    /// Day X of N of a trial: day 1 is the first 24 hours, and the last day stays the last when the trial is over. A
    /// trial with an end of its own, such as a store's, has the days until that; another one has the plan's.
    public var trialDay: (day: Int, days: Int)? {
        guard case .trial(let planDays) = plan.cycle else { return nil }
        let days = expiresAt.map { max(1, -UsageSnapshot.days(from: $0, to: startedAt)) } ?? planDays
        return (min(max(1, UsageSnapshot.days(from: startedAt, to: observedAt) + 1), days), days)
    }

    /// Whole days of 24 hours, rounded down.
    private static func days(from start: Instant, to end: Instant) -> Int {
        Int(floorDivide(end.microseconds(since: start), 86_400_000_000))
    }
}
