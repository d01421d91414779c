import Usage

/// All recorded events and declarations of one customer: the input of `CustomerReducer`.
///
/// Identities and transactions that occur in one event belong to one customer. So the giver and the receiver of a
/// transfer are one customer, with several users.
public struct CustomerHistory: Sendable, Equatable {
    /// The events in any order.
    public var events: [RecordedEvent]
    /// Facts about the customer's users that do not come from store events. It may lack users.
    public var users: [UserID: UserRecord]
    public var plans: [String: Plan.Cycle]
    /// The messages in 30 days of each plan that has an enforced limit.
    public var allowances: [String: Int]
    /// How long a subscription gives access while its renewal is awaited (`headroom.renewal_leeway`).
    public var renewalLeewaySeconds: Int64

    public init(
        events: [RecordedEvent],
        users: [UserID: UserRecord] = [:],
        plans: [String: Plan.Cycle],
        allowances: [String: Int] = [:],
        renewalLeewaySeconds: Int64 = 0
    ) {
        self.events = events
        self.users = users
        self.plans = plans
        self.allowances = allowances
        self.renewalLeewaySeconds = renewalLeewaySeconds
    }
}

/// An event with the plans of its products, as they were mapped when it was last applied or replayed.
public struct RecordedEvent: Sendable, Equatable {
    /// An id is unique within its source.
    public struct Key: Hashable, Sendable, Comparable {
        @ExactText public var source: String
        @ExactText public var id: String

        public init(source: String, id: String) {
            self.source = source
            self.id = id
        }

        public static func < (lhs: Key, rhs: Key) -> Bool {
            lhs.source == rhs.source ? lhs.id.precedes(rhs.id) : lhs.source.precedes(rhs.source)
        }
    }

    public var key: Key
    /// When it happened.
    public var at: Instant
    /// When it first arrived.
    public var receivedAt: Instant
    /// When it was first applied; nil if it is being applied now.
    public var appliedAt: Instant?
    public var environment: String?
    /// UUIDs and digests of the customer, best first. See `CustomerIdentity`.
    public var identities: [String]
    public var effects: [BillingEffect]
    /// Why the effects cannot be applied. The identities are used nevertheless.
    public var problem: BillingProblem?

    public init(
        key: Key,
        at: Instant,
        receivedAt: Instant,
        appliedAt: Instant? = nil,
        environment: String? = nil,
        identities: [String],
        effects: [BillingEffect],
        problem: BillingProblem? = nil
    ) {
        self.key = key
        self.at = at
        self.receivedAt = receivedAt
        self.appliedAt = appliedAt
        self.environment = environment
        self.identities = identities
        self.effects = effects
        self.problem = problem
    }
}

extension RecordedEvent {
    /// The order in which events happened.
    static func isBefore(_ one: RecordedEvent, _ other: RecordedEvent) -> Bool {
        one.at == other.at ? one.key < other.key : one.at < other.at
    }

    /// The store's clock may be ahead of the database's by this much.
    private static let clockToleranceSeconds: Int64 = 60

    /// When a refund, a cancellation or an end that the event dates at `instant` takes effect: at once if it is dated
    /// slightly ahead of the database's clock. It is computed from the time of arrival, so that a later reduction gives
    /// the same instant.
    func effective(_ instant: Instant) -> Instant {
        let isAhead = instant > receivedAt
        let latest = receivedAt.advanced(bySeconds: RecordedEvent.clockToleranceSeconds)
        return isAhead && instant <= latest ? receivedAt : instant
    }
}

/// Why an event that should have an effect has none. It is recorded, listed and tried again.
public enum BillingProblem: Hashable, Sendable {
    /// No user is known for its identities or its transaction.
    case unknownUser
    /// One of these products must be mapped, one a line.
    case unmappedProduct(String)
    /// It is dated more than a day ahead of the database's clock.
    case inTheFuture
    /// A field is missing or wrong. The text says what to do.
    case malformed(String)
}

/// Facts about a user that do not come from store events.
public struct UserRecord: Sendable, Equatable {
    /// When an operator last set the plan. Events that happened or arrived before that are outdated.
    public var declaredAt: Instant?
    /// The plan that was set, if it has periods.
    public var declaredPlan: String?
    public var declaredAnchorDay: Int
    public var declaredPreviousPlan: String?
    /// The trial that a first message or an operator started, running or ended.
    public var trial: Trial?
    /// When the messages of the user's trial were used up, as it was recorded (`UserState.trialUsedUpAt`): a later
    /// reset or release does not change it.
    public var trialUsedUpAt: Instant?
    /// The same by the present usage: nil while messages are left. It decides about events that are being applied now.
    public var presentTrialUsedUpAt: Instant?
    /// The plan that an operator set, and the trial that a first message began, each with its start.
    public var otherSubscriptions: [StoreSubscription]

    public struct Trial: Sendable, Equatable {
        public var startedAt: Instant
        public var endsAt: Instant

        public init(startedAt: Instant, endsAt: Instant) {
            self.startedAt = startedAt
            self.endsAt = endsAt
        }
    }

    public init(
        declaredAt: Instant? = nil,
        declaredPlan: String? = nil,
        declaredAnchorDay: Int = 1,
        declaredPreviousPlan: String? = nil,
        trial: Trial? = nil,
        trialUsedUpAt: Instant? = nil,
        presentTrialUsedUpAt: Instant? = nil,
        otherSubscriptions: [StoreSubscription] = []
    ) {
        self.declaredAt = declaredAt
        self.declaredPlan = declaredPlan
        self.declaredAnchorDay = declaredAnchorDay
        self.declaredPreviousPlan = declaredPreviousPlan
        self.trial = trial
        self.trialUsedUpAt = trialUsedUpAt
        self.presentTrialUsedUpAt = presentTrialUsedUpAt
        self.otherSubscriptions = otherSubscriptions
    }
}

extension String {
    /// Compares by UTF-8 bytes, as PostgreSQL's collation "C" does: `<` uses Unicode's order, which treats some
    /// different ids as equal.
    func precedes(_ other: String) -> Bool {
        utf8.lexicographicallyPrecedes(other.utf8)
    }
}
