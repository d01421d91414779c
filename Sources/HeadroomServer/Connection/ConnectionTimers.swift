import LineProtocol
import NIOCore

/// How much one connection may have and how long it may take. The settings' documentation says what each is for.
struct ConnectionLimits: Sendable {
    var request: RequestLimits
    var inFlightMaximum: Int
    var outputBytesMaximum: Int
    var outputTimeout: TimeAmount
    var idleTimeout: TimeAmount
    var firstRequestTimeout: TimeAmount
    var incompleteRequestTimeout: TimeAmount = .seconds(10)
    var connectionsMaximum: Int
    var connectionsPerAddressMaximum = Int.max
    var allowsWhenUnavailable: Bool
    var subscriptionsMaximum = 1_024
    /// How long a peer may be unknown where a token is required.
    var authenticationTimeout: TimeAmount = .seconds(10)
    /// How long a connection that is ended, or that says nothing while the service drains, is kept open for what may
    /// still be on its way.
    var lingerTimeout: TimeAmount = .milliseconds(250)
    /// How long at most, where the peer goes on sending.
    var lingerMaximum: TimeAmount = .seconds(8)
    /// The same of a connection that was refused: it has nothing on its way but what it sent before it could read why.
    var refusalLingerMaximum: TimeAmount = .seconds(1)
    /// How much of a peer that goes on sending is read and thrown away before its connection closes: more than was on its way,
    /// in buffers of both kernels, when it was ended.
    static let discardedBytesMaximum = 16 << 20
}

extension ConnectionLimits {
    /// Enough for a name and a token in every framing, and little to gather from somebody unknown.
    private static let bytesBeforeAuthentication = 512

    var requestBeforeAuthentication: RequestLimits {
        var request = request
        request.requestSizeBytes = min(request.requestSizeBytes, ConnectionLimits.bytesBeforeAuthentication)
        return request
    }
}

/// When a connection has taken too long at something. Sans-IO: told the time, asked for the next deadline.
struct ConnectionTimers {
    enum Reason: String {
        case noFirstRequest = "no complete request in time"
        case notAuthenticated = "no token in time"
        case incompleteRequest = "a request was begun and not completed in time"
        case idle
        case outputStuck = "the peer does not read its replies"
        case lingered
    }

    private var firstRequestBy: NIODeadline? = .distantFuture
    private var authenticatedBy: NIODeadline?
    private var idleAt = NIODeadline.distantFuture
    private var incompleteRequestBy: NIODeadline?
    private var outputStuckAt: NIODeadline?
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

    /// Complete requests came.
    mutating func requestsCame(at now: NIODeadline) {
        firstRequestBy = nil
        incompleteRequestBy = nil
        idleAt = now + idleTimeout
    }

    /// The peer has to say who it is, from the first time on that this is said until it is authenticated.
    mutating func awaitsAuthentication(from now: NIODeadline, _ limits: ConnectionLimits) {
        authenticatedBy = authenticatedBy ?? now + limits.authenticationTimeout
    }

    /// Or need not say it any more.
    mutating func authenticated() {
        authenticatedBy = nil
    }

    /// A part of a request came. Further parts do not give it more time.
    ///
    /// - Returns: whether it is the first part.
    mutating func requestIsIncomplete(at now: NIODeadline) -> Bool {
        guard incompleteRequestBy == nil else { return false }
        incompleteRequestBy = now + incompleteRequestTimeout
        return true
    }

    mutating func writability(_ isWritable: Bool, at now: NIODeadline, _ limits: ConnectionLimits) {
        outputStuckAt = isWritable ? nil : outputStuckAt ?? now + limits.outputTimeout
    }

    /// From now on the connection is open only for what may still be on its way.
    mutating func lingers(from now: NIODeadline, _ limits: ConnectionLimits) {
        lingersAtMostUntil = now + limits.lingerMaximum
        lingersUntil = min(now + limits.lingerTimeout, lingersAtMostUntil)
    }

    /// Bytes came. A connection that lingers is kept open for as long again: what comes to a closed one is answered with a
    /// reset, which makes the peer's kernel discard the replies that the peer has not read yet.
    mutating func bytesCame(at now: NIODeadline, _ limits: ConnectionLimits) {
        guard let until = lingersUntil else { return }
        lingersUntil = max(until, min(now + limits.lingerTimeout, lingersAtMostUntil))
    }

    var lingers: Bool { lingersUntil != nil }

    /// When to look again.
    func next(isIdle: Bool) -> NIODeadline {
        let always =
            [firstRequestBy, incompleteRequestBy, authenticatedBy, outputStuckAt, idleAt].compactMap(\.self).min()
            ?? idleAt
        return min(always, lingersUntil ?? always)
    }

    /// Why the connection has to close now, or nil. Who waits for an answer of ours is neither idle nor lingering, and
    /// who listens for messages is not idle.
    mutating func expired(at now: NIODeadline, isIdle: Bool, listens: Bool = false) -> Reason? {
        if let outputStuckAt, now >= outputStuckAt { return .outputStuck }
        if let firstRequestBy, now >= firstRequestBy { return .noFirstRequest }
        guard isIdle else {
            // Asked before a token was required: it is still answered.
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
        guard listens else { return .idle }
        idleAt = now + idleTimeout
        return nil
    }
}
