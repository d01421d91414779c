/// Messages that are held while a body runs: see ``HeadroomClient/withHold(_:messages:ttl:model:member:counting:_:)``.
public struct Hold: Sendable {
    public let user: UserID
    /// Identifies the message: for a retry, or to release it after it was counted.
    public let key: MessageKey
    public let messages: Int
    /// The time after which the hold expires, from its answer on.
    public let ttl: Duration
    /// The usage with the held messages.
    public let status: UsageStatus
    /// The service did not answer: nothing is held, and nothing will be counted. See ``UnreachablePolicy/allow``.
    public var isDegraded: Bool { status.isDegraded }
}

/// The outcome of a body and of its hold.
public enum HoldOutcome<Result> {
    /// The body has run, and the messages are counted.
    case completed(Result, Decision)
    /// The body has not run, because the user may not send the messages. Nothing was counted.
    case blocked(UsageStatus, reason: DenialReason)
    /// The body has run and took longer than the hold: nothing was counted. The caller can count now with
    /// ``HeadroomClient/consume(_:messages:key:model:member:deadline:)``, if the limit allows it.
    case expired(Result)
    /// The body has run, and no answer says whether the messages are counted. If the error is transient, the client
    /// retries until the hold expires.
    case uncommitted(Result, HeadroomError)

    /// What the body returned; nil when it has not run.
    public var result: Result? {
        switch self {
        case .completed(let result, _), .expired(let result), .uncommitted(let result, _): result
        case .blocked: nil
        }
    }
}

extension HoldOutcome: Sendable where Result: Sendable {}
