/// The answer to a request that counts, checks or holds messages.
public enum Decision: Sendable, Hashable {
    /// The message may be sent. After `consume` it is counted and durable; after `reserve` it is held.
    case allowed(UsageStatus)
    /// An earlier call with this key was allowed: the message is counted, or held, and its answer exists or is being
    /// written. Nothing was counted now. Return the stored answer, or say that it is in progress; do not ask the model
    /// again.
    case repeated(UsageStatus)
    /// Nothing was counted. The status has the texts to show and, where waiting helps, `retryAfter`.
    case blocked(UsageStatus, reason: DenialReason)

    /// The usage after the request; of a repeated one, after the first.
    public var status: UsageStatus {
        switch self {
        case .allowed(let status), .repeated(let status), .blocked(let status, _): status
        }
    }

    /// Whether this call may send the message. False for a repeated one.
    public var isAllowed: Bool {
        if case .allowed = self { true } else { false }
    }

    /// The service did not answer, and the message was let through uncounted: see ``UnreachablePolicy/allow``.
    public var isDegraded: Bool { status.isDegraded }
}

/// The result of a release.
public struct Release: Sendable, Hashable {
    /// The messages given back. 0 if they were given back before, the hold has expired, or the count was reset.
    public var messages: Int
    /// The usage after the request.
    public var status: UsageStatus
}
