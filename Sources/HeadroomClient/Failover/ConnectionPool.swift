import Logging
import NIOCore
import Synchronization
import Usage

/// Hands out connections, and opens them when somebody asks.
final class ConnectionPool: Sendable {
    enum Access: Sendable {
        case connection(Connection)
        case unreachable(cause: (any Error)?)
        case refused(HeadroomError)
        case cancelled
    }

    private typealias Endpoints = EndpointsStateMachine<Connection>

    private struct Waiter {
        let continuation: UnsafeContinuation<Access, Never>
        let deadline: NIODeadline
    }

    private struct State {
        var endpoints: Endpoints
        var waiters: [UInt64: Waiter] = [:]
        /// When it is looked next for waiters whose time is over.
        var looksAt: NIODeadline?
        /// Why the last connection failed.
        var lastFailure: (any Error)?
        /// A try is planned for when an endpoint may be tried again.
        var hasPlan = false
        var isClosed = false
        var generator = SystemRandomNumberGenerator()

        mutating func takeWaiters() -> [Waiter] {
            defer { waiters = [:] }
            return Array(waiters.values)
        }
    }

    private let configuration: HeadroomClient.Configuration
    private let connector: Connector
    private let state: Mutex<State>
    private let metrics: ClientMetrics
    private let logger: Logger
    private let told: @Sendable (UsageStatus) -> Void

    /// - Parameter told: what the service tells of users whom a connection has subscribed to.
    init(
        _ configuration: HeadroomClient.Configuration,
        connector: Connector,
        metrics: ClientMetrics,
        logger: Logger,
        told: @escaping @Sendable (UsageStatus) -> Void = { _ in }
    ) {
        self.told = told
        self.configuration = configuration
        self.connector = connector
        self.metrics = metrics
        self.logger = logger
        let endpoints = Endpoints(
            endpoints: configuration.endpoints.count,
            connectionsPerEndpoint: configuration.connectionsPerEndpoint,
            backoff: Backoff(range: configuration.backoff)
        )
        state = Mutex(State(endpoints: endpoints))
    }

    deinit {
        for connection in state.withLock({ $0.endpoints.connections }) { connection.cut() }
    }

    /// A connection, as soon as one is open.
    func connection(id: UInt64, until deadline: NIODeadline) async -> Access {
        let open = state.withLock { state in (state.endpoints.choose(), state.endpoints.isComplete) }
        if let connection = open.0 {
            if !open.1 { proceed() }
            return .connection(connection)
        }
        return await withTaskCancellationHandler {
            // Unsafe: each waiter is taken out of the dictionary once, and resumed by whoever takes it.
            await withUnsafeContinuation { continuation in
                wait(continuation, id: id, until: deadline)
                // A cancellation before this has found nothing to cancel.
                if Task.isCancelled { cancel(id) }
            }
        } onCancel: {
            cancel(id)
        }
    }

    private func wait(_ continuation: UnsafeContinuation<Access, Never>, id: UInt64, until deadline: NIODeadline) {
        let (atOnce, looksEarlier) = state.withLock { state -> (Access?, Bool) in
            if state.isClosed { return (.refused(.shutDown), false) }
            if let connection = state.endpoints.choose() { return (.connection(connection), false) }
            state.waiters[id] = Waiter(continuation: continuation, deadline: deadline)
            if let looksAt = state.looksAt, looksAt <= deadline { return (nil, false) }
            state.looksAt = deadline
            return (nil, true)
        }
        if looksEarlier { look(at: deadline) }
        if let atOnce { continuation.resume(returning: atOnce) } else { proceed() }
    }

    private func cancel(_ id: UInt64) {
        state.withLock { $0.waiters.removeValue(forKey: id) }?.continuation.resume(returning: .cancelled)
    }

    /// One timer for all: thousands wait where nobody can be reached, and an event loop takes long to cancel as many.
    private func look(at deadline: NIODeadline) {
        connector.group.any().scheduleTask(deadline: deadline) { [weak self] in self?.expire(deadline) }
    }

    private func expire(_ looked: NIODeadline) {
        let now = NIODeadline.now()
        let (expired, cause, next) = state.withLock { state -> ([Waiter], (any Error)?, NIODeadline?) in
            // Another timer is set for earlier, or has been.
            guard state.looksAt == looked else { return ([], nil, nil) }
            var expired: [Waiter] = []
            var earliest: NIODeadline?
            for (id, waiter) in state.waiters {
                if waiter.deadline <= now {
                    expired.append(waiter)
                    state.waiters[id] = nil
                } else {
                    earliest = min(earliest ?? waiter.deadline, waiter.deadline)
                }
            }
            // Each look goes through all that wait, so those whose time is over within a moment share one.
            state.looksAt = earliest.map { max($0, now + .milliseconds(1)) }
            return (expired, state.lastFailure, state.looksAt)
        }
        for waiter in expired { waiter.continuation.resume(returning: .unreachable(cause: cause)) }
        if let next { look(at: next) }
    }

    /// Does what the endpoints' machine wants next.
    private func proceed() {
        let next = state.withLock { state -> Endpoints.Next in
            guard !state.isClosed else { return .nothing }
            let next = state.endpoints.next(now: .now())
            guard case .wait = next else { return next }
            // Nobody is waiting for a connection, or somebody has planned the same.
            guard !state.hasPlan, !state.waiters.isEmpty else { return .nothing }
            state.hasPlan = true
            return next
        }
        switch next {
        case .nothing: break
        case .connect(let attempts):
            for attempt in attempts { connect(attempt) }
        case .wait(let until):
            connector.group.any().scheduleTask(deadline: until) { [weak self] in
                self?.state.withLock { $0.hasPlan = false }
                self?.proceed()
            }
        }
    }

    private func connect(_ attempt: Endpoints.Attempt) {
        let endpoint = configuration.endpoints[attempt.endpoint]
        Task { [weak self, connector, told] in
            do {
                let connection = try await connector.connect(to: endpoint) { [weak self] event in
                    switch event {
                    case .answered: self?.state.withLock { $0.endpoints.answered(attempt) }
                    case .told(let status): told(status)
                    case .retiring: self?.closed(attempt, cause: nil)
                    case .left: self?.left(attempt)
                    case .closed(let cause): self?.closed(attempt, cause: cause)
                    }
                }
                guard let self else { return connection.cut() }
                self.opened(attempt, connection)
            } catch {
                self?.ended(attempt, cause: error)
            }
        }
    }

    private func opened(_ attempt: Endpoints.Attempt, _ connection: Connection) {
        let (isWanted, waiters) = state.withLock { state in
            guard !state.isClosed, state.endpoints.opened(attempt, connection) else { return (false, [Waiter]()) }
            return (true, state.takeWaiters())
        }
        guard isWanted else {
            connection.cut()
            return ended(attempt, cause: nil)
        }
        metrics.connectionOpened()
        logger.debug("connected", metadata: ["endpoint": "\(configuration.endpoints[attempt.endpoint])"])
        for waiter in waiters { waiter.continuation.resume(returning: .connection(connection)) }
        proceed()
    }

    /// No loss, and nothing that speaks against the endpoint.
    private func left(_ attempt: Endpoints.Attempt) {
        state.withLock { $0.endpoints.left(attempt) }
        logger.debug("connection closed", metadata: ["endpoint": "\(configuration.endpoints[attempt.endpoint])"])
    }

    private func closed(_ attempt: Endpoints.Attempt, cause: (any Error)?) {
        end(attempt, cause: cause) { $0.endpoints.closed(attempt, now: .now(), using: &$0.generator) }
    }

    private func ended(_ attempt: Endpoints.Attempt, cause: (any Error)?) {
        end(attempt, cause: cause) { $0.endpoints.ended(attempt, now: .now(), using: &$0.generator) }
    }

    private func end(_ attempt: Endpoints.Attempt, cause: (any Error)?, by change: (inout State) -> Endpoints.End) {
        // The service would refuse the same token again, for each waiting request.
        let refusal = (cause as? HeadroomError).flatMap { $0.isPassing ? nil : $0 }
        let (end, refused) = state.withLock { state in
            let end = change(&state)
            // What the client itself has closed is no news.
            guard !state.isClosed else { return (Endpoints.End.known, [Waiter]()) }
            state.lastFailure = cause ?? state.lastFailure
            guard refusal != nil, state.endpoints.openCount == 0 else { return (end, []) }
            return (end, state.takeWaiters())
        }
        if end != .known { tell(end, configuration.endpoints[attempt.endpoint], cause) }
        if let refusal { for waiter in refused { waiter.continuation.resume(returning: .refused(refusal)) } }
        if state.withLock({ !$0.waiters.isEmpty }) { proceed() }
    }

    private func tell(_ end: Endpoints.End, _ endpoint: HeadroomClient.Endpoint, _ cause: (any Error)?) {
        let metadata: Logger.Metadata = [
            "endpoint": "\(endpoint)", "cause": "\(cause.map { String(describing: $0) } ?? "the service ended it")",
        ]
        if end == .lost {
            metrics.connectionLost()
            logger.info("connection lost", metadata: metadata)
        } else {
            metrics.connectFailed()
            logger.info("could not connect", metadata: metadata)
        }
    }

    /// Opens no more, and closes what is open.
    func close() {
        let (connections, waiters) = state.withLock { state in
            state.isClosed = true
            return (state.endpoints.connections, state.takeWaiters())
        }
        for waiter in waiters { waiter.continuation.resume(returning: .refused(.shutDown)) }
        for connection in connections { connection.close() }
    }
}
