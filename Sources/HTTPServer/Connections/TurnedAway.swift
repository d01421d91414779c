import NIOCore
import Synchronization

/// Why a connection of the HTTP port was closed, or its request refused. docs/reference.md explains each.
enum TurnedAway: String, CaseIterable, Sendable {
    case all, address, busy, head, output
}

/// How many connections the HTTP port has, and what it turned away. Written on the port's event loop, read from
/// anywhere.
final class ConnectionFigures: Sendable {
    struct Snapshot: Equatable {
        var waiting = 0
        var busy = 0
        var turnedAway: [TurnedAway: UInt64] = [:]
    }

    private let state = Mutex(Snapshot())

    var snapshot: Snapshot { state.withLock { $0 } }

    func update(_ roster: ConnectionRoster) {
        state.withLock {
            $0.waiting = roster.waitingCount
            $0.busy = roster.busyCount
        }
    }

    func count(_ reason: TurnedAway) {
        state.withLock { $0.turnedAway[reason, default: 0] += 1 }
    }

    func write(to text: inout MetricsText) {
        let snapshot = snapshot
        text.write(
            .httpConnections,
            [
                (["waiting"], .init(snapshot.waiting)), (["busy"], .init(snapshot.busy)),
            ]
        )
        text.write(
            .httpTurnedAway,
            TurnedAway.allCases.map { ([$0.rawValue], .init(snapshot.turnedAway[$0] ?? 0)) }
        )
    }
}

/// Decides when to log how many connections were turned away: shortly after the first, so that a burst is one line, and
/// then once a minute at most. No I/O.
struct TurnedAwayTally {
    /// Whoever can open connections could otherwise fill the log.
    static let interval = TimeAmount.seconds(60)
    static let gathering = TimeAmount.seconds(1)

    private var counts: [TurnedAway: Int] = [:]
    private var tellsNotBefore = NIODeadline.uptimeNanoseconds(0)

    /// - Returns: when to tell, where that is not settled yet.
    mutating func count(_ reason: TurnedAway, at now: NIODeadline) -> NIODeadline? {
        defer { counts[reason, default: 0] += 1 }
        return counts.isEmpty ? max(now + TurnedAwayTally.gathering, tellsNotBefore) : nil
    }

    /// - Returns: how many there were since the last time, and for which reasons: `all=12 head=3`.
    mutating func tell(at now: NIODeadline) -> (number: Int, reasons: String) {
        defer { counts = [:] }
        tellsNotBefore = now + TurnedAwayTally.interval
        let reasons = TurnedAway.allCases.compactMap { reason in counts[reason].map { "\(reason.rawValue)=\($0)" } }
        return (counts.values.reduce(0, +), reasons.joined(separator: " "))
    }
}
