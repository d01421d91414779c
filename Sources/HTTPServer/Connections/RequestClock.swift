import NIOCore

/// When a connection of the HTTP port has taken too long at something. Told the time, asked for the next deadline; no
/// I/O.
struct RequestClock {
    struct Limits: Equatable, Sendable {
        /// From connecting to a complete head; the TLS handshake is a part of it.
        var firstHead: TimeAmount
        /// From a request's first byte to its complete head.
        var head: TimeAmount
        /// For answers that the peer does not take.
        var output: TimeAmount
        /// Without a byte, where no answer is due.
        var idle: TimeAmount
    }

    private let limits: Limits
    private var headBy: NIODeadline?
    private var outputBy: NIODeadline?
    /// The last byte that came or answer that was sent.
    private var quietSince = NIODeadline.uptimeNanoseconds(0)
    /// Its head came, and its last byte did not.
    private(set) var isWithinRequest = false
    private var isWritable = true
    /// Requests whose answer is not with the kernel yet.
    private(set) var unanswered = 0
    /// Of those, the ones whose answer is written to its end.
    private var unsent = 0

    init(_ limits: Limits) {
        self.limits = limits
    }

    mutating func connected(at now: NIODeadline) {
        headBy = now + limits.firstHead
        quietSince = now
    }

    /// Further bytes do not give a head more time.
    mutating func bytesCame(at now: NIODeadline) {
        quietSince = now
        guard !isWithinRequest else { return }
        headBy = headBy ?? now + limits.head
    }

    mutating func headCame() {
        headBy = nil
        isWithinRequest = true
        unanswered += 1
    }

    /// The request's last byte came.
    mutating func requestEnded() {
        isWithinRequest = false
    }

    /// An answer is written to its end; the peer has to take it.
    mutating func answerWritten(at now: NIODeadline) {
        unsent += 1
        outputBy = outputBy ?? now + limits.output
    }

    /// The kernel has all of an answer.
    mutating func answerSent(at now: NIODeadline) {
        quietSince = now
        unsent = max(0, unsent - 1)
        // What is no HTTP is answered, too.
        unanswered = max(0, unanswered - 1)
        outputBy = unsent > 0 || !isWritable ? now + limits.output : nil
        // The next request may have begun while its peer waited for this answer: nothing more of it was read then.
        if unanswered == 0, headBy != nil { headBy = now + limits.head }
    }

    mutating func writabilityChanged(_ isWritable: Bool, at now: NIODeadline) {
        self.isWritable = isWritable
        if !isWritable {
            outputBy = outputBy ?? now + limits.output
        } else if unsent == 0 {
            outputBy = nil
        }
    }

    /// When to look again; nil where nothing is awaited from the peer.
    var next: NIODeadline? { [awaitedBy, idleBy].compactMap(\.self).min() }

    /// By when the peer has to send a head or take an answer.
    var awaitedBy: NIODeadline? {
        let headBy = unanswered == 0 ? headBy : nil
        return [headBy, outputBy].compactMap(\.self).min()
    }

    private var idleBy: NIODeadline? { unanswered == 0 || isWithinRequest ? quietSince + limits.idle : nil }

    func isIdle(at now: NIODeadline) -> Bool { idleBy.map { now >= $0 } ?? false }

    /// Which limit of time has passed, or nil.
    func expired(at now: NIODeadline) -> TurnedAway? {
        if let outputBy, now >= outputBy { return .output }
        if unanswered == 0, let headBy, now >= headBy { return .head }
        return nil
    }
}
