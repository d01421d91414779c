/// The answer to a request that counts, checks or holds messages.
public enum Decision: Sendable, Hashable {
    /// The message may be sent. After `consume` it is counted and durable; after `reserve` it is held.
    case allowed(UsageStatus)
    /// Nothing was counted. The status has the texts to show and, where waiting helps, `retryAfter`.
    case blocked(UsageStatus, reason: DenialReason)

    /// The usage after the request.
    public var status: UsageStatus {
        switch self {
        case .allowed(let status), .blocked(let status, _): status
        }
    }

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
