import Logging
import NIOCore
import ServiceCore

/// Enforces the limits of `ConnectionLimiterStateMachine`: closes evicted connections, counts rejections and logs them.
///
/// @unchecked Sendable: used on the port's event loop only.
final class ConnectionLimiter: @unchecked Sendable {
    let timeouts: RequestTimeoutStateMachine.Limits
    private var connections: ConnectionLimiterStateMachine
    private var handlers: [Int: ConnectionLimitHandler] = [:]
    private let metrics: ConnectionMetrics
    private var rejectionLog = RejectionLogStateMachine()
    private let logger: Logger

    init(
        _ limits: ConnectionLimiterStateMachine.Limits,
        _ timeouts: RequestTimeoutStateMachine.Limits,
        metrics: ConnectionMetrics,
        logger: Logger
    ) {
        connections = ConnectionLimiterStateMachine(limits)
        self.timeouts = timeouts
        self.metrics = metrics
        self.logger = logger
    }

    /// - Returns: the connection's id.
    func opened(_ handler: ConnectionLimitHandler, from network: PeerNetwork?, on eventLoop: any EventLoop) -> Int {
        let admission = connections.opened(from: network)
        handlers[admission.id] = handler
        metrics.update(connections)
        for eviction in admission.evictions {
            countRejection(eviction.reason, on: eventLoop)
            handlers.removeValue(forKey: eviction.id)?.close()
        }
        return admission.id
    }

    /// - Returns: false if the request must be refused.
    func requestBegan(_ id: Int, isHealthCheck: Bool, on eventLoop: any EventLoop) -> Bool {
        let isAdmitted = connections.requestBegan(id, isHealthCheck: isHealthCheck)
        metrics.update(connections)
        if !isAdmitted { countRejection(.busy, on: eventLoop) }
        return isAdmitted
    }

    /// Whether one more request may begin. If not, it must be refused, and counts as that.
    func hasRoom(for network: PeerNetwork?, on eventLoop: any EventLoop) -> Bool {
        let hasRoom = connections.hasRoom(for: network)
        if !hasRoom { countRejection(.busy, on: eventLoop) }
        return hasRoom
    }

    func becameIdle(_ id: Int) {
        connections.becameIdle(id)
        metrics.update(connections)
    }

    func closed(_ id: Int) {
        handlers[id] = nil
        connections.closed(id)
        metrics.update(connections)
    }

    /// Whether there is no connection.
    var isEmpty: Bool { handlers.isEmpty }

    /// Closes idle connections now and the others after their response, for the shutdown.
    func quiesce() {
        for handler in Array(handlers.values) { handler.quiesce() }
    }

    func countRejection(_ reason: RejectionReason, on eventLoop: any EventLoop) {
        metrics.count(reason)
        guard let time = rejectionLog.count(reason, at: eventLoop.now) else { return }
        eventLoop.scheduleTask(deadline: time) {
            let (number, reasons) = self.rejectionLog.takeSummary(at: eventLoop.now)
            self.logger.warning(
                "connections of the HTTP server were closed or refused to keep its limits",
                metadata: ["connections": "\(number)", "reasons": "\(reasons)"]
            )
        }
    }
}
