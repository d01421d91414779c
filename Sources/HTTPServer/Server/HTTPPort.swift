import HeadroomServer
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle

/// The listening socket of the HTTP side.
///
/// Not the framework's, which accepts connections no faster than its tasks take them, and makes a task of each: behind
/// connections that keep the tasks busy, a load balancer would wait before it is accepted
/// (docs/decisions/0027-health-checks-on-the-event-loop.md).
struct HTTPPort: Service {
    /// What the kernel may keep of a connection in each direction; it doubles the number. Left to itself it takes up to
    /// 4 MB for a peer that does not read.
    private static let socketBufferBytes: SocketOptionValue = 65_536
    /// One read; a body takes several. A connection that sends more goes on in the next turn, after the others.
    private static let readBytesMaximum = 4_096
    /// Accepted in a turn of the event loop. Connections that come together must not take each other's places before they are
    /// read: there is room for those of this turn, for those of the turn before, which may be read after that, and for those
    /// that were answered meanwhile and stand behind them.
    private static func acceptedAtOnce(_ configuration: HTTPConfiguration) -> Int {
        max(1, min(16, configuration.newcomersMaximum / 3))
    }

    let configuration: HTTPConfiguration
    let transport: HTTPTransport
    let keeper: ConnectionKeeper
    let group: MultiThreadedEventLoopGroup
    let whenOpen: @Sendable (ListenAddress?) -> Void
    let logger: Logger

    /// Opens the port and answers until the service shuts down and the requests under way are answered.
    ///
    /// - Throws: `IOError` when the address is in use or not this machine's.
    func run() async throws {
        let (stream, accepted) = AsyncStream.makeStream(of: HTTPTransport.Accepted.self)
        let address = configuration.address
        let port = try await bootstrap(accepted).bind(host: address.host, port: address.port).get()
        whenOpen(ListenAddress(host: address.host, port: port.localAddress?.port ?? 0))
        // Also where it fails later: a service whose port is gone has to end.
        port.closeFuture.whenComplete { _ in accepted.finish() }
        await withGracefulShutdownHandler {
            await withDiscardingTaskGroup { tasks in
                for await connection in stream { tasks.addTask { await transport.handle(connection) } }
            }
        } onGracefulShutdown: {
            port.eventLoop.execute {
                port.close(promise: nil)
                keeper.quiesce()
            }
        }
    }

    private func bootstrap(_ accepted: AsyncStream<HTTPTransport.Accepted>.Continuation) -> ServerBootstrap {
        ServerBootstrap(group: group)
            // The kernel takes as many as it is set up for (net.core.somaxconn). Those beyond try again after a second.
            .serverChannelOption(.backlog, value: 4_096)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelOption(.socketOption(.so_rcvbuf), value: HTTPPort.socketBufferBytes)
            .serverChannelOption(.socketOption(.so_sndbuf), value: HTTPPort.socketBufferBytes)
            .serverChannelOption(.maxMessagesPerRead, value: UInt(HTTPPort.acceptedAtOnce(configuration)))
            .detectingDeadPeers(outputTimeout: keeper.times.output)
            .serverChannelInitializer { [logger] channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(AcceptFailures(logger: logger))
                }
            }
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelOption(.maxMessagesPerRead, value: 1)
            .childChannelOption(
                .recvAllocator,
                value: AdaptiveRecvByteBufferAllocator(
                    minimum: 512,
                    initial: 1_024,
                    maximum: HTTPPort.readBytesMaximum
                )
            )
            .childChannelInitializer { [transport] channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(transport.gate(accepted: accepted))
                }
            }
    }
}
