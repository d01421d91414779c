import NIOCore
import Synchronization

/// Why a connection of the HTTP port was closed, or its request refused. The raw values are labels of
/// `headroom_http_turned_away_total`.
enum RejectionReason: String, CaseIterable, Sendable {
    /// An idle connection was closed for a new one, because the port has too many.
    case connectionLimit = "all"
    /// The same, because the new connection's network has too many.
    case networkLimit = "address"
    /// A request was refused, because as many connections as permitted are busy.
    case busy
    /// The peer did not send a complete request head in time.
    case headTimeout = "head"
    /// The peer did not read its responses in time.
    case outputTimeout = "output"
}

/// The number of connections of the HTTP port, and of rejections. Written on the port's event loop, read from any
/// thread.
final class ConnectionMetrics: Sendable {
    struct Snapshot: Equatable {
        var idle = 0
        var busy = 0
        var rejections: [RejectionReason: UInt64] = [:]
    }

    private let state = Mutex(Snapshot())

    var snapshot: Snapshot { state.withLock { $0 } }

    func update(_ connections: ConnectionLimiterStateMachine) {
        state.withLock {
            $0.idle = connections.idleCount
            $0.busy = connections.busyCount
        }
    }

    func count(_ reason: RejectionReason) {
        state.withLock { $0.rejections[reason, default: 0] += 1 }
    }
}

/// Decides when the rejections since the last log line are logged: one second after the first, so that a burst is one
/// line, but at most once a minute, because any peer can cause rejections. No I/O.
struct RejectionLogStateMachine {
    static let interval = TimeAmount.seconds(60)
    static let delay = TimeAmount.seconds(1)

    private var counts: [RejectionReason: Int] = [:]
    private var earliestNext = NIODeadline.uptimeNanoseconds(0)

    /// - Returns: when to call `takeSummary`; nil if that is scheduled already.
    mutating func count(_ reason: RejectionReason, at now: NIODeadline) -> NIODeadline? {
        defer { counts[reason, default: 0] += 1 }
        return counts.isEmpty ? max(now + RejectionLogStateMachine.delay, earliestNext) : nil
    }

    /// - Returns: the number of rejections since the last summary, and their reasons: `all=12 head=3`.
    mutating func takeSummary(at now: NIODeadline) -> (number: Int, reasons: String) {
        defer { counts = [:] }
        earliestNext = now + RejectionLogStateMachine.interval
        let reasons = RejectionReason.allCases.compactMap { reason in
            counts[reason].map { "\(reason.rawValue)=\($0)" }
        }
        return (counts.values.reduce(0, +), reasons.joined(separator: " "))
    }
}
