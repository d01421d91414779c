/// A user's subscription as `SETPLAN` sets it. It replaces all earlier ones, also those of stores.
public struct PlanChange: Sendable, Equatable {
    public var user: UserID
    /// The name of a plan.
    public var plan: String
    /// The state; nil means the plan's initial one: trial, active or free. Clients of the library set it by
    /// HeadroomClient's `init(user:plan:state:…)`, whose state is not optional, so that an unknown state of a store
    /// cannot become the initial one by mistake.
    public package(set) var state: SubscriptionState?
    /// When the subscription began; nil keeps the start of a trial that has begun.
    public var startedAt: Instant?
    /// When the subscription ends. Nil means never; for a cancelled subscription it means the end of the current
    /// period, for an expired one now, and for a trial the end of the plan's days.
    public var expiresAt: Instant?
    /// When the grace period ends, for a grace period and billing retry only. If it is nil, a grace period ends 16 days
    /// after `expiresAt`, or after now if that is nil too, and billing retry begins now.
    public var graceUntil: Instant?
    /// The day of the month on which monthly periods begin, 1 to 31; nil keeps the user's.
    public var anchorDay: Int?

    package init(
        user: UserID,
        plan: String,
        state: SubscriptionState? = nil,
        startedAt: Instant? = nil,
        expiresAt: Instant? = nil,
        graceUntil: Instant? = nil,
        anchorDay: Int? = nil
    ) {
        self.user = user
        self.plan = plan
        self.state = state
        self.startedAt = startedAt
        self.expiresAt = expiresAt
        self.graceUntil = graceUntil
        self.anchorDay = anchorDay
    }
}

extension Plan {
    /// The state of a new subscription to this plan.
    public var initialState: SubscriptionState {
        switch cycle {
        case .monthly, .weekly, .daily: .active
        case .trial: .trial
        case .lifetime: .free
        }
    }

    /// Whether a subscription to this plan can be in `state`. Only plans with periods can be cancelled or have a
    /// billing issue; every plan can expire or be revoked.
    public func admits(_ state: SubscriptionState) -> Bool {
        switch state {
        case .trial, .free, .active: state == initialState
        case .cancelled, .gracePeriod, .billingRetry: cycle.isPeriodic
        case .expired, .revoked: true
        }
    }
}
