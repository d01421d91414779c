import Engine
import LineProtocol
import Logging
import NIOCore
import ServiceCore
import Usage

/// The connections of one event loop, and what they share.
///
/// Requests and outcomes cross threads in groups: all requests that one iteration of the event loop decodes go to each
/// lane at once, and all outcomes of a batch return at once. On a busy service a lock, a wake-up and a task are paid
/// per batch, not per message.
///
/// @unchecked Sendable: only `deliveries`, which has its own lock, is used outside the event loop.
final class ConnectionGroup: Mailbox, @unchecked Sendable {
    let logger: Logger
    let dependencies: ConnectionStateMachine.Dependencies
    let metrics: LoopMetrics
    private let eventLoop: any EventLoop
    private let engine: BatchingEngine
    let access: AccessControl
    let connectionCounter: ConnectionCounter
    var words: CurrentWords { engine.words }
    private let limits: ConnectionLimits
    private let deliveries = EventLoopQueue<Delivery>()

    /// One queue for both, so that a message about a user never overtakes the reply to the subscription.
    private enum Delivery {
        case completions([Completion])
        case publications([Publication])
    }

    private(set) var policy = AccessPolicy.open
    /// The port is closed. Connections that it accepted before may still be added.
    private(set) var isDraining = false
    private var mailboxIndex = 0
    private var connections = ConnectionTable<ConnectionHandler>()
    private var replyBuffers = ReplyBufferPool()
    private var requestsInIteration = 0
    private var turnQueue = TurnQueue<ConnectionHandler>()
    private var turnsAreScheduled = false
    private var staged: [[Request]]
    /// Read once for all requests that are staged together, so that those of one user go to one lane.
    private var routesReader: LaneRoutesReader
    private var submissionIsScheduled = false
    private var stageDeadline: Deadline?
    private var stagedAtMicroseconds: UInt32 = 0

    init(
        eventLoop: any EventLoop,
        engine: BatchingEngine,
        access: AccessControl,
        connectionCounter: ConnectionCounter,
        serverInfo: ServerInfo,
        metrics: LoopMetrics,
        limits: ConnectionLimits,
        logger: Logger
    ) {
        self.eventLoop = eventLoop
        self.engine = engine
        self.access = access
        self.connectionCounter = connectionCounter
        dependencies = ConnectionStateMachine.Dependencies(serverVersion: serverInfo.version, info: serverInfo.lines)
        self.metrics = metrics
        self.limits = limits
        self.logger = logger
        routesReader = engine.makeRoutesReader()
        staged = Array(repeating: [], count: engine.configuration.lanes)
        mailboxIndex = engine.register(self)
        policy = access.observe { [weak self] policy in
            guard let self else { return }
            eventLoop.execute { self.apply(policy) }
        }
    }

    // MARK: Connections

    /// - Returns: the id of the connection in this group.
    /// - Throws: the error for the peer when there are too many connections.
    func connect(_ connection: ConnectionHandler, from network: PeerNetwork?) throws(ReplyError) -> Int {
        switch connectionCounter.add(
            from: network,
            atMost: limits.connectionsMaximum,
            ofNetworkAtMost: limits.connectionsPerAddressMaximum
        ) {
        case .admitted: return connections.insert(connection)
        case .tooMany: throw .tooManyConnections
        case .tooManyFromNetwork: throw .tooManyConnectionsFromAddress
        }
    }

    func disconnect(_ connectionID: Int, from network: PeerNetwork?) {
        if connections.remove(connectionID) { connectionCounter.remove(from: network) }
    }

    private func apply(_ policy: AccessPolicy) {
        self.policy = policy
        for connection in connections.all { connection.apply(policy) }
    }

    /// From any thread.
    func drain() async {
        await withCheckedContinuation { continuation in
            eventLoop.execute {
                self.isDraining = true
                for connection in self.connections.all { connection.drain() }
                continuation.resume()
            }
        }
    }

    /// Drops outcomes from now on: those of connections that were closed with requests in flight. From any thread,
    /// before the event loop ends.
    func close() {
        deliveries.close()
    }

    // MARK: The limit of an iteration

    /// Decoding so many requests takes some milliseconds. A count, because a clock also runs while another process has
    /// the processor.
    private static let requestsPerIteration = 1_024

    /// Whether so many requests were decoded in this iteration of the event loop that the rest must wait for turns.
    var iterationIsFull: Bool { requestsInIteration >= ConnectionGroup.requestsPerIteration }

    func countInIteration(_ requests: Int) {
        // The task runs after all reads of this iteration.
        if requestsInIteration == 0, requests > 0 { eventLoop.execute { self.requestsInIteration = 0 } }
        requestsInIteration += requests
    }

    // MARK: Turns

    /// How long connections take turns before the event loop reads from sockets again.
    private static let turnsTime = TimeAmount.milliseconds(2)
    /// Not zero: a task without delay would run before the event loop reads from sockets.
    private static let turnsPause = TimeAmount.microseconds(200)

    func waitForTurn(_ connection: ConnectionHandler, hadTurn: Bool) {
        turnQueue.append(connection, hadTurn: hadTurn)
        scheduleTurns()
    }

    private func scheduleTurns() {
        guard !turnsAreScheduled, !turnQueue.isEmpty else { return }
        turnsAreScheduled = true
        eventLoop.scheduleTask(in: ConnectionGroup.turnsPause) { self.takeTurns() }
    }

    private func takeTurns() {
        turnsAreScheduled = false
        let end = NIODeadline.now() + ConnectionGroup.turnsTime
        while let connection = turnQueue.popFirst() {
            connection.takeTurn()
            guard NIODeadline.now() < end else { break }
        }
        scheduleTurns()
    }

    // MARK: Reply buffers

    func takeReplyBuffer() -> ByteBuffer { replyBuffers.take() }

    func giveBackReplyBuffer(_ buffer: ByteBuffer) { replyBuffers.giveBack(buffer) }

    // MARK: To the engine

    /// Stages a request until the end of this iteration of the event loop.
    func stage(_ user: UserID, _ operation: EngineOperation, connection: Int, slot: UInt64) {
        let deadline = stageDeadline ?? beginStage()
        staged[routesReader.routes.lane(of: user)].append(
            Request(
                user: user,
                operation: operation,
                returnAddress: ReturnAddress(
                    mailboxIndex: mailboxIndex,
                    connection: connection,
                    slot: slot,
                    receivedAtMicroseconds: stagedAtMicroseconds
                ),
                deadline: deadline
            )
        )
        guard !submissionIsScheduled else { return }
        submissionIsScheduled = true
        // The task runs after all reads of this iteration.
        eventLoop.execute { self.submitStaged() }
    }

    /// Reads the clocks once per iteration, which is far shorter than any deadline.
    private func beginStage() -> Deadline {
        routesReader.refresh()
        let deadline = Deadline(.now + engine.configuration.requestTimeout)
        stageDeadline = deadline
        stagedAtMicroseconds = LoopMetrics.microseconds(.now())
        return deadline
    }

    private func submitStaged() {
        submissionIsScheduled = false
        stageDeadline = nil
        for lane in staged.indices where !staged[lane].isEmpty {
            let refusal = engine.enqueue(staged[lane], lane: lane)
            // Before the refusals are delivered, because their connections may stage more requests then.
            staged[lane].removeAll(keepingCapacity: true)
            guard let (refused, error) = refusal else { continue }
            deliverOnLoop(refused.map { Completion(returnAddress: $0.returnAddress, outcome: .failure(error)) })
        }
    }

    func read(_ query: ReportQuery, connection: Int, slot: UInt64) {
        let request = ReportRequest(
            query: query,
            returnAddress: ReturnAddress(mailboxIndex: mailboxIndex, connection: connection, slot: slot),
            deadline: .now + engine.configuration.reportTimeout
        )
        guard let refusal = engine.reports.enqueue(request) else { return }
        // Queued, because the connection is decoding requests now.
        deliver([Completion(returnAddress: request.returnAddress, outcome: .failure(refusal))])
    }

    func subscribe(_ users: [UserID], connection: Int, slot: UInt64) {
        engine.changes.subscribe(
            SubscribeRequest(
                users: users,
                returnAddress: ReturnAddress(mailboxIndex: mailboxIndex, connection: connection, slot: slot),
                deadline: .now + engine.configuration.requestTimeout
            )
        )
    }

    func unsubscribe(_ users: [UserID], connection: Int) {
        engine.changes.unsubscribe(users, ChangeSubscriber(mailboxIndex: mailboxIndex, connection: connection))
    }

    func unsubscribeAll(connection: Int) {
        engine.changes.disconnect(ChangeSubscriber(mailboxIndex: mailboxIndex, connection: connection))
    }

    // MARK: From the engine

    func deliver(_ completions: [Completion]) {
        enqueue(.completions(completions))
    }

    func publish(_ publications: [Publication]) {
        enqueue(.publications(publications))
    }

    private func enqueue(_ delivery: Delivery) {
        deliveries.append(delivery) { eventLoop.execute { self.processDeliveries() } }
    }

    private func processDeliveries() {
        for delivery in deliveries.removeAll() {
            switch delivery {
            case .completions(let completions): deliverOnLoop(completions)
            case .publications(let publications): publishOnLoop(publications)
            }
        }
    }

    private func publishOnLoop(_ publications: [Publication]) {
        var changed: [ConnectionHandler] = []
        for publication in publications {
            guard let connection = connections[publication.subscriber.connection] else { continue }
            connection.push(publication.answer)
            scheduleFlush(connection, &changed)
        }
        flush(changed)
    }

    private func deliverOnLoop(_ completions: [Completion]) {
        var changed: [ConnectionHandler] = []
        let now = NIODeadline.now()
        let nowMicroseconds = LoopMetrics.microseconds(now)
        var latencySum: UInt64 = 0
        metrics.latencies.begin(second: LoopMetrics.second(now))
        for completion in completions {
            metrics.count(completion.outcome)
            let receivedAt = completion.returnAddress.receivedAtMicroseconds
            if receivedAt != 0 {
                metrics.latencies.record(microseconds: nowMicroseconds &- receivedAt)
                latencySum &+= UInt64(nowMicroseconds &- receivedAt)
            }
            // Without its connection an outcome is dropped. The message stays counted; a retry with its key counts no
            // more.
            guard let connection = connections[completion.returnAddress.connection] else { continue }
            connection.complete(slot: completion.returnAddress.slot, completion.outcome)
            scheduleFlush(connection, &changed)
        }
        metrics.latencies.addToTotal(microseconds: latencySum)
        flush(changed)
    }

    @inline(__always)
    private func scheduleFlush(_ connection: ConnectionHandler, _ changed: inout [ConnectionHandler]) {
        guard !connection.flushIsScheduled else { return }
        connection.flushIsScheduled = true
        changed.append(connection)
    }

    private func flush(_ changed: [ConnectionHandler]) {
        for connection in changed {
            connection.flushIsScheduled = false
            connection.flush()
        }
    }
}
