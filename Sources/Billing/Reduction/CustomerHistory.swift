import Usage

/// All that is recorded of one customer: what `CustomerReducer` computes the customer's state from.
///
/// A customer is everybody whom events connect: the identities and transactions that stand in one event belong together,
/// so a transfer's giver and receiver are one customer.
public struct CustomerHistory: Sendable, Equatable {
    /// In any order.
    public var events: [RecordedEvent]
    /// What is known of the users among the customer's identities from elsewhere. Absent: nothing.
    public var users: [UserID: UserRecord]
    public var plans: [String: Plan.Cycle]

    public init(events: [RecordedEvent], users: [UserID: UserRecord] = [:], plans: [String: Plan.Cycle]) {
        self.events = events
        self.users = users
        self.plans = plans
    }
}

/// An event with the plans of its products, as they were mapped when it was last applied or replayed.
public struct RecordedEvent: Sendable, Equatable {
    /// A store names an event once, and only among its own.
    public struct Key: Hashable, Sendable, Comparable {
        public var source: String
        public var id: String

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
    public var environment: String?
    /// Whom it names, best first: UUIDs and digests. See `CustomerIdentity`.
    public var identities: [String]
    public var effects: [BillingEffect]
    /// Why the effects cannot be applied. The identities of the event still count.
    public var problem: BillingProblem?

    public init(
        key: Key,
        at: Instant,
        receivedAt: Instant,
        environment: String? = nil,
        identities: [String],
        effects: [BillingEffect],
        problem: BillingProblem? = nil
    ) {
        self.key = key
        self.at = at
        self.receivedAt = receivedAt
        self.environment = environment
        self.identities = identities
        self.effects = effects
        self.problem = problem
    }
}

/// Why an event has no effect although it should have one. It is recorded, listed and tried again.
public enum BillingProblem: Hashable, Sendable {
    /// No user is known for its identities or its transaction.
    case unknownUser
    case unmappedProduct(String)
    /// It is dated more than a day ahead of the database's clock.
    case inTheFuture
    /// A field is missing or wrong. The text says what to do.
    case malformed(String)
}

/// What is known of a user from elsewhere than store events.
public struct UserRecord: Sendable, Equatable {
    /// When an operator last set the plan. Events that happened or arrived before that are outdated.
    public var declaredAt: Instant?
    /// The plan that was set, where it is monthly.
    public var declaredPlan: String?
    public var declaredAnchorDay: Int
    public var declaredPreviousPlan: String?
    /// The trial that a first message or an operator started. It may still run.
    public var trial: OwnTrial?

    public struct OwnTrial: Sendable, Equatable {
        public var startedAt: Instant
        public var endsAt: Instant
        /// When its last message was counted, if none is left.
        public var usedUpAt: Instant?

        public init(startedAt: Instant, endsAt: Instant, usedUpAt: Instant? = nil) {
            self.startedAt = startedAt
            self.endsAt = endsAt
            self.usedUpAt = usedUpAt
        }

        func isOver(by instant: Instant) -> Bool {
            if let usedUpAt, usedUpAt <= instant { return true }
            return endsAt <= instant
        }
    }

    public init(
        declaredAt: Instant? = nil,
        declaredPlan: String? = nil,
        declaredAnchorDay: Int = 1,
        declaredPreviousPlan: String? = nil,
        trial: OwnTrial? = nil
    ) {
        self.declaredAt = declaredAt
        self.declaredPlan = declaredPlan
        self.declaredAnchorDay = declaredAnchorDay
        self.declaredPreviousPlan = declaredPreviousPlan
        self.trial = trial
    }
}

extension String {
    /// Order by UTF-8 bytes, as PostgreSQL's collation "C" has it: `<` is Unicode's and treats different ids as equal.
    func precedes(_ other: String) -> Bool {
        utf8.lexicographicallyPrecedes(other.utf8)
    }
}
