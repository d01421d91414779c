import Usage

/// Subscribes a connection to changes of these users' snapshots. The outcome is `.subscribed` once the engine has read
/// each user's snapshot. It publishes every change after that.
public struct SubscribeRequest: Sendable, Equatable {
    public var users: [UserID]
    public var returnAddress: ReturnAddress
    public var deadline: ContinuousClock.Instant

    public init(users: [UserID], returnAddress: ReturnAddress, deadline: ContinuousClock.Instant) {
        self.users = users
        self.returnAddress = returnAddress
        self.deadline = deadline
    }

    var subscriber: ChangeSubscriber {
        ChangeSubscriber(mailboxIndex: returnAddress.mailboxIndex, connection: returnAddress.connection)
    }
}

/// A connection that subscribes to users: the index of its mailbox, and its id there.
public struct ChangeSubscriber: Sendable, Hashable {
    public var mailboxIndex: Int
    public var connection: Int

    public init(mailboxIndex: Int, connection: Int) {
        self.mailboxIndex = mailboxIndex
        self.connection = connection
    }
}

/// A change of a user's snapshot, for one subscriber: `answer` has the new snapshot.
public struct Publication: Sendable, Equatable {
    public var subscriber: ChangeSubscriber
    public var answer: Answer

    public init(subscriber: ChangeSubscriber, answer: Answer) {
        self.subscriber = subscriber
        self.answer = answer
    }
}

extension EngineError {
    static let tooManySubscribedUsers = EngineError(
        .overloaded,
        "too many users are subscribed to at this instance; unsubscribe from some, or ask another instance"
    )
    static let subscribeFailed = EngineError(
        .unavailable,
        "the database cannot be reached; nothing was subscribed, try again"
    )
}
