import LineProtocol
import Logging
import NIOCore
import Synchronization

/// Runs subscriptions on one connection of their own: a service that speaks RESP2 takes nothing else there.
final class ChangesHub: Sendable {
    private struct State {
        var machine = SubscriptionStateMachine()
        var streams: [UInt64: AsyncStream<UsageStatus>.Continuation] = [:]
        var lastFollower: UInt64 = 0
        /// The connection in use, the one that was used last, and how many there were.
        var connection: Connection?
        var lastConnection: Connection?
        var generation = 0
        var isClosed = false
    }

    private let reader: Requester
    private let requester: Requester
    private let state = Mutex(State())
    private let logger: Logger
    /// Breaks the circle between the hub and what its pool calls.
    private let relay: Relay

    private final class Relay: Sendable {
        private struct Target { weak var hub: ChangesHub? }
        private let target = Mutex(Target())

        func set(_ hub: ChangesHub) { target.withLock { $0.hub = hub } }
        var hub: ChangesHub? { target.withLock { $0.hub } }
    }

    /// - Parameters:
    ///   - reader: where it is asked for the state.
    ///   - makeRequester: for the subscriptions; what it is given is to be told of changes.
    init(
        reader: Requester,
        logger: Logger,
        makeRequester: (@escaping @Sendable (UsageStatus) -> Void) -> Requester
    ) {
        let relay = Relay()
        self.relay = relay
        self.reader = reader
        self.logger = logger
        requester = makeRequester { status in relay.hub?.handle { $0.told(status) } }
        relay.set(self)
    }

    /// The user is followed here, or can be beside fewer than `maximum` others.
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

    /// - Parameter connection: its number, where it is the service's word on a connection; one that is gone says nothing
    ///   about the next.
    private func handle(
        from connection: Int? = nil,
        _ event: (inout SubscriptionStateMachine) -> [SubscriptionStateMachine.Action]
    ) {
        let (actions, generation) = state.withLock { state -> ([SubscriptionStateMachine.Action], Int) in
            if let connection, connection != state.generation { return ([], state.generation) }
            let actions = event(&state.machine)
            // Within the lock, or two states could be told in the other order.
            for case .deliver(let status, let followers) in actions {
                for follower in followers { state.streams[follower]?.yield(status) }
            }
            return (actions, state.generation)
        }
        for action in actions { perform(action, generation) }
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
        let deadline = NIODeadline.now() + TimeAmount(ChangesHub.connectPatience)
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
                // Left a moment ago, and not closed yet: what was said on it then could overtake what is said now.
                connection.leave()
                await connection.closed()
                return handle { $0.lost() }
            }
            handle { $0.connected() }
            Task { [weak self] in
                await connection.closed()
                self?.lost(generation)
            }
            Task { [weak self] in
                while let self, await self.isAlive(connection, generation) {
                    try? await Task.sleep(for: ChangesHub.livenessPause)
                }
            }
        case .refused(let error):
            tell(error)
            handle { $0.refused() }
        case .unreachable, .cancelled: handle { $0.lost() }
        }
    }

    /// After so long it is looked again whether anybody still follows.
    private static let connectPatience: Duration = .seconds(5)

    private func tell(_ error: HeadroomError) {
        // Who shuts down knows.
        guard error.code != .shutDown else { return }
        logger.error("changes cannot be followed", metadata: ["error": "\(error)"])
    }

    /// A subscription is silent while nothing changes, so whether somebody is there has to be asked.
    private static let livenessPause: Duration = .seconds(5)
    /// Longer than a service takes to answer what stands before it, whatever its database does (`request-timeout-ms`).
    private static let livenessPatience: Duration = .seconds(5)

    private func isAlive(_ connection: Connection, _ generation: Int) async -> Bool {
        guard state.withLock({ $0.generation == generation && $0.connection != nil }) else { return false }
        let patience = max(reader.configuration.deadline, ChangesHub.livenessPatience)
        let deadline = NIODeadline.now() + TimeAmount(patience)
        switch await connection.exchange(.ping(text: nil), id: requester.nextID(), deadline: deadline) {
        // Late is not dead: it may stand behind a thousand subscriptions. A connection on which nothing comes ends itself.
        case .reply, .timedOut: return true
        default: return false
        }
    }

    /// A service reads the user before it confirms, and a thousand of them after each reconnect.
    private static let answerPatience: Duration = .seconds(30)

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
        connection?.leave()
    }

    private func exchange(_ command: Command, _ generation: Int) async -> Exchange? {
        guard let connection = state.withLock({ $0.generation == generation ? $0.connection : nil }) else { return nil }
        let patience = max(reader.configuration.deadline, ChangesHub.answerPatience)
        let deadline = NIODeadline.now() + TimeAmount(patience)
        let exchange = await connection.exchange(command, id: requester.nextID(), deadline: deadline)
        if case .timedOut = exchange { connection.end(SubscriptionFailure.unanswered) }
        return exchange
    }

    private func subscribe(_ user: UserID, _ generation: Int) async {
        var generator = SystemRandomNumberGenerator()
        var failures = 0
        while case .reply(let reply) = await exchange(.subscribe([UsageChannel(user)]), generation) {
            guard case .error(let received) = reply else { return handle(from: generation) { $0.confirmed(user) } }
            let error = HeadroomError(received, key: nil)
            if error.code == .notAuthenticated, reader.configuration.credentials != nil {
                // The token may have been replaced; another connection presents the one of now.
                let connection = state.withLock { $0.generation == generation ? $0.connection : nil }
                connection?.end(SubscriptionFailure.tokenRefused)
                return
            }
            guard !error.isRefusal else {
                tell(error)
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
            guard case .answer(let answer) = reply else { throw HeadroomError.unexpected(reply) }
            handle { $0.hasRead(answer.usage, reading: reading) }
        } catch let error where error.isRefusal {
            tell(error)
            handle { $0.refused(user) }
        } catch {
            try? await Task.sleep(for: reader.configuration.backoff.upperBound)
            handle { $0.couldNotRead(user, reading: reading) }
        }
    }
}

extension HeadroomError {
    /// To ask again is of no use, for as long as who asks is the same.
    fileprivate var isRefusal: Bool {
        switch code {
        case .notAuthenticated, .forbidden, .unknownCommand, .badArgument, .shutDown: true
        default: false
        }
    }
}
