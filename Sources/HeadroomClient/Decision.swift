/// The answer to a request that counts, checks or holds messages.
public enum Decision: Sendable, Hashable {
    /// The message may be sent. It is counted and durable; of a check, it would be; of a reservation, it is held.
    case allowed(UsageStatus)
    /// Nothing was counted. The status has the words to show and, where waiting helps, `retryAfter`.
    case blocked(UsageStatus, reason: DenialReason)

    /// Where the user stands now.
    public var status: UsageStatus {
        switch self {
        case .allowed(let status), .blocked(let status, _): status
        }
    }

    public var isAllowed: Bool {
        if case .allowed = self { true } else { false }
    }

    /// Nobody could be asked, and the message was let through, uncounted: see ``UnreachablePolicy/allow``.
    public var isDegraded: Bool { status.isDegraded }
}

/// What a release gave back.
public struct Release: Sendable, Hashable {
    /// 0 where there was nothing to give back: it was done before, the hold's time had passed, or the count was reset.
    public var messages: Int
    /// Where the user stands now.
    public var status: UsageStatus
}
