import Engine
import HeadroomServer
import Hummingbird
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle

/// The HTTP port: webhooks, metrics, health, the API and the dashboard.
///
/// Runs on an event loop of its own and asks the database in sessions of its own, so that nothing here takes a thread or
/// a connection from the line protocol; what it counts goes through the lanes like every message.
package struct HTTPServerService: Service, CustomStringConvertible {
    package let description = "HTTP side"

    /// Requests under way when the service shuts down have so long; what is left is cut.
    private static let drainTimeout = Duration.milliseconds(500)

    private let parts: ServiceParts
    private let configuration: HTTPConfiguration
    private let senders: StoreSenders
    private let whenOpen: @Sendable (ListenAddress?) -> Void
    private let logger: Logger

    /// As `HeadroomService` wants it, which knows nothing of HTTP.
    package static func maker(senders: StoreSenders) -> HeadroomService.HTTPServerMaker {
        { parts, whenOpen in
            guard let configuration = parts.configuration.http else { preconditionFailure("asked for when it is on") }
            return HTTPServerService(parts, configuration: configuration, senders: senders, whenOpen: whenOpen)
        }
    }

    init(
        _ parts: ServiceParts,
        configuration: HTTPConfiguration,
        senders: StoreSenders,
        whenOpen: @escaping @Sendable (ListenAddress?) -> Void
    ) {
        self.parts = parts
        self.configuration = configuration
        self.senders = senders
        self.whenOpen = whenOpen
        var logger = parts.logger
        // The framework tells of each start and of each connection that breaks.
        if logger.logLevel == .info { logger.logLevel = .notice }
        self.logger = logger
    }

    package func run() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
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
            parts,
            configuration: configuration,
            senders: senders,
            logger: logger
        )
        let port = port(dependencies, on: group)
        // Not awaited: a session that waits for a database which hangs must not keep the service from ending.
        for pool in dependencies.pools { Task { await pool.run() } }
        defer { for pool in dependencies.pools { pool.close() } }
        do {
            try await HTTPServerService.runBounded(port)
        } catch let error as IOError where error.errnoCode == EADDRINUSE && configuration.isByDefault {
            logger.warning(
                "the HTTP side stays off, because its port is taken; set http to another address, or to off",
                metadata: ["http": "\(configuration.address)"]
            )
            whenOpen(nil)
            try? await gracefulShutdown()
        } catch let error as IOError {
            throw CannotOpen(address: configuration.address, underlying: error)
        }
    }

    /// Who keeps a request open must not keep the service from ending.
    private static func runBounded(_ port: HTTPPort) async throws {
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await port.run() }
            tasks.addTask {
                try await gracefulShutdown()
                try await Task.sleep(for: drainTimeout)
            }
            try await tasks.next()
            tasks.cancelAll()
        }
    }

    private func port(_ dependencies: HTTPServerDependencies, on group: MultiThreadedEventLoopGroup) -> HTTPPort {
        let keeper = keeper(dependencies.connections)
        let answering = RequestAnswering(
            responder: dependencies.router().buildResponder(),
            date: dependencies.health.date,
            logger: logger
        )
        return HTTPPort(
            configuration: configuration,
            transport: HTTPTransport(
                answering.answer,
                tls: parts.configuration.httpHasTLS ? parts.tls : nil,
                keeper: keeper,
                health: dependencies.health,
                logger: logger
            ),
            keeper: keeper,
            group: group,
            whenOpen: whenOpen,
            logger: logger
        )
    }

    private func keeper(_ figures: ConnectionFigures) -> ConnectionKeeper {
        ConnectionKeeper(
            ConnectionRoster.Limits(
                all: configuration.connectionsMaximum,
                perNetwork: configuration.connectionsPerAddressMaximum,
                newcomers: configuration.newcomersMaximum
            ),
            RequestClock.Limits(
                firstHead: parts.configuration.firstRequestTimeout,
                head: parts.configuration.incompleteRequestTimeout,
                output: parts.configuration.outputTimeout,
                idle: TimeAmount(configuration.idleTimeout)
            ),
            figures: figures,
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
