import Usage

/// The result of reducing a customer's history: the state of each of the customer's users.
public struct CustomerState: Sendable, Equatable {
    /// Each user's subscriptions whose plan is known, in the order of their transactions.
    public var subscriptions: [UserID: [StoreSubscription]] = [:]
    /// The state of each user in the history, including users without events: a late event can move all of a user's
    /// events to another user, and then the rows written before have to be removed.
    public var users: [UserID: UserState] = [:]
    public var purchases: [MessagePurchase] = []
    /// The transfers in the order in which they happened.
    public var transfers: [UsageTransfer] = []
    public var results: [RecordedEvent.Key: EventResult] = [:]

    public init() {}
}

/// A user's state from store events, apart from the subscriptions.
public struct UserState: Sendable, Equatable {
    public var anchorDay: Int
    public var previousPlan: String?
    /// When the user's first store trial began, also if it was transferred since.
    public var trialStartedAt: Instant?
    /// When the messages of the user's trial were used up, if a store's trial arrived after that.
    public var trialUsedUpAt: Instant?
}

/// A one-time purchase of messages. It stays with its buyer.
public struct MessagePurchase: Sendable, Equatable {
    @ExactText public var source: String
    @ExactText public var transaction: String
    public var user: UserID
    public var at: Instant
    public var messages: Int
    public var isRefunded: Bool
}

/// A transfer of subscriptions from user to user. It raises the receiver's counts of the open periods to the giver's,
/// once for each event, giver and receiver, if a transferred subscription became what gives the receiver access.
public struct UsageTransfer: Sendable, Hashable {
    public var event: RecordedEvent.Key
    public var giver: UserID
    public var receiver: UserID
    /// The plans whose periods are raised, in the order of their names.
    public var plans: [String] = []
    /// Whether the receiver had access of at least the transferred allowance before, so that the own count stays. If an
    /// earlier application has raised it, because the event of that access arrived late, the count is lowered again.
    public var keepsOwnCount = false
}

public struct EventResult: Sendable, Equatable {
    public enum Outcome: String, Sendable {
        case applied
        /// The event takes effect with another one, which names the plan, or the subscription that is transferred.
        case waiting
        /// An operator has set the user's plan since then.
        case outdated
        /// The event concerns no subscription.
        case ignored
        case failed
    }

    public var outcome: Outcome
    public var problem: BillingProblem?
    /// The user, if known.
    public var user: UserID?
}
