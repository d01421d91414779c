/// What an operator or a store says about a user's subscription; it replaces all that was known before.
public struct PlanChange: Sendable, Equatable {
    public var user: UserID
    /// Name of a plan.
    public var plan: String
    /// Nil is the state in which the plan begins: trial, active or free. Outside this package only an initializer sets
    /// it, and none takes an optional: a store's word that is no state would become that one.
    public package(set) var state: SubscriptionState?
    /// Nil leaves it out: a trial that has begun keeps its start.
    public var startedAt: Instant?
    /// Nil is never; of a cancelled subscription it is the end of the current period.
    public var expiresAt: Instant?
    /// Nil is never; of a grace period it is 16 days after `expiresAt`, or after now.
    public var graceUntil: Instant?
    /// 1 to 31; nil keeps the user's.
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
    /// The state of a subscription to which nothing has happened yet.
    public var initialState: SubscriptionState {
        switch cycle {
        case .monthly: .active
        case .trial: .trial
        case .lifetime: .free
        }
    }

    /// Whether a subscription to this plan can be in `state`. Only what a store bills month by month can be cancelled
    /// or have a payment problem; any plan can be over, or be taken away.
    public func admits(_ state: SubscriptionState) -> Bool {
        switch state {
        case .trial, .free, .active: state == initialState
        case .cancelled, .gracePeriod, .billingRetry: cycle == .monthly
        case .expired, .revoked: true
        }
    }
}
