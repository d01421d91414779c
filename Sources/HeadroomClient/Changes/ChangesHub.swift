import LineProtocol
import Logging
import NIOCore
import Synchronization

/// Runs subscriptions on a separate connection, because a RESP2 connection with subscriptions accepts no other
/// requests.
final class ChangesHub: Sendable {
    private struct State {
        var machine = SubscriptionStateMachine()
        var streams: [UInt64: AsyncStream<UsageStatus>.Continuation] = [:]
        var lastFollower: UInt64 = 0
        /// The connection in use, the latest one, and the number of connections so far.
        var connection: PipelinedConnection?
        var lastConnection: PipelinedConnection?
        var generation = 0
        var isClosed = false
    }

    private let reader: Requester
    private let requester: Requester
    private let state = Mutex(State())
    private let logger: Logger
    /// Breaks the reference cycle between the hub and the callback of its pool.
    private let relay: Relay

    private final class Relay: Sendable {
        private struct Target { weak var hub: ChangesHub? }
        private let target = Mutex(Target())

        func set(_ hub: ChangesHub) { target.withLock { $0.hub = hub } }
        var hub: ChangesHub? { target.withLock { $0.hub } }
    }

    /// - Parameters:
    ///   - reader: reads the current usage.
    ///   - makeRequester: makes the requester of the subscriptions, which calls its argument for each change.
    init(
        reader: Requester,
        logger: Logger,
        makeRequester: (@escaping @Sendable (UsageStatus) -> Void) -> Requester
    ) {
        let relay = Relay()
        self.relay = relay
        self.reader = reader
        self.logger = logger
        requester = makeRequester { status in relay.hub?.handle { $0.received(status) } }
        relay.set(self)
    }

    /// Whether the user is followed here, or fewer than `maximum` users are.
    func hasRoom(for user: UserID, maximum: Int) -> Bool {
        state.withLock { $0.machine.follows(user) || $0.machine.userCount < maximum }
    }

    func follow(_ user: UserID) -> AsyncStream<UsageStatus> {
        let (stream, continuation) = AsyncStream.makeStream(of: UsageStatus.self, bufferingPolicy: .bufferingNewest(1))
        let follower = state.withLock { state -> UInt64? in
            guard !state.isClosed else { return nil }
            state.lastFollower += 1
            state.streams[state.lastFollower] = continuation
            return state.lastFollower
        }
        guard let follower else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            self?.handle { machine in machine.removed(follower, of: user) }
            self?.state.withLock { _ = $0.streams.removeValue(forKey: follower) }
        }
        handle { $0.added(follower, of: user) }
        return stream
    }

    /// Ends all streams.
    func close() {
        let streams = state.withLock { state in
            state.isClosed = true
            defer { state.streams = [:] }
            return state.streams.values
        }
        for stream in streams { stream.finish() }
        handle { $0.refused() }
        requester.pool.close()
    }

    /// - Parameter generation: that of the connection that the event is about, if any. Events of an earlier connection
    ///   are ignored.
    private func handle(
        from generation: Int? = nil,
        _ event: (inout SubscriptionStateMachine) -> [SubscriptionStateMachine.Action]
    ) {
        let (actions, current) = state.withLock { state -> ([SubscriptionStateMachine.Action], Int) in
            if let generation, generation != state.generation { return ([], state.generation) }
            let actions = event(&state.machine)
            // Within the lock, so that states are delivered in order.
            for case .deliver(let status, let followers) in actions {
                for follower in followers { state.streams[follower]?.yield(status) }
            }
            return (actions, state.generation)
        }
        for action in actions { perform(action, current) }
    }

    private func perform(_ action: SubscriptionStateMachine.Action, _ generation: Int) {
        switch action {
        case .deliver: break
        case .connect: Task { [weak self] in await self?.connect() }
        case .disconnect: disconnect(generation)
        case .subscribe(let user): Task { [weak self] in await self?.subscribe(user, generation) }
        case .unsubscribe(let user):
            Task { [weak self] in
                guard case .reply = await self?.exchange(.unsubscribe([UsageChannel(user)]), generation) else { return }
                self?.handle(from: generation) { $0.unsubscribed(user) }
            }
        case .read(let user, let reading): Task { [weak self] in await self?.read(user, reading) }
        case .finish(let followers):
            let streams = state.withLock { state in followers.compactMap { state.streams.removeValue(forKey: $0) } }
            for stream in streams { stream.finish() }
        }
    }
}

extension ChangesHub {
    private func connect() async {
        let deadline = NIODeadline.now() + TimeAmount(ChangesHub.connectTimeout)
        switch await requester.pool.connection(id: requester.nextID(), until: deadline) {
        case .connection(let connection):
            let generation = state.withLock { state -> Int? in
                guard state.lastConnection !== connection else { return nil }
                state.connection = connection
                state.lastConnection = connection
                state.generation += 1
                return state.generation
            }
            guard let generation else {
                // Released a moment ago and not closed yet: its late replies would mix with the new ones.
                connection.release()
                await connection.waitUntilClosed()
                return handle { $0.lost() }
            }
            handle { $0.connected() }
            Task { [weak self] in
                await connection.waitUntilClosed()
                self?.lost(generation)
            }
            Task { [weak self] in
                while let self, await self.isAlive(connection, generation) {
                    try? await Task.sleep(for: ChangesHub.livenessPause)
                }
            }
        case .refused(let error):
            log(error)
            handle { $0.refused() }
        case .unreachable, .cancelled: handle { $0.lost() }
        }
    }

    /// The time after which the hub checks again whether a user is still followed.
    private static let connectTimeout: Duration = .seconds(5)

    private func log(_ error: HeadroomError) {
        // A shutdown is no news.
        guard error.code != .shutDown else { return }
        logger.error("changes cannot be followed", metadata: ["error": "\(error)"])
    }

    /// A subscription is silent while nothing changes, so a PING checks whether the service is alive.
    private static let livenessPause: Duration = .seconds(5)
    /// Longer than a service takes to answer earlier requests, even without its database (`request-timeout-ms`).
    private static let livenessTimeout: Duration = .seconds(5)

    private func isAlive(_ connection: PipelinedConnection, _ generation: Int) async -> Bool {
        guard state.withLock({ $0.generation == generation && $0.connection != nil }) else { return false }
        let timeout = max(reader.configuration.deadline, ChangesHub.livenessTimeout)
        let deadline = NIODeadline.now() + TimeAmount(timeout)
        switch await connection.exchange(.ping(text: nil), id: requester.nextID(), deadline: deadline) {
        // A late answer may wait behind a thousand subscriptions. A connection that receives nothing closes itself.
        case .reply, .timedOut: return true
        default: return false
        }
    }

    /// A service reads the user before it confirms, and a thousand users after each reconnect, which may take a minute
    /// on a busy machine. A new connection would begin from the start. A service that does not answer at all is found
    /// by `isAlive`.
    private static let answerTimeout: Duration = .seconds(600)

    private func lost(_ generation: Int) {
        let isCurrent = state.withLock { state in
            guard state.generation == generation, state.connection != nil else { return false }
            state.connection = nil
            return true
        }
        if isCurrent { handle { $0.lost() } }
    }

    private func disconnect(_ generation: Int) {
        let connection = state.withLock { $0.generation == generation ? $0.connection.take() : nil }
        connection?.release()
    }

    private func exchange(_ command: Command, _ generation: Int) async -> Exchange? {
        guard let connection = state.withLock({ $0.generation == generation ? $0.connection : nil }) else { return nil }
        let timeout = max(reader.configuration.deadline, ChangesHub.answerTimeout)
        let deadline = NIODeadline.now() + TimeAmount(timeout)
        let exchange = await connection.exchange(command, id: requester.nextID(), deadline: deadline)
        if case .timedOut = exchange { connection.close(because: SubscriptionFailure.unanswered) }
        return exchange
    }

    private func subscribe(_ user: UserID, _ generation: Int) async {
        var generator = SystemRandomNumberGenerator()
        var failures = 0
        while case .reply(let reply) = await exchange(.subscribe([UsageChannel(user)]), generation) {
            guard case .error(let received) = reply else { return handle(from: generation) { $0.confirmed(user) } }
            let error = HeadroomError(received, key: nil)
            if error.code == .notAuthenticated, reader.configuration.credentials != nil {
                // The token may have been replaced; a new connection presents the current one.
                let connection = state.withLock { $0.generation == generation ? $0.connection : nil }
                connection?.close(because: SubscriptionFailure.tokenRefused)
                return
            }
            guard !error.isRefusal else {
                log(error)
                return handle(from: generation) { $0.refused(user) }
            }
            let pause = Backoff(range: reader.configuration.backoff).pause(after: failures, using: &generator)
            failures += 1
            try? await Task.sleep(for: pause)
        }
    }

    private func read(_ user: UserID, _ reading: UInt64) async {
        do throws(HeadroomError) {
            let reply = try await reader.perform(.usage(user: user, period: nil), .reading)
            guard case .answer(let answer) = reply, answer.status == .ok else { throw HeadroomError.unexpected(reply) }
            handle { $0.readCompleted(answer.usage, reading: reading) }
        } catch let error where error.isRefusal {
            log(error)
            handle { $0.refused(user) }
        } catch {
            try? await Task.sleep(for: reader.configuration.backoff.upperBound)
            handle { $0.readFailed(user, reading: reading) }
        }
    }
}

extension HeadroomError {
    /// Whether this client would get the same error again.
    fileprivate var isRefusal: Bool {
        switch code {
        case .notAuthenticated, .forbidden, .unknownCommand, .badArgument, .shutDown: true
        default: false
        }
    }
}
