import Logging
import NIOCore
import Synchronization
import Usage
import UsageStore

/// What the connections of one event loop share: the stage on which their requests gather, and the mailbox in which
/// the store's outcomes arrive.
///
/// All requests that one turn of the event loop decodes go to each lane at once, and all outcomes of a batch come back
/// with one hop: on a busy service a lock, a wake-up and a hop are paid per batch, not per message.
///
/// @unchecked Sendable: everything but `arrived` is touched on the event loop only; `arrived` is behind its lock.
final class LoopShared: Mailbox, @unchecked Sendable {
    let logger: Logger
    private let eventLoop: any EventLoop
    private let store: BatchingStore
    private let census: Census
    private let serverInfo: ServerInfo
    private let connectionsMaximum: Int
    private let arrived = Mutex<[[Completion]]>([])

    private var mailbox = 0
    private var connections: [Int: ConnectionHandler] = [:]
    private var staged: [[Request]]
    private var stageIsScheduled = false
    private var stageDeadline: ContinuousClock.Instant?

    init(
        eventLoop: any EventLoop,
        store: BatchingStore,
        census: Census,
        serverInfo: ServerInfo,
        connectionsMaximum: Int,
        logger: Logger
    ) {
        self.eventLoop = eventLoop
        self.store = store
        self.census = census
        self.serverInfo = serverInfo
        self.connectionsMaximum = connectionsMaximum
        self.logger = logger
        staged = Array(repeating: [], count: store.configuration.lanes)
        mailbox = store.register(self)
    }

    // MARK: Connections

    /// False when there are too many.
    func connect(_ connection: ConnectionHandler) -> Bool {
        guard census.enter(atMost: connectionsMaximum) else { return false }
        connections[connection.id] = connection
        return true
    }

    func disconnect(_ connection: ConnectionHandler) {
        if connections.removeValue(forKey: connection.id) != nil { census.leave() }
    }

    /// From any thread.
    func drain() {
        eventLoop.execute {
            for connection in self.connections.values { connection.drain() }
        }
    }

    func surroundings(connectionID: Int) -> ConnectionStateMachine.Surroundings {
        ConnectionStateMachine.Surroundings(
            connectionID: connectionID,
            serverVersion: serverInfo.version,
            info: { [serverInfo] in serverInfo.lines() }
        )
    }

    // MARK: To the store

    func stage(_ user: UserID, _ operation: StoreOperation, connection: Int, slot: UInt64) {
        // One look at the clock per turn; a turn is far shorter than any deadline.
        let deadline = stageDeadline ?? .now + store.configuration.requestTimeout
        stageDeadline = deadline
        staged[store.lane(of: user)].append(
            Request(
                user: user,
                operation: operation,
                returnAddress: ReturnAddress(mailbox: mailbox, connection: connection, slot: slot),
                deadline: deadline
            )
        )
        guard !stageIsScheduled else { return }
        stageIsScheduled = true
        // Runs after the events of this turn, so after every connection that has something to say has said it.
        eventLoop.execute { self.submitStaged() }
    }

    private func submitStaged() {
        stageIsScheduled = false
        stageDeadline = nil
        for lane in staged.indices where !staged[lane].isEmpty {
            if let (refused, error) = store.enqueue(staged[lane], lane: lane) {
                deliverOnLoop(
                    refused.map { Completion(returnAddress: $0.returnAddress, outcome: .failure(error)) }
                )
            }
            staged[lane].removeAll(keepingCapacity: true)
        }
    }

    // MARK: From the store

    func deliver(_ completions: [Completion]) {
        let isFirst = arrived.withLock {
            $0.append(completions)
            return $0.count == 1
        }
        // A hop that is on its way takes these along.
        if isFirst { eventLoop.execute { self.takeDelivery() } }
    }

    private func takeDelivery() {
        let batches = arrived.withLock { arrived in
            defer { arrived.removeAll(keepingCapacity: true) }
            return arrived
        }
        for completions in batches { deliverOnLoop(completions) }
    }

    private func deliverOnLoop(_ completions: [Completion]) {
        var touched: [ConnectionHandler] = []
        for completion in completions {
            // Gone meanwhile: the message is counted all the same, and its sender will ask again.
            guard let connection = connections[completion.returnAddress.connection] else { continue }
            connection.complete(slot: completion.returnAddress.slot, completion.outcome)
            if !connection.awaitsFlush {
                connection.awaitsFlush = true
                touched.append(connection)
            }
        }
        for connection in touched {
            connection.awaitsFlush = false
            connection.flush()
        }
    }
}
