/// All that the database says about one user at one instant; every answer is derived from it.
public struct Standing: Sendable, Equatable {
    public var plan: Plan
    public var state: SubscriptionState
    public var period: BillingPeriod
    /// Messages counted in this period.
    public var used: Int
    /// Messages reserved but not yet committed; they count as used until they are, or are given back.
    public var held: Int
    /// Messages allowed in this period, grants and an operator's own edits included; nil is unlimited.
    public var limit: Int?
    /// Why nothing may be sent whatever is left; nil with access.
    public var lapse: Refusal?
    /// Start of the trial or of the period.
    public var startedAt: Instant
    /// When a monthly allowance comes back.
    public var resetsAt: Instant?
    /// When the trial, or a cancelled subscription, ends.
    public var expiresAt: Instant?
    /// The paid plan held before this one, or the one that lapsed: what a paywall highlights.
    public var previousPlan: String?
    /// The database's clock when it said so.
    public var observedAt: Instant

    public init(
        plan: Plan,
        state: SubscriptionState,
        period: BillingPeriod,
        used: Int,
        held: Int = 0,
        limit: Int?,
        lapse: Refusal? = nil,
        startedAt: Instant,
        resetsAt: Instant? = nil,
        expiresAt: Instant? = nil,
        previousPlan: String? = nil,
        observedAt: Instant
    ) {
        self.plan = plan
        self.state = state
        self.period = period
        self.used = used
        self.held = held
        self.limit = limit
        self.lapse = lapse
        self.startedAt = startedAt
        self.resetsAt = resetsAt
        self.expiresAt = expiresAt
        self.previousPlan = previousPlan
        self.observedAt = observedAt
    }
}

extension Standing {
    /// The period is over: it is history, nothing can be sent in it any more, and there is nothing to say about it.
    public var isPast: Bool {
        resetsAt.map { observedAt >= $0 } ?? false
    }

    /// `message_count` is an `integer`; an unlimited plan's count stops there instead of failing.
    public static let countMaximum = Int(Int32.max)

    public var tier: Tier {
        lapse == nil ? Tier(used: used + held, limit: limit, plan: plan) : .blocked
    }

    public var display: Display { Display(tier: tier, plan: plan) }

    /// Messages that may still be sent; nil is unlimited. Never negative: a lowered limit blocks, it takes nothing
    /// back.
    public var remaining: Int? {
        guard lapse == nil else { return 0 }
        return limit.map { max(0, $0 - used - held) }
    }

    /// Why `messages` more may not be sent now, or nil when they may. All or nothing.
    public func refusal(of messages: Int) -> Refusal? {
        if let lapse { return lapse }
        guard let limit, used + held + messages > limit else { return nil }
        if plan.isTrial { return .trialLimitReached }
        // A plan that allows nothing was never a subscription; there is no limit that somebody reached.
        return limit == 0 && plan.cycle == .lifetime ? .noSubscription : .limitReached
    }

    /// Counts `messages`, which `refusal(of:)` allowed. An unlimited count stops at `countMaximum`.
    public mutating func count(_ messages: Int) {
        used = min(used + messages, Standing.countMaximum)
    }

    /// Seconds after which `messages` refused for `refusal` would be allowed by waiting alone; nil when waiting does
    /// not mend it: a trial never comes back, a subscription may end before the reset, and more than the whole
    /// allowance never fits.
    public func retryAfterSeconds(_ refusal: Refusal, messages: Int) -> Int64? {
        guard refusal == .limitReached, let resetsAt, resetsAt > observedAt else { return nil }
        if let allowance = plan.allowance, messages > allowance { return nil }
        if let expiresAt, expiresAt <= resetsAt { return nil }
        return resetsAt.secondsRoundedUp(since: observedAt)
    }

    /// Day X of N of a trial: day 1 is the first 24 hours, and the last day stays the last when the trial is over.
    public var trialDay: (day: Int, days: Int)? {
        guard case .trial(let days) = plan.cycle else { return nil }
        let elapsed = floorDivide(observedAt.microsecondsSince1970 - startedAt.microsecondsSince1970, 86_400_000_000)
        return (min(max(1, Int(elapsed) + 1), days), days)
    }
}
