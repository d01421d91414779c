import Usage

/// An operation that is requested for one user.
public enum EngineOperation: Sendable, Equatable {
    /// With the parts to which the messages of a `consume`, `reserve`, `check` or `usage` belong.
    case batched(BatchedOperation, parts: MessageParts? = nil)
    /// This case is boxed, because it is rare and large.
    indirect case unbatched(UnbatchedOperation)
}

/// An operation that one statement executes together with those of other requests.
public enum BatchedOperation: Sendable, Equatable {
    /// Count this many messages, all or none; with a key, once.
    case consume(Int, key: MessageKey? = nil)
    /// Hold this many messages for some seconds.
    case reserve(Int, key: MessageKey, ttlSeconds: Int)
    /// Count this many of the messages that a key holds, and give back the rest; nil counts all.
    case commit(Int? = nil, key: MessageKey)
    /// Give back the messages that a key holds or has counted.
    case release(MessageKey)
    /// Answer as `consume` would, and count nothing.
    case check(Int)
    /// Read the current usage.
    case usage

    var key: MessageKey? {
        switch self {
        case .consume(_, let key): key
        case .reserve(_, let key, _), .commit(_, let key), .release(let key): key
        case .check, .usage: nil
        }
    }

    var isCommit: Bool { if case .commit = self { true } else { false } }

    /// Whether messages are to be counted or held.
    var countsOrHolds: Bool {
        switch self {
        case .consume, .reserve: true
        case .commit, .release, .check, .usage: false
        }
    }
}

/// An operation that is executed alone, between two batches of the user's lane.
public enum UnbatchedOperation: Sendable, Equatable {
    /// Read the usage of one billing period, past or current.
    case usageInPeriod(BillingPeriod, parts: MessageParts? = nil)
    /// Read the allowances of all models and members in a billing period; nil means the current one.
    case allowances(BillingPeriod?)
    /// Read this many billing periods, newest first.
    case history(Int)
    /// Make an operator's change. The audit log names the author; nil means the service's role.
    case change(OperatorChange, by: ChangeAuthor?)
}

/// A change that an operator may make about a user.
public enum OperatorChange: Sendable, Equatable {
    case setPlan(PlanChange)
    /// Raise the limit of the current period, or add a balance, once per key.
    case grant(Grant)
    /// Set the count of a period to 0; nil means the current period. With parts, only their counts are reset.
    case resetUsage(BillingPeriod?, parts: MessageParts? = nil)
    /// End the open window, if there is one; the period's count stays. With parts, only their windows end.
    case closeWindow(parts: MessageParts? = nil)
    /// Delete all data of the user.
    case forget
}

/// The author of a change and the reason, for the audit log.
public struct ChangeAuthor: Sendable, Equatable {
    /// The actor's name; empty for the session's role.
    public var actor: String
    /// The reason, for a change that has no member for it.
    public var reason: String?

    public init(actor: String, reason: String? = nil) {
        self.actor = actor
        self.reason = reason
    }
}

/// Constructors with each operation's own name.
extension EngineOperation {
    public static func consume(_ messages: Int, key: MessageKey? = nil) -> Self {
        .batched(.consume(messages, key: key))
    }
    public static func reserve(_ messages: Int, key: MessageKey, ttlSeconds: Int) -> Self {
        .batched(.reserve(messages, key: key, ttlSeconds: ttlSeconds))
    }
    public static func commit(_ messages: Int? = nil, key: MessageKey) -> Self {
        .batched(.commit(messages, key: key))
    }
    public static func release(_ key: MessageKey) -> Self { .batched(.release(key)) }
    public static func check(_ messages: Int) -> Self { .batched(.check(messages)) }
    public static var usage: Self { .batched(.usage) }
    public static func usageInPeriod(_ period: BillingPeriod, parts: MessageParts? = nil) -> Self {
        .unbatched(.usageInPeriod(period, parts: parts))
    }
    public static func allowances(_ period: BillingPeriod?) -> Self { .unbatched(.allowances(period)) }
    public static func history(_ periods: Int) -> Self { .unbatched(.history(periods)) }
    public static func change(_ change: OperatorChange, by author: ChangeAuthor? = nil) -> Self {
        .unbatched(.change(change, by: author))
    }
    public static func setPlan(_ plan: PlanChange) -> Self { .change(.setPlan(plan)) }
    public static func grant(_ grant: Grant) -> Self { .change(.grant(grant)) }
    public static func resetUsage(_ period: BillingPeriod?, parts: MessageParts? = nil) -> Self {
        .change(.resetUsage(period, parts: parts))
    }
    public static func closeWindow(parts: MessageParts? = nil) -> Self { .change(.closeWindow(parts: parts)) }
    public static var closeWindow: Self { closeWindow() }
    public static var forget: Self { .change(.forget) }

    /// The operation for messages that belong to parts; nil means none.
    public func inParts(_ parts: MessageParts?) -> Self {
        guard let parts, case .batched(let operation, _) = self else { return self }
        return .batched(operation, parts: parts)
    }
}

/// A request on its way to its lane.
public struct Request: Sendable, Equatable {
    public var user: UserID
    public var operation: EngineOperation
    public var returnAddress: ReturnAddress
    /// The time at which the request is answered even if the database has not replied.
    public var deadline: Deadline

    public init(user: UserID, operation: EngineOperation, returnAddress: ReturnAddress, deadline: Deadline) {
        self.user = user
        self.operation = operation
        self.returnAddress = returnAddress
        self.deadline = deadline
    }
}

// The next two types have the same fields. One generic type for both would take 13 % more instructions in the queue and
// up to 23 % more in a batch (script/microbench).

/// A request that its lane executes together with others.
struct BatchedRequest: Sendable, Equatable {
    var user: UserID
    var operation: BatchedOperation
    var parts: MessageParts?
    var returnAddress: ReturnAddress
    var deadline: Deadline
}

extension BatchedRequest {
    /// Makes it of a request; nil if the request is executed alone.
    init?(_ request: Request) {
        guard case .batched(let operation, let parts) = request.operation else { return nil }
        self.init(
            user: request.user,
            operation: operation,
            parts: parts,
            returnAddress: request.returnAddress,
            deadline: request.deadline
        )
    }
}

extension Request {
    init(_ request: BatchedRequest) {
        self.init(
            user: request.user,
            operation: .batched(request.operation, parts: request.parts),
            returnAddress: request.returnAddress,
            deadline: request.deadline
        )
    }
}

extension Request {
    init(_ request: UnbatchedRequest) {
        self.init(
            user: request.user,
            operation: .unbatched(request.operation),
            returnAddress: request.returnAddress,
            deadline: request.deadline
        )
    }
}

/// A request that its lane executes alone.
struct UnbatchedRequest: Sendable, Equatable {
    var user: UserID
    var operation: UnbatchedOperation
    var returnAddress: ReturnAddress
    var deadline: Deadline
}

extension UnbatchedRequest {
    /// Makes it of a request; nil if the request is executed together with others.
    init?(_ request: Request) {
        guard case .unbatched(let operation) = request.operation else { return nil }
        self.init(
            user: request.user,
            operation: operation,
            returnAddress: request.returnAddress,
            deadline: request.deadline
        )
    }
}
