import Engine
import Hummingbird
import Logging
import NIOCore
import NIOPosix
import ServiceCore
import ServiceLifecycle

/// The HTTP port: webhooks, metrics, health, the API and the dashboard.
///
/// It has its own event loop, a thread for the API and its own database sessions, so that it takes no thread and no
/// connection from the line protocol. Requests about one user go through the lanes like those of the line protocol.
package struct HTTPServerService: Service, CustomStringConvertible {
    package let description = "HTTP server"

    /// The time that open requests get at least when the service shuts down, if the line protocol has used up the time
    /// to drain.
    private static let drainTimeoutMinimum = Duration.milliseconds(500)

    private let service: ServiceDependencies
    private let configuration: HTTPConfiguration
    private let webhookEndpoints: WebhookEndpoints
    private let whenOpen: @Sendable (ListenAddress?) -> Void
    private let logger: Logger

    /// Makes the server for `HeadroomService`, which does not depend on this module.
    package static func maker(webhookEndpoints: WebhookEndpoints) -> HeadroomService.HTTPServerMaker {
        { service, whenOpen in
            guard let configuration = service.configuration.http else {
                preconditionFailure("called only with the setting http")
            }
            return HTTPServerService(
                service,
                configuration: configuration,
                webhookEndpoints: webhookEndpoints,
                whenOpen: whenOpen
            )
        }
    }

    init(
        _ service: ServiceDependencies,
        configuration: HTTPConfiguration,
        webhookEndpoints: WebhookEndpoints,
        whenOpen: @escaping @Sendable (ListenAddress?) -> Void
    ) {
        self.service = service
        self.configuration = configuration
        self.webhookEndpoints = webhookEndpoints
        self.whenOpen = whenOpen
        var logger = service.logger
        // Hummingbird logs each start and each broken connection at level info.
        if logger.logLevel == .info { logger.logLevel = .notice }
        self.logger = logger
    }

    package func run() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        service.watchedEventLoops.add(group)
        do {
            try await serve(on: group)
        } catch {
            try? await group.shutdownGracefully()
            throw error
        }
        try await group.shutdownGracefully()
    }

    private func serve(on group: MultiThreadedEventLoopGroup) async throws {
        let dependencies = HTTPServerDependencies(
            service,
            configuration: configuration,
            webhookEndpoints: webhookEndpoints,
            logger: logger
        )
        let port = try port(dependencies, on: group)
        // The pools are not awaited: a session that waits for a hanging database must not delay the service's end.
        for pool in dependencies.pools { Task { await pool.run() } }
        defer { for pool in dependencies.pools { pool.close() } }
        do {
            try await runBounded(port)
        } catch let error as IOError where error.errnoCode == EADDRINUSE && configuration.isByDefault {
            logger.warning(
                "the HTTP server stays off, because its port is taken; set http to another address, or to off",
                metadata: ["http": "\(configuration.address)"]
            )
            whenOpen(nil)
            try? await gracefulShutdown()
        } catch let error as IOError {
            throw CannotOpen(address: configuration.address, underlying: error)
        }
    }

    /// Ends after the drain time even if a peer keeps a request open.
    private func runBounded(_ port: HTTPPort) async throws {
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await port.run() }
            tasks.addTask { [draining = service.draining] in
                try await gracefulShutdown()
                let earliest = ContinuousClock.now + HTTPServerService.drainTimeoutMinimum
                try await Task.sleep(until: max(earliest, draining.deadline ?? earliest), clock: .continuous)
            }
            try await tasks.next()
            tasks.cancelAll()
        }
    }

    private func port(_ dependencies: HTTPServerDependencies, on group: MultiThreadedEventLoopGroup) throws -> HTTPPort
    {
        let limiter = limiter(dependencies.connectionMetrics)
        let dispatcher = RequestDispatcher(
            responder: try dependencies.router().buildResponder(),
            date: dependencies.health.date,
            logger: logger
        )
        return HTTPPort(
            configuration: configuration,
            transport: HTTPTransport(
                dispatcher.dispatch,
                tls: service.configuration.httpHasTLS ? service.tls : nil,
                limiter: limiter,
                health: dependencies.health,
                logger: logger
            ),
            limiter: limiter,
            group: group,
            whenOpen: whenOpen,
            logger: logger
        )
    }

    private func limiter(_ metrics: ConnectionMetrics) -> ConnectionLimiter {
        let connections = service.configuration.settings.connections
        return ConnectionLimiter(
            ConnectionLimiterStateMachine.Limits(
                all: configuration.connectionsMaximum,
                perNetwork: configuration.settings.connectionsPerAddressMaximum ?? .max,
                newcomers: configuration.newcomersMaximum
            ),
            RequestTimeoutStateMachine.Limits(
                firstHead: TimeAmount(connections.firstRequestTimeout),
                head: TimeAmount(connections.incompleteRequestTimeout),
                output: TimeAmount(connections.outputTimeout),
                idle: TimeAmount(configuration.settings.idleTimeout)
            ),
            metrics: metrics,
            logger: logger
        )
    }

    private struct CannotOpen: Error, CustomStringConvertible {
        var address: ListenAddress
        var underlying: IOError

        var description: String {
            "\(PortUnavailable(underlying, address: address, setting: Settings.http)), or set it to off"
        }
    }
}
