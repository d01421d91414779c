import Usage

/// What follows from a customer's history: what every user of theirs has.
public struct CustomerState: Sendable, Equatable {
    /// By user: the subscriptions whose plan is known, in the order of their transactions.
    public var subscriptions: [UserID: [StoreSubscription]] = [:]
    /// One for each user in the history, including users that have no event left: late events can move all of a user's
    /// events to another user, and then the rows written before have to be removed.
    public var users: [UserID: UserState] = [:]
    public var purchases: [MessagePurchase] = []
    /// In the order in which they happened.
    public var transfers: [UsageTransfer] = []
    public var results: [RecordedEvent.Key: EventResult] = [:]

    public init() {}
}

/// What a user's store events say beside the subscriptions.
public struct UserState: Sendable, Equatable {
    public var anchorDay: Int
    public var previousPlan: String?
    /// When the first trial of a store began that the user ever had, given away or not.
    public var trialStartedAt: Instant?
}

/// Messages that were bought once. They stay with their buyer.
public struct MessagePurchase: Sendable, Equatable {
    public var source: String
    public var transaction: String
    public var user: UserID
    public var at: Instant
    public var messages: Int
    public var isRefunded: Bool
}

/// The giver's counts of the open periods that the receiver's are raised to, once for each event, giver and receiver.
public struct UsageTransfer: Sendable, Hashable {
    public var event: RecordedEvent.Key
    public var giver: UserID
    public var receiver: UserID
}

public struct EventResult: Sendable, Equatable {
    public enum Outcome: String, Sendable {
        case applied
        /// It takes effect with another event: one that names the plan, or the subscription that it transfers.
        case waiting
        /// An operator has set the user's plan since.
        case outdated
        /// It concerns no subscription.
        case ignored
        case failed
    }

    public var outcome: Outcome
    public var problem: BillingProblem?
    /// Whom it concerns, as far as that is known.
    public var user: UserID?
}
