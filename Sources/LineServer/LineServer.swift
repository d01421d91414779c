import Engine
import Logging
import NIOCore
import NIOPosix
import NIOSSL
import ServiceCore
import ServiceLifecycle
import Synchronization

/// The TCP port of the line protocol.
///
/// Drains on graceful shutdown: accepts the connections that wait, closes the port, answers accepted requests, refuses
/// later ones with `-DRAINING`, and closes silent connections.
package final class LineServer: LinePort, CustomStringConvertible {
    package let description = "line server"
    private let configuration: ServerConfiguration
    private let limits: ConnectionLimits
    private let engine: BatchingEngine
    private let tls: TLSContexts?
    private let eventLoops: MultiThreadedEventLoopGroup
    private let access: AccessControl
    private let connectionCounter: ConnectionCounter
    private let draining: DrainingFlag
    private let groups: [ConnectionGroup]
    private let port = Mutex<OpenPort?>(nil)
    private let logger: Logger

    package init(_ dependencies: ServiceDependencies) {
        let configuration = dependencies.configuration
        self.configuration = configuration
        let limits = ConnectionLimits(configuration)
        self.limits = limits
        engine = dependencies.engine
        tls = dependencies.tls
        access = dependencies.access
        connectionCounter = dependencies.connectionCounter
        draining = dependencies.draining
        logger = dependencies.logger
        eventLoops = MultiThreadedEventLoopGroup(numberOfThreads: configuration.settings.connections.eventLoops)
        dependencies.watchedEventLoops.add(eventLoops)
        groups = zip(eventLoops.makeIterator(), dependencies.metrics.loops).map { eventLoop, loopMetrics in
            ConnectionGroup(
                eventLoop: eventLoop,
                engine: dependencies.engine,
                access: dependencies.access,
                connectionCounter: dependencies.connectionCounter,
                serverInfo: dependencies.info,
                metrics: loopMetrics,
                limits: limits,
                logger: dependencies.logger
            )
        }
    }

    package func bind() async throws -> ListenAddress {
        let groupsByLoop = Dictionary(
            zip(eventLoops.makeIterator().map { ObjectIdentifier($0) }, groups),
            uniquingKeysWith: { first, _ in first }
        )
        let limits = limits
        let ids = ConnectionIDs()
        let tls = tls
        let handshakeTimeout = TimeAmount(configuration.settings.access.tlsHandshakeTimeout)
        let bootstrap = ServerBootstrap(group: eventLoops)
            .serverChannelOption(.backlog, value: 1_024)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            // How many connections one iteration of the event loop accepts. A thousand at once take few iterations.
            .serverChannelOption(.maxMessagesPerRead, value: 128)
            .detectingDeadPeers(outputTimeout: limits.outputTimeout)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            // One read per iteration, of at most a hundred requests, so that other connections are served between two.
            .childChannelOption(.maxMessagesPerRead, value: 1)
            .childChannelOption(
                .recvAllocator,
                value: AdaptiveRecvByteBufferAllocator(minimum: 512, initial: 2_048, maximum: 4_096)
            )
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    guard let group = groupsByLoop[ObjectIdentifier(channel.eventLoop)] else {
                        preconditionFailure("a connection is on one of the group's event loops")
                    }
                    if let tls {
                        try channel.pipeline.syncOperations.addHandlers(
                            TLSSocketHandler(lingerMaximum: limits.lingerMaximum),
                            NIOSSLServerHandler(context: tls.current),
                            TLSSessionHandler(tls, handshakeTimeout: handshakeTimeout)
                        )
                    }
                    try channel.pipeline.syncOperations.addHandler(
                        LineConnectionHandler(id: ids.next(), group: group, limits: limits)
                    )
                }
            }
        do {
            let open = try await configuration.linePort.open(bootstrap)
            port.withLock { $0 = open }
            return open.address
        } catch {
            throw PortUnavailable(error, address: configuration.listen, setting: Settings.listen)
        }
    }

    package func run() async throws {
        try await gracefulShutdown()
        let drainTimeout = configuration.settings.connections.drainTimeout
        draining.begin(timeout: drainTimeout)
        do {
            try await port.withLock { $0 }?.close().get()
        } catch {
            logger.debug("the port was closed already", metadata: ["error": "\(error)"])
        }
        // Reports may take longer than the drain time. A quarter of it is left for their error replies.
        engine.reports.drain(by: .now + drainTimeout * 3 / 4)
        for group in groups { await group.drain() }
        // This is logged once no more requests are accepted; operators and tests rely on it.
        logger.notice("draining", metadata: ["connections": "\(connectionCounter.snapshot.current)"])
        await connectionCounter.waitUntilEmpty(timeout: drainTimeout)
        let left = connectionCounter.snapshot.current
        if left > 0 {
            logger.warning("connections were closed after the drain time", metadata: ["connections": "\(left)"])
        }
        for group in groups { group.close() }
        access.endObservation()
        try await eventLoops.shutdownGracefully()
    }
}

/// Numbers connections, over all event loops.
private final class ConnectionIDs: Sendable {
    private let last = Mutex(0)

    func next() -> Int {
        last.withLock {
            $0 += 1
            return $0
        }
    }
}
