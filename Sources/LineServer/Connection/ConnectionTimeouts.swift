import NIOCore
import ServiceCore

/// The deadlines of one connection. Does no I/O and reads no clock: callers pass the time and schedule a timer for
/// `nextDeadline`.
struct ConnectionTimeouts {
    enum Reason: String {
        case noFirstRequest = "no complete request in time"
        case notAuthenticated = "no token in time"
        case incompleteRequest = "a request was begun and not completed in time"
        case idle
        case outputTimeout = "the peer does not read its replies"
        case lingered = "the peer did not close its side in time"
    }

    private var firstRequestBy: NIODeadline? = .distantFuture
    private var authenticatedBy: NIODeadline?
    private var idleAt = NIODeadline.distantFuture
    private var incompleteRequestBy: NIODeadline?
    private var outputDeadline: NIODeadline?
    private var lingersUntil: NIODeadline?
    private var lingersAtMostUntil = NIODeadline.distantFuture
    private var idleTimeout = TimeAmount.zero
    private var incompleteRequestTimeout = TimeAmount.zero

    mutating func start(at now: NIODeadline, _ limits: ConnectionLimits) {
        firstRequestBy = now + limits.firstRequestTimeout
        idleTimeout = limits.idleTimeout
        incompleteRequestTimeout = limits.incompleteRequestTimeout
        idleAt = now + idleTimeout
    }

    /// Complete requests were received.
    mutating func requestsReceived(at now: NIODeadline) {
        firstRequestBy = nil
        incompleteRequestBy = nil
        idleAt = now + idleTimeout
    }

    /// Starts the time to authenticate, unless it runs already.
    mutating func requireAuthentication(from now: NIODeadline, _ limits: ConnectionLimits) {
        authenticatedBy = authenticatedBy ?? now + limits.authenticationTimeout
    }

    /// The peer is authenticated, or need not be.
    mutating func authenticated() {
        authenticatedBy = nil
    }

    /// A part of a request was received. Further parts do not extend its time.
    ///
    /// - Returns: whether it is the first part.
    mutating func incompleteRequestReceived(at now: NIODeadline) -> Bool {
        guard incompleteRequestBy == nil else { return false }
        incompleteRequestBy = now + incompleteRequestTimeout
        return true
    }

    mutating func writabilityChanged(to isWritable: Bool, at now: NIODeadline, _ limits: ConnectionLimits) {
        outputDeadline = isWritable ? nil : outputDeadline ?? now + limits.outputTimeout
    }

    /// From now on the connection is open only for bytes that the peer has sent already.
    mutating func linger(from now: NIODeadline, _ limits: ConnectionLimits) {
        lingersAtMostUntil = now + limits.lingerMaximum
        lingersUntil = min(now + limits.lingerTimeout, lingersAtMostUntil)
    }

    /// Bytes were received. They extend the time of a lingering connection: the kernel answers bytes to a closed
    /// connection with a reset, which may destroy replies that the peer has not read yet.
    mutating func bytesReceived(at now: NIODeadline, _ limits: ConnectionLimits) {
        guard let until = lingersUntil else { return }
        lingersUntil = max(until, min(now + limits.lingerTimeout, lingersAtMostUntil))
    }

    var isLingering: Bool { lingersUntil != nil }

    /// When to call `expire` next.
    var nextDeadline: NIODeadline {
        let deadline =
            [firstRequestBy, incompleteRequestBy, authenticatedBy, outputDeadline, idleAt].compactMap(\.self).min()
            ?? idleAt
        return min(deadline, lingersUntil ?? deadline)
    }

    /// Why the connection must be closed now, or nil. Extends deadlines that do not apply: those of a peer that waits
    /// for a reply, and the idle time of one that is subscribed.
    ///
    /// - Parameter isIdle: all requests are answered.
    mutating func expire(at now: NIODeadline, isIdle: Bool, isSubscribed: Bool = false) -> Reason? {
        if let outputDeadline, now >= outputDeadline { return .outputTimeout }
        if let firstRequestBy, now >= firstRequestBy { return .noFirstRequest }
        guard isIdle else {
            // The request was accepted before a token was required, so it is still answered.
            if let by = authenticatedBy, now >= by { authenticatedBy = now + .milliseconds(50) }
            if now >= idleAt { idleAt = now + idleTimeout }
            if let by = incompleteRequestBy, now >= by { incompleteRequestBy = now + incompleteRequestTimeout }
            if let until = lingersUntil, now >= until { lingersUntil = now + .milliseconds(50) }
            return nil
        }
        if let authenticatedBy, now >= authenticatedBy { return .notAuthenticated }
        if let lingersUntil, now >= lingersUntil { return .lingered }
        if let incompleteRequestBy, now >= incompleteRequestBy { return .incompleteRequest }
        guard now >= idleAt else { return nil }
        guard isSubscribed else { return .idle }
        idleAt = now + idleTimeout
        return nil
    }
}
