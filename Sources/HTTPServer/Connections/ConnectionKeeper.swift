import HeadroomServer
import Logging
import NIOCore

/// Closes the connections that the roster says, counts what is turned away, and tells the log of it.
///
/// @unchecked Sendable: everything is touched on the port's one event loop only.
final class ConnectionKeeper: @unchecked Sendable {
    let times: RequestClock.Limits
    private var roster: ConnectionRoster
    private var gates: [Int: ConnectionGate] = [:]
    private let figures: ConnectionFigures
    private var tally = TurnedAwayTally()
    private let logger: Logger

    init(
        _ limits: ConnectionRoster.Limits,
        _ times: RequestClock.Limits,
        figures: ConnectionFigures,
        logger: Logger
    ) {
        roster = ConnectionRoster(limits)
        self.times = times
        self.figures = figures
        self.logger = logger
    }

    /// - Returns: the connection's number.
    func arrive(_ gate: ConnectionGate, from network: PeerNetwork?, on eventLoop: any EventLoop) -> Int {
        let arrival = roster.arrive(from: network)
        gates[arrival.number] = gate
        figures.update(roster)
        for closing in arrival.closing {
            turnAway(closing.reason, on: eventLoop)
            gates.removeValue(forKey: closing.number)?.close()
        }
        return arrival.number
    }

    /// - Returns: false where the request is to be refused.
    func begin(_ number: Int, asksForHealth: Bool, on eventLoop: any EventLoop) -> Bool {
        let isTaken = roster.begin(number, asksForHealth: asksForHealth)
        figures.update(roster)
        if !isTaken { turnAway(.busy, on: eventLoop) }
        return isTaken
    }

    func wait(_ number: Int) {
        roster.wait(number)
        figures.update(roster)
    }

    func leave(_ number: Int) {
        gates[number] = nil
        roster.leave(number)
        figures.update(roster)
    }

    /// The service shuts down: connections that wait are closed, the others when they are answered.
    func quiesce() {
        for gate in Array(gates.values) { gate.quiesce() }
    }

    func turnAway(_ reason: TurnedAway, on eventLoop: any EventLoop) {
        figures.count(reason)
        guard let time = tally.count(reason, at: eventLoop.now) else { return }
        eventLoop.scheduleTask(deadline: time) {
            let (number, reasons) = self.tally.tell(at: eventLoop.now)
            self.logger.warning(
                "connections of the HTTP side were closed or refused to keep its limits",
                metadata: ["connections": "\(number)", "reasons": "\(reasons)"]
            )
        }
    }
}
