import NIOCore

/// Limits how many requests one iteration of an event loop decodes, so that no connection waits long for those with
/// many. The connections whose requests are left take turns.
///
/// @unchecked Sendable: only the event loop uses it.
final class ConnectionTurns: @unchecked Sendable {
    private let eventLoop: any EventLoop
    private var requestsInIteration = 0
    private var turnQueue = TurnQueue<LineConnectionHandler>()
    private var turnsAreScheduled = false

    init(_ eventLoop: any EventLoop) {
        self.eventLoop = eventLoop
    }

    /// Decoding so many requests takes some milliseconds. It is a count, because a clock also runs while another
    /// process has the processor.
    private static let requestsPerIteration = 1_024

    /// Whether so many requests were decoded in this iteration of the event loop that the rest must wait for turns.
    var isFull: Bool { requestsInIteration >= ConnectionTurns.requestsPerIteration }

    func count(_ requests: Int) {
        // The task runs after all reads of this iteration.
        if requestsInIteration == 0, requests > 0 { eventLoop.execute { self.requestsInIteration = 0 } }
        requestsInIteration += requests
    }

    /// How long connections take turns before the event loop reads from sockets again.
    private static let turnsTime = TimeAmount.milliseconds(2)
    /// The pause is not zero: a task without delay would run before the event loop reads from sockets.
    private static let turnsPause = TimeAmount.microseconds(200)

    func wait(_ connection: LineConnectionHandler, hadTurn: Bool) {
        turnQueue.append(connection, hadTurn: hadTurn)
        scheduleTurns()
    }

    private func scheduleTurns() {
        guard !turnsAreScheduled, !turnQueue.isEmpty else { return }
        turnsAreScheduled = true
        eventLoop.scheduleTask(in: ConnectionTurns.turnsPause) { self.takeTurns() }
    }

    private func takeTurns() {
        turnsAreScheduled = false
        let end = NIODeadline.now() + ConnectionTurns.turnsTime
        while let connection = turnQueue.popFirst() {
            connection.takeTurn()
            guard NIODeadline.now() < end else { break }
        }
        scheduleTurns()
    }
}
