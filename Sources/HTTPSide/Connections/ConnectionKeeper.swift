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
        close(arrival.closing, on: eventLoop)
        return arrival.number
    }

    /// - Returns: false where the request is to be refused.
    func begin(_ number: Int, asksForHealth: Bool, on eventLoop: any EventLoop) -> Bool {
        let beginning = roster.begin(number, asksForHealth: asksForHealth)
        figures.update(roster)
        guard case .taken(let closing) = beginning else {
            turnAway(.busy, on: eventLoop)
            return false
        }
        close(closing, on: eventLoop)
        return true
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

    private func close(_ closing: ConnectionRoster.Closing?, on eventLoop: any EventLoop) {
        guard let closing else { return }
        turnAway(closing.reason, on: eventLoop)
        gates.removeValue(forKey: closing.number)?.close()
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
