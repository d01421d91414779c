import Logging
import NIOCore
import NIOPosix
import ServiceCore
import ServiceLifecycle
import Synchronization

/// The listening socket of the HTTP server.
///
/// Hummingbird's own server starts a task for each connection and accepts connections no faster than tasks run. A load
/// balancer's health check would wait behind busy connections (docs/decisions/0027-health-checks-on-the-event-loop.md).
struct HTTPPort: Service {
    /// The kernel's buffer per connection and direction; the kernel doubles the number. Its default is up to 4 MB for a
    /// peer that does not read.
    private static let socketBufferBytes: SocketOptionValue = 65_536
    /// Bytes per read. A connection with more to read continues in the event loop's next iteration, after the others.
    private static let readBytesMaximum = 4_096
    /// How many connections one iteration of the event loop accepts: a third of the places for new connections, so that
    /// new connections do not evict each other before their first request is read. The places must hold the connections
    /// of this iteration, those of the iteration before, whose requests may not have been read yet, and connections
    /// that have become idle meanwhile, which are evicted last.
    private static func acceptedPerIteration(_ configuration: HTTPConfiguration) -> Int {
        max(1, min(16, configuration.newcomersMaximum / 3))
    }

    private static let tasksExecutor = ThreadTaskExecutor()
    /// How long requests are answered after the port is closed: those of clients whose connection was accepted just
    /// then, and those that were sent before the client knew that its connection ends.
    private static let lastRequestsTime = TimeAmount.milliseconds(100)
    /// How many more iterations of the event loop read requests then. On a busy machine the time may be over before the
    /// first one; an iteration reads from 64 sockets or more.
    private static let lastIterations = 16

    let configuration: HTTPConfiguration
    let transport: HTTPTransport
    let limiter: ConnectionLimiter
    let group: MultiThreadedEventLoopGroup
    let whenOpen: @Sendable (ListenAddress?) -> Void
    let logger: Logger

    /// Opens the port and serves it until the service shuts down and all open requests are answered.
    ///
    /// - Throws: `IOError` if the address is in use or not an address of this machine.
    func run() async throws {
        let (stream, accepted) = AsyncStream.makeStream(of: HTTPTransport.Accepted.self)
        let port = try await configuration.port.open(bootstrap(accepted))
        whenOpen(port.address)
        // If the port fails later, the service has to end.
        let isStopping = Atomic(false)
        port.channel.closeFuture.whenComplete { _ in
            if !isStopping.load(ordering: .relaxed) { accepted.finish() }
        }
        await withGracefulShutdownHandler {
            await withDiscardingTaskGroup { tasks in
                for await connection in stream {
                    tasks.addTask(executorPreference: HTTPPort.tasksExecutor) { await transport.handle(connection) }
                }
            }
        } onGracefulShutdown: {
            isStopping.store(true, ordering: .relaxed)
            port.close().whenComplete { _ in
                let isEmpty = limiter.isEmpty
                quiesce(
                    port.channel.eventLoop,
                    in: isEmpty ? .zero : HTTPPort.lastRequestsTime,
                    after: isEmpty ? 0 : HTTPPort.lastIterations,
                    accepted
                )
            }
        }
    }

    private func quiesce(
        _ eventLoop: any EventLoop,
        in pause: TimeAmount,
        after iterations: Int,
        _ accepted: AsyncStream<HTTPTransport.Accepted>.Continuation
    ) {
        eventLoop.scheduleTask(in: pause) {
            guard iterations == 0 else {
                // The next step comes later, because at once would be in the same iteration.
                return quiesce(eventLoop, in: .milliseconds(1), after: iterations - 1, accepted)
            }
            accepted.finish()
            limiter.quiesce()
        }
    }

    private func bootstrap(_ accepted: AsyncStream<HTTPTransport.Accepted>.Continuation) -> ServerBootstrap {
        ServerBootstrap(group: group)
            // Limited by the kernel's setting net.core.somaxconn. Peers over the limit retry after a second.
            .serverChannelOption(.backlog, value: 4_096)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelOption(.socketOption(.so_rcvbuf), value: HTTPPort.socketBufferBytes)
            .serverChannelOption(.socketOption(.so_sndbuf), value: HTTPPort.socketBufferBytes)
            .serverChannelOption(.maxMessagesPerRead, value: UInt(HTTPPort.acceptedPerIteration(configuration)))
            .detectingDeadPeers(outputTimeout: limiter.timeouts.output)
            .serverChannelInitializer { [logger] channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(AcceptErrorHandler(logger: logger))
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
                    try channel.pipeline.syncOperations.addHandler(transport.handler(accepted: accepted))
                }
            }
    }
}
