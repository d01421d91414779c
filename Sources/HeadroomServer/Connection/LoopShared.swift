import DequeModule
import Engine
import LineProtocol
import Logging
import NIOCore
import Usage

/// What the connections of one event loop share: the stage on which their requests gather, and the mailbox in which
/// the store's outcomes arrive.
///
/// All requests that one turn of the event loop decodes go to each lane at once, and all outcomes of a batch come back
/// with one hop: on a busy service a lock, a wake-up and a hop are paid per batch, not per message.
///
/// @unchecked Sendable: everything but `arrivals` is touched on the event loop only; `arrivals` has a lock of its own.
final class LoopShared: Mailbox, @unchecked Sendable {
    let logger: Logger
    let dependencies: ConnectionStateMachine.Dependencies
    let metrics: LoopMetrics
    private let eventLoop: any EventLoop
    private let store: BatchingEngine
    let access: AccessControl
    let connectionCounter: ConnectionCounter
    private let limits: ConnectionLimits
    private let allocator = ByteBufferAllocator()
    private let arrivals = ArrivalQueue<Arrival>()

    /// In one list, so that a message about a user never overtakes the answer to the subscription.
    private enum Arrival {
        case completions([Completion])
        case publications([Publication])
    }

    private(set) var policy = AccessPolicy.open
    private var mailbox = 0
    private var connections = ConnectionTable<ConnectionHandler>()
    private var spareRooms: [ByteBuffer] = []
    private var awaitingFirstTurn: Deque<ConnectionHandler> = []
    private var awaitingTurn: Deque<ConnectionHandler> = []
    private var turnsOfNewOnes = 0
    private var turnsAreScheduled = false
    private var takenInTurn = 0
    private var staged: [[Request]]
    private var stageIsScheduled = false
    private var stageDeadline: ContinuousClock.Instant?
    private var stagedAtMicroseconds: UInt32 = 0

    init(
        eventLoop: any EventLoop,
        store: BatchingEngine,
        access: AccessControl,
        connectionCounter: ConnectionCounter,
        serverInfo: ServerInfo,
        metrics: LoopMetrics,
        limits: ConnectionLimits,
        logger: Logger
    ) {
        self.eventLoop = eventLoop
        self.store = store
        self.access = access
        self.connectionCounter = connectionCounter
        dependencies = ConnectionStateMachine.Dependencies(serverVersion: serverInfo.version, info: serverInfo.lines)
        self.metrics = metrics
        self.limits = limits
        self.logger = logger
        staged = Array(repeating: [], count: store.configuration.lanes)
        mailbox = store.register(self)
        policy = access.observe { [weak self] policy in
            guard let self else { return }
            eventLoop.execute { self.apply(policy) }
        }
    }

    // MARK: Connections

    /// The connection's number here.
    ///
    /// - Throws: what to tell the peer when there are too many.
    func connect(_ connection: ConnectionHandler, from network: PeerNetwork?) throws(ReplyError) -> Int {
        switch connectionCounter.enter(
            from: network,
            atMost: limits.connectionsMaximum,
            ofNetworkAtMost: limits.connectionsPerAddressMaximum
        ) {
        case .admitted: return connections.insert(connection)
        case .tooMany: throw .tooManyConnections
        case .tooManyFromNetwork: throw .tooManyConnectionsFromAddress
        }
    }

    func disconnect(_ number: Int, from network: PeerNetwork?) {
        if connections.remove(number) { connectionCounter.leave(from: network) }
    }

    private func apply(_ policy: AccessPolicy) {
        self.policy = policy
        for connection in connections.all { connection.apply(policy) }
    }

    /// From any thread.
    func drain() async {
        await withCheckedContinuation { continuation in
            eventLoop.execute {
                for connection in self.connections.all { connection.drain() }
                continuation.resume()
            }
        }
    }

    /// From any thread, before the event loop ends: connections that were cut had requests under way, whose outcomes come
    /// all the same.
    func end() {
        arrivals.close()
    }

    // MARK: Turns

    /// Requests that were just read are taken in, up to some milliseconds' worth; the rest waits for its turn. A count
    /// and no clock, which would go on while another process has the processor.
    private static let requestsPerTurn = 1_024
    /// What those who wait then take, before the event loop looks again what has been sent.
    private static let turnsTime = TimeAmount.milliseconds(2)
    /// A task that is to run at once would run before the event loop looks.
    private static let turnsPause = TimeAmount.microseconds(200)

    /// Whether so much that was read in this turn of the event loop has been taken in that the rest has to wait.
    var turnIsOver: Bool { takenInTurn >= LoopShared.requestsPerTurn }

    func takeInTurn(_ requests: Int) {
        // Runs after all that was read in this turn.
        if takenInTurn == 0, requests > 0 { eventLoop.execute { self.takenInTurn = 0 } }
        takenInTurn += requests
    }

    /// The connection has more requests to take in and had its share of this turn of the event loop.
    ///
    /// - Parameter again: it used a turn up. Who did not, because few requests are all that it sent, goes first.
    func awaitTurn(_ connection: ConnectionHandler, again: Bool) {
        if again { awaitingTurn.append(connection) } else { awaitingFirstTurn.append(connection) }
        scheduleTurns()
    }

    private func scheduleTurns() {
        guard !turnsAreScheduled, !awaitingTurn.isEmpty || !awaitingFirstTurn.isEmpty else { return }
        turnsAreScheduled = true
        eventLoop.scheduleTask(in: LoopShared.turnsPause) { self.takeTurns() }
    }

    /// New ones go first, but for every so many turns, or a flood of them would keep the others waiting for ever.
    private static let turnsOfNewOnes = 8

    private func nextInTurn() -> ConnectionHandler? {
        turnsOfNewOnes += 1
        guard turnsOfNewOnes == LoopShared.turnsOfNewOnes else {
            return awaitingFirstTurn.popFirst() ?? awaitingTurn.popFirst()
        }
        turnsOfNewOnes = 0
        return awaitingTurn.popFirst() ?? awaitingFirstTurn.popFirst()
    }

    private func takeTurns() {
        turnsAreScheduled = false
        let end = NIODeadline.now() + LoopShared.turnsTime
        while let connection = nextInTurn() {
            connection.takeTurn()
            guard NIODeadline.now() < end else { break }
        }
        scheduleTurns()
    }

    // MARK: Room for replies

    /// What a write of replies may keep; larger ones are as rare as the long replies that need them.
    private static let roomBytesMaximum = 16_384
    /// As many connections are answered together, at most, without new room.
    private static let spareRoomsMaximum = 64

    /// Room for the replies of one write, with its memory already there. An idle connection has none.
    func takeRoom() -> ByteBuffer {
        guard var room = spareRooms.popLast() else { return allocator.buffer(capacity: 1_024) }
        // Where it is still being written, this takes new memory.
        room.clear()
        return room
    }

    /// What was handed over for writing: usually the kernel has all of it, and the memory is free again.
    func returnRoom(_ room: ByteBuffer) {
        guard room.storageCapacity <= LoopShared.roomBytesMaximum, spareRooms.count < LoopShared.spareRoomsMaximum
        else { return }
        spareRooms.append(room)
    }

    // MARK: To the store

    func stage(_ user: UserID, _ operation: EngineOperation, connection: Int, slot: UInt64) {
        let deadline = stageDeadline ?? beginStage()
        staged[store.lane(of: user)].append(
            Request(
                user: user,
                operation: operation,
                returnAddress: ReturnAddress(
                    mailbox: mailbox,
                    connection: connection,
                    slot: slot,
                    askedAtMicroseconds: stagedAtMicroseconds
                ),
                deadline: deadline
            )
        )
        guard !stageIsScheduled else { return }
        stageIsScheduled = true
        // Runs after the events of this turn, so after every connection that has something to say has said it.
        eventLoop.execute { self.submitStaged() }
    }

    /// One look at the clocks per turn; a turn is far shorter than any deadline.
    private func beginStage() -> ContinuousClock.Instant {
        let deadline = ContinuousClock.now + store.configuration.requestTimeout
        stageDeadline = deadline
        stagedAtMicroseconds = LoopMetrics.microseconds(.now())
        return deadline
    }

    private func submitStaged() {
        stageIsScheduled = false
        stageDeadline = nil
        for lane in staged.indices where !staged[lane].isEmpty {
            let refusal = store.enqueue(staged[lane], lane: lane)
            // Before anybody is told: who is refused may have more to ask, and that is staged at once.
            staged[lane].removeAll(keepingCapacity: true)
            guard let (refused, error) = refusal else { continue }
            deliverOnLoop(refused.map { Completion(returnAddress: $0.returnAddress, outcome: .failure(error)) })
        }
    }

    func read(_ reading: Reading, connection: Int, slot: UInt64) {
        let request = ReadingRequest(
            reading: reading,
            returnAddress: ReturnAddress(mailbox: mailbox, connection: connection, slot: slot),
            deadline: .now + store.configuration.reportTimeout
        )
        guard let refusal = store.reader.enqueue(request) else { return }
        // The connection is in the middle of taking in requests; it is told after that, as of any other outcome.
        deliver([Completion(returnAddress: request.returnAddress, outcome: .failure(refusal))])
    }

    func watch(_ users: [UserID], connection: Int, slot: UInt64) {
        store.watcher.watch(
            WatchRequest(
                users: users,
                returnAddress: ReturnAddress(mailbox: mailbox, connection: connection, slot: slot),
                deadline: .now + store.configuration.requestTimeout
            )
        )
    }

    func unwatch(_ users: [UserID], connection: Int) {
        store.watcher.unwatch(users, Subscriber(mailbox: mailbox, connection: connection))
    }

    /// A connection that watched somebody is gone.
    func leave(_ connection: Int) {
        store.watcher.leave(Subscriber(mailbox: mailbox, connection: connection))
    }

    // MARK: From the store

    func deliver(_ completions: [Completion]) {
        arrive(.completions(completions))
    }

    func publish(_ publications: [Publication]) {
        arrive(.publications(publications))
    }

    private func arrive(_ arrival: Arrival) {
        arrivals.append(arrival) { eventLoop.execute { self.takeDelivery() } }
    }

    private func takeDelivery() {
        for arrival in arrivals.takeAll() {
            switch arrival {
            case .completions(let completions): deliverOnLoop(completions)
            case .publications(let publications): publishOnLoop(publications)
            }
        }
    }

    private func publishOnLoop(_ publications: [Publication]) {
        var touched: [ConnectionHandler] = []
        for publication in publications {
            guard let connection = connections[publication.subscriber.connection] else { continue }
            connection.push(publication.answer)
            if !connection.awaitsFlush {
                connection.awaitsFlush = true
                touched.append(connection)
            }
        }
        flush(touched)
    }

    private func deliverOnLoop(_ completions: [Completion]) {
        var touched: [ConnectionHandler] = []
        let now = NIODeadline.now()
        let nowMicroseconds = LoopMetrics.microseconds(now)
        var latencySum: UInt64 = 0
        metrics.latencies.begin(second: LoopMetrics.second(now))
        for completion in completions {
            metrics.count(completion.outcome)
            let askedAt = completion.returnAddress.askedAtMicroseconds
            if askedAt != 0 {
                metrics.latencies.record(microseconds: nowMicroseconds &- askedAt)
                latencySum &+= UInt64(nowMicroseconds &- askedAt)
            }
            // Gone meanwhile: the message is counted all the same, and its sender will ask again.
            guard let connection = connections[completion.returnAddress.connection] else { continue }
            connection.complete(slot: completion.returnAddress.slot, completion.outcome)
            if !connection.awaitsFlush {
                connection.awaitsFlush = true
                touched.append(connection)
            }
        }
        metrics.latencies.end(microseconds: latencySum)
        flush(touched)
    }

    private func flush(_ touched: [ConnectionHandler]) {
        for connection in touched {
            connection.awaitsFlush = false
            connection.flush()
        }
    }
}
