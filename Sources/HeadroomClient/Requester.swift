import LineProtocol
import NIOCore
import Synchronization

/// Sends requests over one pool of connections, and retries where that is safe, until an answer or the deadline.
final class Requester: Sendable {
    let configuration: HeadroomClient.Configuration
    let pool: ConnectionPool
    private let metrics: ClientMetrics
    private let lastID = Atomic<UInt64>(0)

    init(_ configuration: HeadroomClient.Configuration, pool: ConnectionPool, metrics: ClientMetrics) {
        self.configuration = configuration
        self.pool = pool
        self.metrics = metrics
    }

    /// A number that is unique among the requests of this pool.
    func nextID() -> UInt64 {
        lastID.add(1, ordering: .relaxed).newValue
    }

    /// - Parameters:
    ///   - deadline: the configuration's unless given.
    ///   - attemptTimeout: the configuration's unless given.
    func perform(
        _ command: Command,
        _ repeatability: Repeatability,
        key: MessageKey? = nil,
        deadline: Duration? = nil,
        attemptTimeout: Duration? = nil
    ) async throws(HeadroomError) -> ReceivedReply {
        let start = NIODeadline.now()
        var retrying = RetryStateMachine(
            repeatability,
            key: key,
            deadline: start + TimeAmount(deadline ?? configuration.deadline),
            attemptTimeout: attemptTimeout ?? configuration.attemptTimeout,
            hasCredentials: configuration.credentials != nil,
            backoff: Backoff(range: configuration.backoff)
        )
        var generator = SystemRandomNumberGenerator()
        while true {
            let exchange = await attempt(command, retrying)
            switch retrying.next(after: exchange, now: .now(), using: &generator) {
            case .answer(let reply):
                metrics.answered(command, nanoseconds: (NIODeadline.now() - start).nanoseconds)
                return reply
            case .fail(let error):
                metrics.failed(error)
                throw error
            case .retry(let pause):
                metrics.retried()
                // A cancellation ends the pause; the next attempt sees it.
                if pause > .zero { try? await Task.sleep(for: pause) }
            }
        }
    }

    private func attempt(_ command: Command, _ retrying: RetryStateMachine) async -> Exchange {
        // The request of a cancelled task is not sent.
        if Task.isCancelled { return .cancelled(wasSent: false) }
        let id = nextID()
        switch await pool.connection(id: id, until: retrying.deadline) {
        case .connection(let connection):
            let deadline = retrying.attemptDeadline(now: .now())
            let exchange = await connection.exchange(command, id: id, deadline: deadline)
            // This comes before the retry, which needs a connection with the current token.
            if exchange.isNotAuthenticated, configuration.credentials != nil { connection.retire() }
            return exchange
        case .unreachable(let cause): return .unreachable(cause: cause)
        case .refused(let error): return .refused(error)
        case .cancelled: return .cancelled(wasSent: false)
        }
    }
}
