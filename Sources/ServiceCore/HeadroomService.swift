import Engine
import Logging
import Postgres
import ServiceLifecycle
import TransportSecurity
import UnixSignals
import Usage

/// The whole service: database, engine and ports, started in this order and stopped in the reverse order.
public struct HeadroomService: Sendable {
    /// Makes the HTTP server, which runs until graceful shutdown.
    ///
    /// - Parameter whenOpen: to be called once, with the address that was opened; nil if none was.
    package typealias HTTPServerMaker =
        @Sendable (ServiceDependencies, _ whenOpen: @escaping @Sendable (ListenAddress?) -> Void) throws -> any Service

    /// Makes the port of the line protocol.
    package typealias LineServerMaker = @Sendable (ServiceDependencies) -> any LinePort

    /// Makes what sends notifications; runs until graceful shutdown.
    package typealias NotifierMaker = @Sendable (ServiceDependencies) -> any Service

    private let configuration: ServerConfiguration
    private var settings: SettingValues<Settings> { configuration.settings }
    private let lineServer: LineServerMaker
    private let httpServer: HTTPServerMaker?
    private let notifier: NotifierMaker?
    private let tracing: ServiceTracing?
    private let manager: ServiceManager?
    private let logger: Logger

    /// Both ports are parameters, so that this module needs nothing of them.
    ///
    /// - Parameters:
    ///   - httpServer: called if the setting `http` names an address.
    ///   - notifier: nil if none are sent.
    ///   - tracing: nil if nothing is traced.
    ///   - manager: the service reports to it when it is ready, reloads and stops.
    package init(
        _ configuration: ServerConfiguration,
        lineServer: @escaping LineServerMaker,
        httpServer: HTTPServerMaker?,
        notifier: NotifierMaker? = nil,
        tracing: ServiceTracing? = nil,
        manager: ServiceManager? = nil,
        logger: Logger
    ) {
        self.configuration = configuration
        self.manager = manager
        self.lineServer = lineServer
        self.notifier = notifier
        self.tracing = tracing
        self.httpServer = configuration.http == nil ? nil : httpServer
        self.logger = logger
    }

    /// The addresses and commands that `serve` prints once the service is ready.
    public struct Ready: Sendable {
        public var listen: ListenAddress
        /// The HTTP server's address; nil if HTTP is off.
        public var http: ListenAddress?
        public var speaksTLS: Bool
        /// A command that opens the database, without a password.
        public var psqlCommand: String
    }

    /// Serves until SIGTERM or SIGINT, then drains.
    ///
    /// - Parameter whenReady: called once every port is open.
    /// - Throws: if the database cannot be reached or migrated, or a port cannot be opened.
    public func run(whenReady: @escaping @Sendable (Ready) -> Void) async throws {
        // Errors that the settings alone show are reported before anything is started.
        try checkPorts(requiresAuthentication: true)
        let tls = try settings.access.tls.map { files throws(TLSFileError) in try TLSContexts(files, logger: logger) }
        let reloading = tls == nil && manager == nil ? nil : await ReloadService(contexts: tls, manager: manager)
        switch configuration.database {
        case .url(let url):
            let database = DatabaseTopology(url.text)
            try await serve(database, psqlCommand: psqlCommand(database), privateServer: nil, tls, reloading, whenReady)
        case .privateServer(let directory):
            let server = PrivateServer(dataDirectory: directory, createsCluster: true, logger: logger)
            let running = try await server.start()
            do {
                try await serve(
                    DatabaseTopology(running.conninfo),
                    psqlCommand: running.psqlCommand,
                    privateServer: server,
                    tls,
                    reloading,
                    whenReady
                )
            } catch {
                await server.stop()
                throw error
            }
        }
    }

    private func psqlCommand(_ database: DatabaseTopology) -> String {
        // psql takes the first server that answers.
        "psql '\(database)\(database.servers.count > 1 ? " target_session_attrs=read-write" : "")'"
    }

    private func serve(
        _ database: DatabaseTopology,
        psqlCommand: String,
        privateServer: PrivateServer?,
        _ tls: TLSContexts?,
        _ reloading: ReloadService?,
        _ whenReady: @escaping @Sendable (Ready) -> Void
    ) async throws {
        let schema = SchemaSetup(database: database, logger: logger)
        try await schema.prepare(isPrivate: privateServer != nil)
        let access = AccessControl(
            settings.access.authentication,
            connectionsPerTokenMaximum: settings.access.connectionsPerTokenMaximum
                ?? settings.connections.connectionsMaximum,
            logger: logger
        )
        try await access.load(from: database)
        try checkPorts(requiresAuthentication: access.isRequired)
        do {
            try checkPorts(requiresAuthentication: false)
        } catch is ProtectedMode.Refused {
            access.requireToken()
        }
        if let namespace = settings.counting.userNamespace {
            try await schema.claim(namespace)
        } else if let namespace = try await schema.userNamespace() {
            logger.warning(
                """
                users of this database have names; this instance refuses them, and finds no user for those in stores' events: \
                set user-namespace as on the other instances
                """,
                metadata: ["user-namespace": "\(namespace)"]
            )
        }
        let dependencies = ServiceDependencies(
            configuration,
            placements: try await schema.placements(),
            database: database,
            access: access,
            tls: tls,
            tracing: tracing,
            logger: logger
        )
        let server = lineServer(dependencies)
        // Signals are trapped before the port is open: a peer that sees it open may end the service at once.
        let terminationSignals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
        let listen = try await server.bind()
        let (httpAddresses, httpOpened) = AsyncStream.makeStream(of: ListenAddress?.self)
        let announcement = ReadyAnnouncement(dependencies.engine, httpAddresses: httpAddresses) { http in
            whenReady(Ready(listen: listen, http: http, speaksTLS: tls != nil, psqlCommand: psqlCommand))
            reloading?.becomeReady()
            manager?.ready()
        }
        var services = databaseServices(dependencies, privateServer: privateServer)
        // HTTP stops after the line protocol, so that /readyz reports the drain meanwhile, and before the engine, which
        // it uses.
        if let httpServer {
            services.append(try httpServer(dependencies) { httpOpened.yield($0) })
        } else {
            httpOpened.yield(nil)
        }
        services += [server, drainDelay(dependencies), announcement]
        if let reloading { services.append(reloading) }
        if let watchdog = watchdog(dependencies) { services.append(watchdog) }
        try await run(services, until: terminationSignals, dependencies.draining)
    }

    /// The services that stop after the ports.
    private func databaseServices(_ dependencies: ServiceDependencies, privateServer: PrivateServer?) -> [any Service] {
        let housekeeper = Housekeeper(
            database: dependencies.database,
            keepDays: settings.counting.keysKeepDays,
            logger: logger
        )
        let activity = ActivityRecorder(database: dependencies.database, logger: logger) {
            dependencies.engine.activity
        }
        // The exporter stops after all that makes spans.
        var services: [any Service] = tracing.map { [$0.exporter] } ?? []
        services += [
            HousekeeperService(housekeeper: housekeeper, activity: activity),
            MonitorService(monitor: dependencies.monitor, servers: dependencies.serverWatch),
        ]
        // The notifier stops after the engine, and records its last messages.
        if let notifier { services.append(notifier(dependencies)) }
        services.append(EngineService(engine: dependencies.engine))
        guard let privateServer else { return services }
        return [PrivateServerService(server: privateServer, engine: dependencies.engine, logger: logger)] + services
    }

    private func drainDelay(_ dependencies: ServiceDependencies) -> DrainDelayService {
        DrainDelayService(
            delay: settings.connections.drainDelay,
            draining: dependencies.draining,
            manager: manager,
            logger: logger
        )
    }

    private func watchdog(_ dependencies: ServiceDependencies) -> WatchdogService? {
        guard let manager, let timeout = manager.watchdogTimeout else { return nil }
        return WatchdogService(
            timeout: timeout,
            manager: manager,
            eventLoops: dependencies.watchedEventLoops,
            engine: dependencies.engine
        )
    }

    private func run(
        _ services: [any Service],
        until terminationSignals: UnixSignalsSequence,
        _ draining: DrainingFlag
    ) async throws {
        var configured = ServiceGroupConfiguration(
            // If one cannot start, the others still stop in order; then the error is thrown.
            services: services.map { .init(service: $0, failureTerminationBehavior: .gracefullyShutdownGroup) },
            logger: logger
        )
        configured.maximumGracefulShutdownDuration =
            settings.connections.drainDelay + settings.connections.drainTimeout + .milliseconds(1_500)
        let group = ServiceGroup(configuration: configured)
        async let _: Void = {
            for await _ in terminationSignals {
                draining.set()
                await group.triggerGracefulShutdown()
            }
        }()
        try await group.run()
    }

    private func checkPorts(requiresAuthentication: Bool) throws {
        try ProtectedMode(configuration, hasTLS: settings.access.tls != nil)
            .check(configuration.listen, requiresAuthentication: requiresAuthentication)
        guard let http = configuration.http else { return }
        try ProtectedMode(configuration, hasTLS: configuration.httpHasTLS)
            .check(http.address, setting: Settings.http, requiresAuthentication: requiresAuthentication)
    }
}

/// The port of the line protocol. It is open before the service is, so that nothing starts if its address is taken.
package protocol LinePort: Service {
    /// Opens the port and accepts connections.
    ///
    /// - Returns: the address, with the port that the kernel chose where the setting is 0.
    /// - Throws: when the address is in use or not one of this machine's.
    func bind() async throws -> ListenAddress
}

/// Stops after the ports, when no request can arrive any more.
private struct EngineService: Service, CustomStringConvertible {
    let description = "engine"
    let engine: BatchingEngine

    func run() async throws {
        await withGracefulShutdownHandler {
            await engine.run()
        } onGracefulShutdown: {
            engine.close()
        }
    }
}

private struct HousekeeperService: Service, CustomStringConvertible {
    let description = "housekeeper"
    let housekeeper: Housekeeper
    let activity: ActivityRecorder

    func run() async throws {
        await cancelWhenGracefulShutdown {
            async let pruning: Void = housekeeper.run(every: .seconds(60))
            async let recording: Void = activity.run()
            _ = await (pruning, recording)
        }
        // The engine has stopped by now, so this records the last of it.
        await activity.recordOrLog()
    }
}

private struct MonitorService: Service, CustomStringConvertible {
    let description = "database monitor"
    let monitor: DatabaseMonitor
    let servers: ServerWatch

    func run() async throws {
        await withGracefulShutdownHandler {
            async let watched: Void = servers.run()
            await monitor.run()
            await watched
        } onGracefulShutdown: {
            monitor.close()
            servers.close()
        }
    }
}

/// Restarts the private PostgreSQL if it ends, and stops it last, when nothing is left to write.
private struct PrivateServerService: Service, CustomStringConvertible {
    let description = "private PostgreSQL"
    let server: PrivateServer
    let engine: BatchingEngine
    let logger: Logger

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while true {
                do {
                    try await Task.sleep(for: .seconds(1))
                } catch {
                    return
                }
                await restartIfNeeded()
            }
        }
        await server.stop()
    }

    /// Starting a server that runs changes nothing.
    private func restartIfNeeded() async {
        guard engine.snapshot.lanesConnected < engine.snapshot.lanes else { return }
        do {
            _ = try await server.start()
        } catch {
            logger.error("the private PostgreSQL could not be restarted", metadata: ["error": "\(error)"])
        }
    }
}
