import Usage

/// Where an outcome is delivered: a mailbox, a connection of its event loop, and that connection's slot for the reply.
public struct ReturnAddress: Sendable, Hashable {
    /// The index that `BatchingEngine.register` has returned for the mailbox.
    public var mailboxIndex: Int { Int(storedMailboxIndex) }
    /// Four bytes here and four for the time, because an address is copied with every request and every outcome.
    private let storedMailboxIndex: Int32
    /// When the request was received, in microseconds of the mailbox's own clock, which may wrap. It is 0 if the
    /// latency is not measured. The engine does not read it.
    public var receivedAtMicroseconds: UInt32
    public var connection: Int
    public var slot: UInt64

    public init(mailboxIndex: Int, connection: Int, slot: UInt64, receivedAtMicroseconds: UInt32 = 0) {
        storedMailboxIndex = Int32(truncatingIfNeeded: mailboxIndex)
        self.receivedAtMicroseconds = receivedAtMicroseconds
        self.connection = connection
        self.slot = slot
    }
}

/// The result of a request.
public enum Outcome: Sendable, Equatable {
    case answer(Answer)
    /// Billing periods of one user, or of the users with the most messages.
    case periodUsages([PeriodUsage])
    /// What a user has of each limit for a model or a member, in a billing period.
    case allowances(BillingPeriod, [ReportedAllowance])
    /// The request was executed; there is nothing to return.
    case done
    case report(PeriodReport)
    case periods(AllPeriods)
    /// The subscription has begun: changes are published from now on.
    case subscribed
    case failure(EngineError)
}

/// An outcome and the address to which it is delivered.
public struct Completion: Sendable, Equatable {
    public var returnAddress: ReturnAddress
    public var outcome: Outcome

    public init(returnAddress: ReturnAddress, outcome: Outcome) {
        self.returnAddress = returnAddress
        self.outcome = outcome
    }
}

/// Receives the outcomes and publications for one event loop. The outcomes of a batch arrive in one call, so that the
/// event loop is woken once per batch.
public protocol Mailbox: AnyObject, Sendable {
    /// Called on a lane's thread; it must not block.
    func deliver(_ completions: consuming [Completion])
    /// Called on the thread of `ChangePublisher`; it must not block.
    func publish(_ publications: [Publication])
}

/// The reason why a request failed.
public struct EngineError: Error, Sendable, Equatable {
    public enum Code: Sendable, Equatable {
        /// There was no connection to the database in time, or it answered no session; nothing was counted.
        case unreachable
        /// The database is there, but did not execute the request in time or refuses requests now; nothing was counted.
        case unavailable
        /// The database received the request and did not reply in time; the request may have been counted.
        case unknown
        /// Too many requests wait; nothing was counted.
        case overloaded
        /// There is no such period or plan; nothing was changed.
        case notFound
        /// The database rejected a value; nothing was changed.
        case badArgument
        /// The key was used for another message, or was released; nothing was counted.
        case conflict
        /// The hold's time has passed; nothing was counted.
        case expired
        /// A bug; the log has the details.
        case `internal`
    }

    public var code: Code
    /// What was wrong and what to do.
    public var message: String
    /// The time after which a retry may succeed; nil if it is unknown.
    public var retryAfterMilliseconds: Int?
    /// Whether no database was there. Only after these errors may `when-unavailable` allow a message.
    public private(set) var isOutage: Bool

    public init(_ code: Code, _ message: String, retryAfterMilliseconds: Int? = nil) {
        self.code = code
        self.message = message
        self.retryAfterMilliseconds = retryAfterMilliseconds
        isOutage = code == .unreachable
    }

    /// Whether the same request may succeed later.
    public var isTransient: Bool {
        switch code {
        case .unreachable, .unavailable, .overloaded: true
        case .unknown, .notFound, .badArgument, .conflict, .expired, .internal: false
        }
    }

    static let unreachable = EngineError(.unreachable, "the database cannot be reached; nothing was counted, try again")
    static let late = EngineError(
        .unavailable,
        "the database did not execute the request in time; nothing was counted, try again"
    )
    static let sessionRefused = EngineError(
        .unavailable,
        "the database refuses the service's sessions; nothing was counted, and the service's log says why"
    )
    static let outOfResources = EngineError(
        .unavailable,
        "the database is out of resources; nothing was counted, try again later"
    )
    static let closed = EngineError(
        .unavailable,
        "this instance is shutting down; nothing was counted, try another"
    )
    static let busy = EngineError(
        .unavailable,
        "another session holds this user's usage locked; nothing was counted, try again"
    )
    static let unknown = EngineError(
        .unknown,
        "the database did not answer in time and the message may have been counted; sending it again is safe with the same "
            + "key only"
    )
    /// The outcome is unknown, and the database answered no session of the process.
    static let unanswered: EngineError = {
        var error = EngineError.unknown
        error.isOutage = true
        return error
    }()
    static let keyConflict = EngineError(
        .conflict,
        "this key was used with another verb, number of messages, model or member; use a new key for a new message"
    )
    static let keyReleased = EngineError(
        .conflict,
        "key was released; a new attempt needs a new key"
    )
    static let holdExpired = EngineError(
        .expired,
        "the hold's time has passed and nothing was counted; CONSUME or RESERVE the message with a new key"
    )
    static let commitTooLarge = EngineError(
        .badArgument,
        "n is more than the key holds; nothing was counted, commit at most what was reserved"
    )
    static let noSuchKey = EngineError(
        .notFound,
        "this user has no such key; RESERVE or CONSUME with it first"
    )
    static let grantConflict = EngineError(
        .conflict,
        "this key granted another number of messages, or messages with another end; use a new key for a new grant"
    )
    static let pastGrantEnd = EngineError(
        .badArgument,
        "expires= must be in the future; without it, the messages end with the current period"
    )
    static let reservedGrantKey = EngineError(
        .badArgument,
        "key= begins with 'store:', as the keys of purchases do; choose a key that begins otherwise"
    )
    static let grantTooLarge = EngineError(
        .badArgument,
        "the limit would be more than 2147483647; grant fewer messages"
    )
    static let noSuchPeriod = EngineError(
        .notFound,
        "this user has no usage in that period; HISTORY lists the periods"
    )
    static let overloaded = EngineError(.overloaded, "too many requests are waiting; nothing was counted, try again")
}
