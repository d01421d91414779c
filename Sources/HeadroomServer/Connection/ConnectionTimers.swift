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
    var connectionsMaximum: Int
    var allowsWhenUnavailable: Bool
    var subscriptionsMaximum = 1_024
    /// How long a peer may be unknown where a token is required.
    var authenticationTimeout: TimeAmount = .seconds(10)
    /// How long a connection that is ended, or that says nothing while the service drains, is kept open for what may
    /// still be on its way.
    var lingerTimeout: TimeAmount = .milliseconds(250)
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
        case idle
        case outputStuck = "the peer does not read its replies"
        case lingered
    }

    private var firstRequestBy: NIODeadline? = .distantFuture
    private var authenticatedBy: NIODeadline?
    private var idleAt = NIODeadline.distantFuture
    private var outputStuckAt: NIODeadline?
    private var lingersUntil: NIODeadline?
    private var idleTimeout = TimeAmount.zero

    mutating func start(at now: NIODeadline, _ limits: ConnectionLimits) {
        firstRequestBy = now + limits.firstRequestTimeout
        idleTimeout = limits.idleTimeout
        idleAt = now + idleTimeout
    }

    /// Complete requests came.
    mutating func requestsCame(at now: NIODeadline) {
        firstRequestBy = nil
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

    mutating func writability(_ isWritable: Bool, at now: NIODeadline, _ limits: ConnectionLimits) {
        outputStuckAt = isWritable ? nil : outputStuckAt ?? now + limits.outputTimeout
    }

    mutating func lingers(from now: NIODeadline, _ limits: ConnectionLimits) {
        lingersUntil = lingersUntil ?? now + limits.lingerTimeout
    }

    /// When to look again.
    func next(isIdle: Bool) -> NIODeadline {
        let always = [firstRequestBy, authenticatedBy, outputStuckAt, idleAt].compactMap(\.self).min() ?? idleAt
        return min(always, lingersUntil ?? always)
    }

    /// Why the connection has to close now, or nil. Who waits for an answer of ours is neither idle nor lingering, and
    /// who listens for messages is not idle.
    mutating func expired(at now: NIODeadline, isIdle: Bool, listens: Bool = false) -> Reason? {
        if let outputStuckAt, now >= outputStuckAt { return .outputStuck }
        if let firstRequestBy, now >= firstRequestBy { return .noFirstRequest }
        if let authenticatedBy, now >= authenticatedBy { return .notAuthenticated }
        guard isIdle else {
            if now >= idleAt { idleAt = now + idleTimeout }
            if let until = lingersUntil, now >= until { lingersUntil = now + .milliseconds(50) }
            return nil
        }
        if let lingersUntil, now >= lingersUntil { return .lingered }
        guard now >= idleAt else { return nil }
        guard listens else { return .idle }
        idleAt = now + idleTimeout
        return nil
    }
}
