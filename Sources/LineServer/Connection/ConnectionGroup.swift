import Engine
import LineProtocol
import Logging
import NIOCore
import ServiceCore

/// The connections of one event loop, and what they share.
///
/// Requests and outcomes cross threads in groups: all requests that one iteration of the event loop decodes go to each
/// lane at once (`EngineRequests`), and all outcomes of a batch return at once (`ConnectionMailbox`). On a busy service
/// a lock, a wake-up and a task are paid per batch, not per message.
///
/// @unchecked Sendable: outside the event loop only `drain` and `close` are called, which are safe there.
final class ConnectionGroup: @unchecked Sendable {
    let logger: Logger
    let dependencies: ConnectionStateMachine.Dependencies
    let metrics: LoopMetrics
    private let eventLoop: any EventLoop
    private let engine: BatchingEngine
    let access: AccessControl
    let connectionCounter: ConnectionCounter
    var words: CurrentWords { engine.words }
    private let limits: ConnectionLimits
    let requests: EngineRequests
    let turns: ConnectionTurns
    private let mailbox: ConnectionMailbox

    private(set) var policy = AccessPolicy.open
    /// The port is closed. Connections that it accepted before may still be added.
    private(set) var isDraining = false
    private var replyBuffers = ReplyBufferPool()

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
        mailbox = ConnectionMailbox(of: engine, metrics, eventLoop)
        requests = EngineRequests(engine, mailbox, eventLoop)
        turns = ConnectionTurns(eventLoop)
        // The reference is strong until `endObservation`. A weak one would move the group's reference count out of
        // line, and each message retains the group several times.
        policy = access.observe { policy in eventLoop.execute { self.apply(policy) } }
    }

    // MARK: Connections

    /// - Returns: the id of the connection in this group.
    /// - Throws: the error for the peer when there are too many connections.
    func connect(_ connection: LineConnectionHandler, from network: PeerNetwork?) throws(ReplyError) -> Int {
        switch connectionCounter.add(
            from: network,
            atMost: limits.connectionsMaximum,
            ofNetworkAtMost: limits.connectionsPerAddressMaximum
        ) {
        case .admitted: return mailbox.connections.insert(connection)
        case .tooMany: throw .tooManyConnections
        case .tooManyFromNetwork: throw .tooManyConnectionsFromAddress
        }
    }

    func disconnect(_ connectionID: Int, from network: PeerNetwork?) {
        if mailbox.connections.remove(connectionID) { connectionCounter.remove(from: network) }
    }

    private func apply(_ policy: AccessPolicy) {
        self.policy = policy
        for connection in mailbox.connections.all { connection.apply(policy) }
    }

    /// Drains all connections. It may be called from any thread.
    func drain() async {
        await withCheckedContinuation { continuation in
            eventLoop.execute {
                self.isDraining = true
                for connection in self.mailbox.connections.all { connection.drain() }
                continuation.resume()
            }
        }
    }

    /// Drops outcomes from now on: those of connections that were closed with requests in flight. It is called
    /// before the event loop ends, and may be called from any thread.
    func close() {
        mailbox.close()
    }

    // MARK: Reply buffers

    func takeReplyBuffer() -> ByteBuffer { replyBuffers.take() }

    func giveBackReplyBuffer(_ buffer: ByteBuffer) { replyBuffers.giveBack(buffer) }
}
