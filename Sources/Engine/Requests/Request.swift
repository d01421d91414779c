import Usage

/// What a connection asks of the store.
public enum EngineOperation: Sendable, Equatable {
    /// Count so many messages, all or nothing; with a key, once.
    case consume(Int, key: MessageKey? = nil)
    /// Hold so many messages for so many seconds.
    case reserve(Int, key: MessageKey, ttlSeconds: Int)
    /// Count what a key holds.
    case commit(MessageKey)
    /// Give back what a key holds or has counted.
    case release(MessageKey)
    /// Say what `consume` would do.
    case check(Int)
    /// The snapshot now.
    case usage
    /// A row of the past, or of now, by its label.
    case usageInPeriod(BillingPeriod)
    /// So many periods, newest first.
    case history(Int)
    case setPlan(PlanChange)
    /// Raise this period's limit by so many messages, once per key.
    case grant(Int, key: MessageKey, reason: String?)
    /// Count back to 0; nil is the current period.
    case resetUsage(BillingPeriod?)
    /// Delete all that is known of the user.
    case forget
    /// One of the changes above, made by somebody whom the audit log is to name, with a reason where the change itself
    /// takes none. Boxed, because it is rare.
    indirect case attributed(EngineOperation, actor: String, reason: String? = nil)

    /// It wants messages counted or held.
    var asksForMessages: Bool {
        switch self {
        case .consume, .reserve: true
        default: false
        }
    }

    /// Carried together with others in one statement. The rest goes alone, between two batches of its lane.
    var isBatched: Bool {
        switch self {
        case .consume, .reserve, .commit, .release, .check, .usage: true
        case .usageInPeriod, .history, .setPlan, .grant, .resetUsage, .forget, .attributed: false
        }
    }
}

/// Where an answer goes: the mailbox of an event loop, a connection there, and that connection's place for the reply.
public struct ReturnAddress: Sendable, Hashable {
    public var mailbox: Int { Int(mailboxNumber) }
    /// Four bytes and four for the time: an address is copied with every request and every answer.
    private let mailboxNumber: Int32
    /// When it was asked, in microseconds of the mailbox's own clock, which may wrap; 0 where nobody wants to know how
    /// long it took. The store only carries it.
    public var askedAtMicroseconds: UInt32
    public var connection: Int
    public var slot: UInt64

    public init(mailbox: Int, connection: Int, slot: UInt64, askedAtMicroseconds: UInt32 = 0) {
        mailboxNumber = Int32(truncatingIfNeeded: mailbox)
        self.askedAtMicroseconds = askedAtMicroseconds
        self.connection = connection
        self.slot = slot
    }
}

/// One request on its way to the database.
public struct Request: Sendable, Equatable {
    public var user: UserID
    public var operation: EngineOperation
    public var returnAddress: ReturnAddress
    /// Past this, the request is answered whatever the database does.
    public var deadline: ContinuousClock.Instant

    public init(
        user: UserID,
        operation: EngineOperation,
        returnAddress: ReturnAddress,
        deadline: ContinuousClock.Instant
    ) {
        self.user = user
        self.operation = operation
        self.returnAddress = returnAddress
        self.deadline = deadline
    }
}

/// What became of a request.
public enum Outcome: Sendable, Equatable {
    case answer(Answer)
    /// Rows of one user, or of the users with the most messages.
    case history([PeriodUsage])
    /// Done, and there is nothing to tell of it.
    case done
    case report(PeriodReport)
    case periods(AllPeriods)
    /// From now on, changes are told.
    case subscribed
    case failure(EngineError)
}

/// An outcome and where it goes.
public struct Completion: Sendable, Equatable {
    public var returnAddress: ReturnAddress
    public var outcome: Outcome

    public init(returnAddress: ReturnAddress, outcome: Outcome) {
        self.returnAddress = returnAddress
        self.outcome = outcome
    }
}

/// Takes the outcomes of a batch, all that concern one event loop at once: one hop per loop and batch.
public protocol Mailbox: AnyObject, Sendable {
    /// Called on a lane's thread; must not block.
    func deliver(_ completions: [Completion])
    /// Called on the watcher's thread; must not block.
    func publish(_ publications: [Publication])
}

/// Why a request got no answer.
public struct EngineError: Error, Sendable, Equatable {
    public enum Code: Sendable, Equatable {
        /// The database could not be reached in time; nothing was counted.
        case unavailable
        /// The database was asked and did not say in time; the request may have been counted.
        case unknown
        /// Too many requests wait; nothing was counted.
        case overloaded
        /// There is no such period or plan; nothing was changed.
        case notFound
        /// The database refused a value; nothing was changed.
        case badArgument
        /// The key means another message; nothing was counted.
        case conflict
        /// The hold's time has passed; nothing was counted.
        case expired
        /// A bug, logged with the reference.
        case `internal`
    }

    public var code: Code
    /// What was wrong and what to do.
    public var message: String
    /// When trying again is worth it, where that is known.
    public var retryAfterMilliseconds: Int?

    public init(_ code: Code, _ message: String, retryAfterMilliseconds: Int? = nil) {
        self.code = code
        self.message = message
        self.retryAfterMilliseconds = retryAfterMilliseconds
    }

    /// Trying again may help, without anything being changed.
    public var isTransient: Bool {
        switch code {
        case .unavailable, .overloaded: true
        case .unknown, .notFound, .badArgument, .conflict, .expired, .internal: false
        }
    }

    static let unavailable = EngineError(.unavailable, "the database cannot be reached; nothing was counted, try again")
    static let busy = EngineError(
        .unavailable,
        "another session holds this user's usage locked; nothing was counted, try again"
    )
    static let unknown = EngineError(
        .unknown,
        "the database did not answer in time and the message may have been counted; sending it again is safe with the same "
            + "key only"
    )
    static let keyConflict = EngineError(
        .conflict,
        "this key was used with another verb or number of messages; use a new key for a new message"
    )
    static let keyReleased = EngineError(
        .conflict,
        "this key was released; reserve again with a new key"
    )
    static let holdExpired = EngineError(
        .expired,
        "the hold's time has passed and nothing was counted; CONSUME the message with a new key"
    )
    static let noSuchKey = EngineError(
        .notFound,
        "this user has no such key; RESERVE or CONSUME with it first"
    )
    static let grantConflict = EngineError(
        .conflict,
        "this key granted another number of messages; use a new key for a new grant"
    )
    static let grantTooLarge = EngineError(
        .badArgument,
        "the limit would be more than 2147483647; grant fewer messages"
    )
    static let overloaded = EngineError(.overloaded, "too many requests are waiting; nothing was counted, try again")
}
