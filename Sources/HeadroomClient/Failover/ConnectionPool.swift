import Logging
import NIOCore
import Synchronization
import Usage

/// Opens connections on demand and hands them out.
final class ConnectionPool: Sendable {
    enum Access: Sendable {
        case connection(PipelinedConnection)
        case unreachable(cause: (any Error)?)
        case refused(HeadroomError)
        case cancelled
    }

    private typealias Endpoints = EndpointsStateMachine<PipelinedConnection>

    private struct Waiter {
        let continuation: UnsafeContinuation<Access, Never>
        let deadline: NIODeadline
    }

    private struct State {
        var endpoints: Endpoints
        var waiters: [UInt64: Waiter] = [:]
        /// When the next check for expired waiters is scheduled.
        var expiryCheckAt: NIODeadline?
        /// Why the last connection failed.
        var lastFailure: (any Error)?
        /// A retry is scheduled for when an endpoint may be tried again.
        var isRetryScheduled = false
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
    private let onChange: @Sendable (UsageStatus) -> Void

    /// - Parameter onChange: called for changes of users to whom a connection has subscribed.
    init(
        _ configuration: HeadroomClient.Configuration,
        connector: Connector,
        metrics: ClientMetrics,
        logger: Logger,
        onChange: @escaping @Sendable (UsageStatus) -> Void = { _ in }
    ) {
        self.onChange = onChange
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
        for connection in state.withLock({ $0.endpoints.connections }) { connection.close() }
    }

    /// A connection, as soon as one is open.
    func connection(id: UInt64, until deadline: NIODeadline) async -> Access {
        let (connection, isSettled) = state.withLock {
            ($0.endpoints.choose(), $0.endpoints.isSettled(now: .now()))
        }
        if let connection {
            if !isSettled { proceed() }
            return .connection(connection)
        }
        return await withTaskCancellationHandler {
            // Unsafe: each waiter is taken out of the dictionary once, and resumed by the code that takes it.
            await withUnsafeContinuation { continuation in
                wait(continuation, id: id, until: deadline)
                // A cancellation before this has not found the waiter.
                if Task.isCancelled { cancel(id) }
            }
        } onCancel: {
            cancel(id)
        }
    }

    private func wait(_ continuation: UnsafeContinuation<Access, Never>, id: UInt64, until deadline: NIODeadline) {
        let (access, needsCheck) = state.withLock { state -> (Access?, Bool) in
            if state.isClosed { return (.refused(.shutDown), false) }
            if let connection = state.endpoints.choose() { return (.connection(connection), false) }
            state.waiters[id] = Waiter(continuation: continuation, deadline: deadline)
            if let expiryCheckAt = state.expiryCheckAt, expiryCheckAt <= deadline { return (nil, false) }
            state.expiryCheckAt = deadline
            return (nil, true)
        }
        if needsCheck { scheduleExpiryCheck(at: deadline) }
        if let access { continuation.resume(returning: access) } else { proceed() }
    }

    private func cancel(_ id: UInt64) {
        state.withLock { $0.waiters.removeValue(forKey: id) }?.continuation.resume(returning: .cancelled)
    }

    /// One timer for all waiters: without a reachable endpoint there are thousands, and cancelling as many timers is
    /// slow.
    private func scheduleExpiryCheck(at deadline: NIODeadline) {
        connector.group.any().scheduleTask(deadline: deadline) { [weak self] in self?.expire(deadline) }
    }

    private func expire(_ scheduled: NIODeadline) {
        let now = NIODeadline.now()
        let (expired, cause, next) = state.withLock { state -> ([Waiter], (any Error)?, NIODeadline?) in
            // An earlier check has replaced this one.
            guard state.expiryCheckAt == scheduled else { return ([], nil, nil) }
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
            // Each check scans all waiters, so those that expire within the same millisecond share one.
            state.expiryCheckAt = earliest.map { max($0, now + .milliseconds(1)) }
            return (expired, state.lastFailure, state.expiryCheckAt)
        }
        for waiter in expired { waiter.continuation.resume(returning: .unreachable(cause: cause)) }
        if let next { scheduleExpiryCheck(at: next) }
    }

    /// Performs the next action of the endpoints' state machine.
    private func proceed() {
        let next = state.withLock { state -> Endpoints.Next in
            guard !state.isClosed else { return .nothing }
            let next = state.endpoints.next(now: .now())
            guard case .wait = next else { return next }
            // Nothing waits for a connection, or the retry is scheduled already.
            guard !state.isRetryScheduled, !state.waiters.isEmpty else { return .nothing }
            state.isRetryScheduled = true
            return next
        }
        switch next {
        case .nothing: break
        case .connect(let attempts):
            for attempt in attempts { connect(attempt) }
        case .wait(let until):
            connector.group.any().scheduleTask(deadline: until) { [weak self] in
                self?.state.withLock { $0.isRetryScheduled = false }
                self?.proceed()
            }
        }
    }

    private func connect(_ attempt: Endpoints.Attempt) {
        let endpoint = configuration.endpoints[attempt.endpoint]
        Task { [weak self, connector, onChange] in
            do {
                let connection = try await connector.connect(
                    to: endpoint,
                    mustAnswer: attempt.isReturn
                ) { [weak self] event in
                    switch event {
                    case .answered: self?.state.withLock { $0.endpoints.answered(attempt) }
                    case .changed(let status): onChange(status)
                    case .retiring: self?.closed(attempt, cause: nil)
                    case .released: self?.released(attempt)
                    case .closed(let cause): self?.closed(attempt, cause: cause)
                    }
                }
                guard let self else { return connection.close() }
                self.opened(attempt, connection)
            } catch {
                self?.failed(attempt, cause: error)
            }
        }
    }

    private func opened(_ attempt: Endpoints.Attempt, _ connection: PipelinedConnection) {
        let (opened, waiters) = state.withLock { state -> (Endpoints.Opened, [Waiter]) in
            guard !state.isClosed else { return (.closed, []) }
            let opened = state.endpoints.opened(attempt, connection)
            if case .closed = opened { return (opened, []) }
            return (opened, state.takeWaiters())
        }
        switch opened {
        case .accepted: break
        case .returned(let left): for connection in left { connection.retire() }
        case .closed:
            connection.close()
            return failed(attempt, cause: nil)
        }
        metrics.connectionOpened()
        logger.debug("connected", metadata: ["endpoint": "\(configuration.endpoints[attempt.endpoint])"])
        for waiter in waiters { waiter.continuation.resume(returning: .connection(connection)) }
        proceed()
    }

    /// Notes that the attempt was given up, which is no failure of the endpoint.
    private func released(_ attempt: Endpoints.Attempt) {
        state.withLock { $0.endpoints.released(attempt) }
        logger.debug("connection closed", metadata: ["endpoint": "\(configuration.endpoints[attempt.endpoint])"])
    }

    private func closed(_ attempt: Endpoints.Attempt, cause: (any Error)?) {
        recordFailure(of: attempt, cause: cause) { $0.endpoints.closed(attempt, now: .now(), using: &$0.generator) }
    }

    private func failed(_ attempt: Endpoints.Attempt, cause: (any Error)?) {
        recordFailure(of: attempt, cause: cause) { $0.endpoints.failed(attempt, now: .now(), using: &$0.generator) }
    }

    private func recordFailure(
        of attempt: Endpoints.Attempt,
        cause: (any Error)?,
        by change: (inout State) -> Endpoints.Failure
    ) {
        // The service would refuse the same token for each waiting request.
        let refusal = (cause as? HeadroomError).flatMap { $0.isTemporary ? nil : $0 }
        let (failure, refused) = state.withLock { state in
            let failure = change(&state)
            // The client itself has closed it.
            guard !state.isClosed else { return (Endpoints.Failure.nothingToReport, [Waiter]()) }
            state.lastFailure = cause ?? state.lastFailure
            guard refusal != nil, state.endpoints.openCount == 0 else { return (failure, []) }
            return (failure, state.takeWaiters())
        }
        if failure != .nothingToReport { report(failure, configuration.endpoints[attempt.endpoint], cause) }
        if let refusal { for waiter in refused { waiter.continuation.resume(returning: .refused(refusal)) } }
        if state.withLock({ !$0.waiters.isEmpty }) { proceed() }
    }

    private func report(_ failure: Endpoints.Failure, _ endpoint: HeadroomClient.Endpoint, _ cause: (any Error)?) {
        let metadata: Logger.Metadata = [
            "endpoint": "\(endpoint)", "cause": "\(cause.map { String(describing: $0) } ?? "the service ended it")",
        ]
        if failure == .lost {
            metrics.connectionLost()
            logger.info("connection lost", metadata: metadata)
        } else {
            metrics.connectFailed()
            logger.info("could not connect", metadata: metadata)
        }
    }

    /// Closes all connections and opens no more.
    func close() {
        let (connections, waiters) = state.withLock { state in
            state.isClosed = true
            return (state.endpoints.connections, state.takeWaiters())
        }
        for waiter in waiters { waiter.continuation.resume(returning: .refused(.shutDown)) }
        for connection in connections { connection.retire() }
    }
}
