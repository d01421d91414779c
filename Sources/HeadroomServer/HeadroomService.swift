import Engine
import Logging
import Postgres
import ServiceLifecycle
import TransportSecurity
import UnixSignals
import Usage

/// The whole service: database, store and ports, started in this order and stopped in the reverse one.
public struct HeadroomService: Sendable {
    /// Makes the service of a second port, which runs until it is told to shut down.
    ///
    /// - Parameter whenOpen: to be called once, with the address that was opened; nil when it stays closed.
    package typealias SidePort =
        @Sendable (ServiceParts, _ whenOpen: @escaping @Sendable (ListenAddress?) -> Void) throws -> any Service

    private let configuration: ServerConfiguration
    private let sidePort: SidePort?
    private let logger: Logger

    /// - Parameter sidePort: made when the setting `http` names an address; handed in, so that nothing of HTTP is needed
    ///   here.
    package init(_ configuration: ServerConfiguration, sidePort: SidePort?, logger: Logger) {
        self.configuration = configuration
        self.sidePort = configuration.http == nil ? nil : sidePort
        self.logger = logger
    }

    /// What to tell whoever started the service.
    public struct Ready: Sendable {
        public var listen: ListenAddress
        /// nil when there is none.
        public var http: ListenAddress?
        public var speaksTLS: Bool
        /// A command that opens the database, without a password.
        public var psqlCommand: String
    }

    /// Serves until SIGTERM or SIGINT, then drains.
    ///
    /// - Parameter whenReady: called once every port is open.
    /// - Throws: when the database cannot be reached or migrated, or the port cannot be opened.
    public func run(whenReady: @escaping @Sendable (Ready) -> Void) async throws {
        // What the settings alone show to be wrong is told before anything is started.
        try checkPorts(requiresAuthentication: true)
        let tls = try configuration.tls.map { files throws(TLSFileError) in try TLSContexts(files, logger: logger) }
        switch configuration.database {
        case .url(let url):
            try await serve(url, psqlCommand: "psql '\(redacted(conninfo: url))'", privateServer: nil, tls, whenReady)
        case .privateServer(let directory):
            let server = PrivateServer(dataDirectory: directory, createsCluster: true, logger: logger)
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
        _ whenReady: @escaping @Sendable (Ready) -> Void
    ) async throws {
        try await SchemaSetup(databaseURL: databaseURL, logger: logger).prepare()
        let access = AccessControl(
            configuration.authentication,
            connectionsPerTokenMaximum: configuration.connectionsPerTokenMaximum,
            logger: logger
        )
        try await access.load(from: databaseURL)
        try checkPorts(requiresAuthentication: access.isRequired)
        do {
            try checkPorts(requiresAuthentication: false)
        } catch is ProtectedMode.Refused {
            access.requireFromNowOn()
        }
        let parts = ServiceParts(
            configuration,
            databaseURL: databaseURL,
            access: access,
            tls: tls,
            logger: logger
        )
        let server = LineServer(parts)
        // Before the port is open: from then on a peer may believe that the service has started, and end it.
        let ends = await UnixSignalsSequence(trapping: .sigterm, .sigint)
        let hangups = tls == nil ? nil : await UnixSignalsSequence(trapping: .sighup)
        let listen = try await server.bind()
        let (sidePortOpen, tellSidePort) = AsyncStream.makeStream(of: ListenAddress?.self)
        let announcement = Announcement(parts.store, sidePort: sidePortOpen) { http in
            whenReady(Ready(listen: listen, http: http, speaksTLS: tls != nil, psqlCommand: psqlCommand))
        }
        let housekeeper = Housekeeper(
            databaseURL: databaseURL,
            keepDays: configuration.keysKeepDays,
            logger: logger
        )
        let activity = ActivityRecorder(databaseURL: databaseURL, logger: logger) { parts.store.activity }
        var services: [any Service] = [
            HousekeeperService(housekeeper: housekeeper, activity: activity),
            MonitorService(monitor: parts.monitor), EngineService(store: parts.store),
        ]
        // Stopped after the line protocol, so that it says meanwhile that the service drains, and before the store, which
        // it asks.
        if let sidePort {
            services.append(try sidePort(parts) { tellSidePort.yield($0) })
        } else {
            tellSidePort.yield(nil)
        }
        services += [server, announcement]
        if let tls, let hangups { services.append(TLSReloadService(contexts: tls, signals: hangups)) }
        if let privateServer {
            services.insert(PrivateServerService(server: privateServer, store: parts.store, logger: logger), at: 0)
        }
        try await run(services, until: ends)
    }

    private func run(_ services: [any Service], until ends: UnixSignalsSequence) async throws {
        var configured = ServiceGroupConfiguration(
            // Also where one cannot start, the others end in their order, and the error is thrown then.
            services: services.map { .init(service: $0, failureTerminationBehavior: .gracefullyShutdownGroup) },
            logger: logger
        )
        configured.maximumGracefulShutdownDuration = configuration.drainTimeout + .milliseconds(1_500)
        let group = ServiceGroup(configuration: configured)
        async let _: Void = {
            for await _ in ends { await group.triggerGracefulShutdown() }
        }()
        try await group.run()
    }

    private func checkPorts(requiresAuthentication: Bool) throws {
        try ProtectedMode(configuration, hasTLS: configuration.tls != nil)
            .check(configuration.listen, requiresAuthentication: requiresAuthentication)
        guard let http = configuration.http else { return }
        try ProtectedMode(configuration, hasTLS: configuration.httpHasTLS)
            .check(http.address, setting: Settings.http, requiresAuthentication: requiresAuthentication)
    }
}

/// Stops after the port, when nobody can ask any more.
private struct EngineService: Service, CustomStringConvertible {
    let description = "store"
    let store: BatchingEngine

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
    let activity: ActivityRecorder

    func run() async throws {
        await cancelWhenGracefulShutdown {
            async let pruning: Void = housekeeper.run(every: .seconds(60))
            async let recording: Void = activity.run()
            _ = await (pruning, recording)
        }
        // The store has stopped by now: this is all that there is.
        await activity.recordOrLog()
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
    let store: BatchingEngine
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
