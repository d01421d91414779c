import Usage

/// Asks to be told whenever one of these users' snapshot changes. The outcome is `.watching` once it is known from
/// where on changes are told.
public struct WatchRequest: Sendable, Equatable {
    public var users: [UserID]
    public var returnAddress: ReturnAddress
    public var deadline: ContinuousClock.Instant

    public init(users: [UserID], returnAddress: ReturnAddress, deadline: ContinuousClock.Instant) {
        self.users = users
        self.returnAddress = returnAddress
        self.deadline = deadline
    }

    var subscriber: Subscriber {
        Subscriber(mailbox: returnAddress.mailbox, connection: returnAddress.connection)
    }
}

/// A connection that watches users.
public struct Subscriber: Sendable, Hashable {
    public var mailbox: Int
    public var connection: Int

    public init(mailbox: Int, connection: Int) {
        self.mailbox = mailbox
        self.connection = connection
    }
}

/// A user's snapshot has changed, and who wants to know.
public struct Publication: Sendable, Equatable {
    public var subscriber: Subscriber
    public var answer: Answer

    public init(subscriber: Subscriber, answer: Answer) {
        self.subscriber = subscriber
        self.answer = answer
    }
}

extension EngineError {
    static let tooManyWatched = EngineError(
        .overloaded,
        "too many users are watched by this instance; unsubscribe from some, or ask another instance"
    )
    static let cannotWatch = EngineError(
        .unavailable,
        "the database cannot be reached; nothing was subscribed, try again"
    )
}
