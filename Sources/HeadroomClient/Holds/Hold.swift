/// Messages that are held while a body runs: see ``HeadroomClient/withHold(_:messages:ttl:_:)``.
public struct Hold: Sendable {
    public let user: UserID
    /// The name by which the message is known: for a retry, or for `RELEASE` after it was counted.
    public let key: MessageKey
    public let messages: Int
    /// How long it holds, from when it was answered.
    public let ttl: Duration
    /// Where the user stands with the messages held.
    public let status: UsageStatus
    /// Nobody could be asked: nothing is held, and nothing will be counted. See ``UnreachablePolicy/allow``.
    public var isDegraded: Bool { status.isDegraded }
}

/// What became of a body and of what was held for it.
public enum HoldOutcome<Result> {
    /// The body has run, and the messages are counted.
    case completed(Result, Decision)
    /// The body has not run: the user may not send so many. Nothing was counted.
    case blocked(UsageStatus, reason: DenialReason)
    /// The body has run, and took longer than the hold: nothing was counted. Whether to count now, with
    /// ``HeadroomClient/consume(_:messages:key:deadline:)``, is the caller's decision: the user may be over the limit by it.
    case expired(Result)
    /// The body has run, and nobody answered in time whether the messages are counted. Where the error is transient, the
    /// client goes on asking until the hold's time is over.
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
