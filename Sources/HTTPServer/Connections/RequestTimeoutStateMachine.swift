import NIOCore

/// The deadlines of one connection of the HTTP port. Takes events with their times, returns the next deadline; no I/O.
struct RequestTimeoutStateMachine {
    struct Limits: Equatable, Sendable {
        /// The most time from connecting to a complete head, including the TLS handshake.
        var firstHead: TimeAmount
        /// The most time from a request's first byte to its complete head.
        var head: TimeAmount
        /// The most time that a peer takes to read its responses.
        var output: TimeAmount
        /// The most time without a byte while no response is due.
        var idle: TimeAmount
    }

    private let limits: Limits
    private var headDeadline: NIODeadline?
    private var outputDeadline: NIODeadline?
    /// When the last byte was received or the last response was sent.
    private var lastActivity = NIODeadline.uptimeNanoseconds(0)
    /// HTTP/2: a byte need not begin a request's head.
    private(set) var isMultiplexed = false
    /// Requests whose head has been received, and whose last byte has not: at most one without HTTP/2.
    private var incomplete = 0
    private var isWritable = true
    /// Requests whose response the kernel does not have yet.
    private(set) var unanswered = 0
    /// Those of them whose response is written completely.
    private var unsent = 0

    init(_ limits: Limits) {
        self.limits = limits
    }

    mutating func connected(at now: NIODeadline) {
        headDeadline = now + limits.firstHead
        lastActivity = now
    }

    var isWithinRequest: Bool { incomplete > 0 }

    /// The peer has chosen HTTP/2. From now on, only the first head has a deadline.
    mutating func multiplexed() {
        isMultiplexed = true
    }

    /// Further bytes do not extend a head's deadline.
    mutating func bytesReceived(at now: NIODeadline) {
        lastActivity = now
        guard !isWithinRequest, !isMultiplexed else { return }
        headDeadline = headDeadline ?? now + limits.head
    }

    mutating func headReceived() {
        headDeadline = nil
        incomplete += 1
        unanswered += 1
    }

    mutating func requestEnded() {
        incomplete = max(0, incomplete - 1)
    }

    /// A response is written completely; the peer has to read it.
    mutating func responseWritten(at now: NIODeadline) {
        unsent += 1
        outputDeadline = outputDeadline ?? now + limits.output
    }

    /// The kernel has all of a response.
    mutating func responseSent(at now: NIODeadline) {
        lastActivity = now
        unsent = max(0, unsent - 1)
        // Malformed input is answered too, without a request.
        unanswered = max(0, unanswered - 1)
        outputDeadline = unsent > 0 || !isWritable ? now + limits.output : nil
        // A part of the next head may have come before this response; the rest was not read until now.
        if unanswered == 0, headDeadline != nil { headDeadline = now + limits.head }
    }

    /// A stream of HTTP/2 has ended, whether its response was sent or not.
    mutating func streamEnded(at now: NIODeadline) {
        lastActivity = now
        unanswered = max(0, unanswered - 1)
    }

    mutating func writabilityChanged(_ isWritable: Bool, at now: NIODeadline) {
        self.isWritable = isWritable
        if !isWritable {
            outputDeadline = outputDeadline ?? now + limits.output
        } else if unsent == 0 {
            outputDeadline = nil
        }
    }

    /// When to call `isIdle` and `expired` next; nil if no timeout is running.
    var nextDeadline: NIODeadline? { [peerDeadline, idleDeadline].compactMap(\.self).min() }

    /// When the peer must have sent a head or read a response.
    var peerDeadline: NIODeadline? {
        let headDeadline = unanswered == 0 ? headDeadline : nil
        return [headDeadline, outputDeadline].compactMap(\.self).min()
    }

    private var idleDeadline: NIODeadline? {
        unanswered == 0 || isWithinRequest ? lastActivity + limits.idle : nil
    }

    func isIdle(at now: NIODeadline) -> Bool { idleDeadline.map { now >= $0 } ?? false }

    /// - Returns: the limit that the peer has exceeded.
    func expired(at now: NIODeadline) -> RejectionReason? {
        if let outputDeadline, now >= outputDeadline { return .outputTimeout }
        if unanswered == 0, let headDeadline, now >= headDeadline { return .headTimeout }
        return nil
    }
}
