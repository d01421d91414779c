import Logging
import Postgres
import ServiceLifecycle
import UnixSignals
import Usage
import UsageStore

/// The whole service: database, store and ports, started in this order and stopped in the reverse one.
public struct HeadroomService: Sendable {
    private let configuration: ServerConfiguration
    private let logger: Logger

    public init(_ configuration: ServerConfiguration, logger: Logger) {
        self.configuration = configuration
        self.logger = logger
    }

    /// What to tell whoever started the service.
    public struct Ready: Sendable {
        public var listen: ListenAddress
        public var speaksTLS: Bool
        /// A command that opens the database, without a password.
        public var psqlCommand: String
    }

    /// Serves until SIGTERM or SIGINT, then drains.
    ///
    /// - Parameter whenReady: called once every port is open.
    /// - Throws: when the database cannot be reached or migrated, or the port cannot be opened.
    public func run(whenReady: @Sendable (Ready) -> Void) async throws {
        // What the settings alone show to be wrong is told before anything is started.
        let protectedMode = ProtectedMode(configuration)
        try protectedMode.check(configuration.listen, requiresAuthentication: true)
        let tls = try configuration.tls.map { files throws(TLSFileError) in try TLSContexts(files, logger: logger) }
        switch configuration.database {
        case .url(let url):
            try await serve(url, psqlCommand: "psql '\(redacted(conninfo: url))'", privateServer: nil, tls, whenReady)
        case .privateServer(let directory):
            let server = PrivateServer(dataDirectory: directory, logger: logger)
            let running = try await server.start()
            do {
                try await serve(
                    running.conninfo,
                    psqlCommand: running.psqlCommand,
                    privateServer: server,
                    tls,
                    whenReady
                )
            } catch {
                await server.stop()
                throw error
            }
        }
    }

    private func serve(
        _ databaseURL: String,
        psqlCommand: String,
        privateServer: PrivateServer?,
        _ tls: TLSContexts?,
        _ whenReady: @Sendable (Ready) -> Void
    ) async throws {
        try await SchemaSetup(databaseURL: databaseURL, logger: logger).prepare()
        let store = BatchingStore(configuration.store(databaseURL: databaseURL), logger: logger)
        let access = AccessControl(
            configuration.authentication,
            connectionsPerTokenMaximum: configuration.connectionsPerTokenMaximum,
            logger: logger
        )
        try await access.load(from: databaseURL)
        try ProtectedMode(configuration).check(configuration.listen, requiresAuthentication: access.isRequired)
        let monitor = DatabaseMonitor(databaseURL: databaseURL, tokens: access, logger: logger)
        let server = LineServer(
            configuration,
            store: store,
            monitor: monitor,
            access: access,
            tls: tls,
            version: HeadroomVersion.current,
            logger: logger
        )
        let hangups = tls == nil ? nil : await UnixSignalsSequence(trapping: .sighup)
        let listen = try await server.bind()
        whenReady(Ready(listen: listen, speaksTLS: tls != nil, psqlCommand: psqlCommand))
        let housekeeper = Housekeeper(
            databaseURL: databaseURL,
            keepDays: configuration.keysKeepDays,
            logger: logger
        )
        var services: [any Service] = [
            HousekeeperService(housekeeper: housekeeper), MonitorService(monitor: monitor), StoreService(store: store),
            server,
        ]
        if let tls, let hangups { services.append(TLSReloading(contexts: tls, signals: hangups)) }
        if let privateServer {
            services.insert(PrivateServerService(server: privateServer, store: store, logger: logger), at: 0)
        }
        var group = ServiceGroupConfiguration(
            services: services,
            gracefulShutdownSignals: [.sigterm, .sigint],
            logger: logger
        )
        group.maximumGracefulShutdownDuration = configuration.drainTimeout + .seconds(1)
        try await ServiceGroup(configuration: group).run()
    }
}

/// Stops after the port, when nobody can ask any more.
private struct StoreService: Service, CustomStringConvertible {
    let description = "store"
    let store: BatchingStore

    func run() async throws {
        await withGracefulShutdownHandler {
            await store.run()
        } onGracefulShutdown: {
            store.close()
        }
    }
}

private struct HousekeeperService: Service, CustomStringConvertible {
    let description = "housekeeper"
    let housekeeper: Housekeeper

    func run() async throws {
        await cancelWhenGracefulShutdown { await housekeeper.run(every: .seconds(60)) }
    }
}

private struct MonitorService: Service, CustomStringConvertible {
    let description = "database monitor"
    let monitor: DatabaseMonitor

    func run() async throws {
        await withGracefulShutdownHandler {
            await monitor.run()
        } onGracefulShutdown: {
            monitor.close()
        }
    }
}

/// Keeps the private PostgreSQL running, since nobody else does, and stops it last, when nothing is left to write.
private struct PrivateServerService: Service, CustomStringConvertible {
    let description = "private PostgreSQL"
    let server: PrivateServer
    let store: BatchingStore
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
        guard store.snapshot.lanesConnected < store.snapshot.lanes else { return }
        do {
            _ = try await server.start()
        } catch {
            logger.error("the private PostgreSQL could not be started again", metadata: ["error": "\(error)"])
        }
    }
}
