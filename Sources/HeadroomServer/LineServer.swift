import Engine
import Logging
import NIOCore
import NIOPosix
import NIOSSL
import ServiceLifecycle
import Synchronization

/// The TCP port of the line protocol.
///
/// Drains on graceful shutdown: the port is closed, every request that was accepted is answered, what still comes on an
/// open connection is refused with `-DRAINING`, and connections that say nothing are closed.
public final class LineServer: Service, CustomStringConvertible {
    public let description = "line server"
    private let configuration: ServerConfiguration
    private let store: BatchingEngine
    private let tls: TLSContexts?
    private let group: MultiThreadedEventLoopGroup
    private let access: AccessControl
    private let connectionCounter: ConnectionCounter
    private let draining: DrainingFlag
    private let loops: [LoopShared]
    private let listener = Mutex<(any Channel)?>(nil)
    private let logger: Logger

    init(_ parts: ServiceParts) {
        let configuration = parts.configuration
        self.configuration = configuration
        store = parts.store
        tls = parts.tls
        access = parts.access
        connectionCounter = parts.connectionCounter
        draining = parts.draining
        logger = parts.logger
        group = MultiThreadedEventLoopGroup(numberOfThreads: configuration.eventLoops)
        loops = zip(group.makeIterator(), parts.metrics.loops).map { eventLoop, loopMetrics in
            LoopShared(
                eventLoop: eventLoop,
                store: parts.store,
                access: parts.access,
                connectionCounter: parts.connectionCounter,
                serverInfo: parts.info,
                metrics: loopMetrics,
                limits: configuration.connectionLimits,
                logger: parts.logger
            )
        }
    }

    /// Opens the port. Connections are accepted from now on.
    ///
    /// - Returns: the address, with the port that was picked where the setting said 0.
    /// - Throws: when the address is in use or not this machine's.
    public func bind() async throws -> ListenAddress {
        let byLoop = Dictionary(
            zip(group.makeIterator().map { ObjectIdentifier($0) }, loops),
            uniquingKeysWith: { first, _ in first }
        )
        let limits = configuration.connectionLimits
        let ids = ConnectionIDs()
        let tls = tls
        let handshakeTimeout = configuration.handshakeTimeout
        let bootstrap = ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 1_024)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            // Of a turn of the event loop: who comes after a thousand others waits for few turns, not for hundreds.
            .serverChannelOption(.maxMessagesPerRead, value: 128)
            .whoseConnectionsNoticeTheirPeersEnd(outputTimeout: limits.outputTimeout)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            // What is read at once is taken in at once: a connection that sends more goes on in the next turn, after the
            // others. Enough for a hundred requests.
            .childChannelOption(.maxMessagesPerRead, value: 1)
            .childChannelOption(
                .recvAllocator,
                value: AdaptiveRecvByteBufferAllocator(minimum: 512, initial: 2_048, maximum: 4_096)
            )
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    guard let shared = byLoop[ObjectIdentifier(channel.eventLoop)] else {
                        preconditionFailure("a connection is on one of the group's event loops")
                    }
                    if let tls {
                        try channel.pipeline.syncOperations.addHandlers(
                            TLSEdge(lingerMaximum: limits.lingerMaximum),
                            NIOSSLServerHandler(context: tls.current),
                            TLSSession(tls, handshakeTimeout: handshakeTimeout)
                        )
                    }
                    try channel.pipeline.syncOperations.addHandler(
                        ConnectionHandler(id: ids.next(), shared: shared, limits: limits)
                    )
                }
            }
        let (channel, address) = (try await open(bootstrap), configuration.listen)
        listener.withLock { $0 = channel }
        return ListenAddress(host: address.host, port: channel.localAddress?.port ?? 0)
    }

    private func open(_ bootstrap: ServerBootstrap) async throws(PortUnavailable) -> any Channel {
        let address = configuration.listen
        do {
            return try await bootstrap.bind(host: address.host, port: address.port).get()
        } catch {
            throw PortUnavailable(error, address: address, setting: .listen)
        }
    }

    public func run() async throws {
        try await gracefulShutdown()
        draining.set()
        let channel = listener.withLock { $0 }
        do {
            try await channel?.close()
        } catch {
            logger.debug("the port was closed already", metadata: ["error": "\(error)"])
        }
        // Readings may take longer than there is time; the rest of it is for telling so.
        store.reader.drain(by: .now + configuration.drainTimeout * 3 / 4)
        for loop in loops { await loop.drain() }
        // Not before: who reads this may rely on it that nothing more is accepted.
        logger.notice("draining", metadata: ["connections": "\(connectionCounter.snapshot.current)"])
        await connectionCounter.emptied(within: configuration.drainTimeout)
        let left = connectionCounter.snapshot.current
        if left > 0 {
            logger.warning("connections were cut after the drain time", metadata: ["connections": "\(left)"])
        }
        for loop in loops { loop.end() }
        access.endObservation()
        try await group.shutdownGracefully()
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
