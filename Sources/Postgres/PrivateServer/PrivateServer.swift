import Foundation
import Logging

/// The PostgreSQL that the service runs for itself in its data directory, where nobody gave it a database.
///
/// Several processes may use one data directory: whoever comes first starts the server, whoever stops last stops it,
/// and a process that was killed counts no more, since its locks went with it. The server survives its users' deaths;
/// the next one adopts it.
public actor PrivateServer {
    /// How to reach the running server.
    public struct Running: Sendable, Hashable {
        /// libpq connection string, with the database `headroom`; it holds no secret.
        public let conninfo: String
        /// A line to paste into a shell, for a person with the service's rights.
        public let psqlCommand: String
        /// Where the server writes its log.
        public let logFile: String
        /// Whether it was running already.
        public let wasAdopted: Bool
    }

    static let databaseName = "headroom"
    static let userName = "headroom"
    /// Recovery after a crash reads up to `max_wal_size`, 4 GB, and applies it.
    static let startLimit = Duration.seconds(300)
    /// Within the service's drain; a shutdown that takes longer goes on without us.
    static let stopLimitSeconds = 8

    private let dataDirectory: String
    /// Whether a directory without a cluster gets one. A command that is run in the wrong directory must not make a second,
    /// empty database there.
    private let createsCluster: Bool
    private let logger: Logger
    private let additionalSettings: [(name: String, value: String)]
    /// Set while this object is one of the server's users. Changed only with the start lock held.
    private var use: (lock: DirectoryLock, directory: DataDirectory, programs: PostgresPrograms)?

    /// - Parameter createsCluster: whether `start` makes a cluster where there is none; otherwise it throws
    ///   `.clusterMissing`, and changes nothing.
    public init(dataDirectory: String, createsCluster: Bool, logger: Logger) {
        self.init(
            dataDirectory: dataDirectory,
            createsCluster: createsCluster,
            logger: logger,
            additionalSettings: []
        )
    }

    /// - Parameter additionalSettings: for tests, which can do without fsync.
    package init(
        dataDirectory: String,
        createsCluster: Bool = true,
        logger: Logger,
        additionalSettings: [(name: String, value: String)]
    ) {
        self.dataDirectory = dataDirectory
        self.createsCluster = createsCluster
        self.logger = logger
        self.additionalSettings = additionalSettings
    }

    /// Starts or adopts the server, and waits until it accepts connections. Calling it again is harmless, and starts a
    /// server anew that has crashed since.
    public func start() async throws -> Running {
        if !createsCluster { try DataDirectory.requireCluster(in: dataDirectory) }
        let directory = try await DataDirectory.prepare(dataDirectory)
        let startLock = try DirectoryLock(directory.startLock)
        try await startLock.waitExclusive(until: .now + PrivateServer.startLimit)
        defer { startLock.release() }
        // Only whoever has the start lock takes this one exclusively; so it is free, or shared.
        let usersLock = try use?.lock ?? DirectoryLock(directory.usersLock)
        guard usersLock.trySharing() else { throw Files.failed("lock", directory.usersLock) }
        let isNewUse = use == nil
        // Another start of this object may have waited for the lock; it owns the directory as it is now.
        let current = try await DataDirectory.prepare(dataDirectory)
        let programs = try await PostgresPrograms.find(
            clusterVersion: current.clusterVersion,
            cluster: current.cluster
        )
        use = (usersLock, current, programs)
        do {
            return try await bringUp(current, programs)
        } catch {
            if isNewUse { await endUse() }
            throw error
        }
    }

    /// Stops the server if this was its last user. Waits for the end, but not for ever. Not cancellable.
    public func stop() async {
        await Task { await stopUncancelled() }.value
    }

    private func stopUncancelled() async {
        guard let directory = use?.directory else { return }
        do {
            let startLock = try DirectoryLock(directory.startLock)
            try await startLock.waitExclusive(until: .now + .seconds(PrivateServer.stopLimitSeconds))
            defer { startLock.release() }
            await endUse()
        } catch {
            use = nil
            logger.warning("private PostgreSQL left running", metadata: ["error": "\(error)"])
        }
    }

    // MARK: With the start lock held

    private func bringUp(_ directory: DataDirectory, _ programs: PostgresPrograms) async throws -> Running {
        if directory.clusterVersion == nil {
            guard Files.kind(directory.cluster) == nil else {
                throw PrivateServerError(
                    .directoryUnusable,
                    "\(directory.cluster) is no PostgreSQL cluster; move it away, or choose another data-dir"
                )
            }
            logger.info("making a private PostgreSQL", metadata: metadata(directory))
            let isDurable = !additionalSettings.contains { $0 == ("fsync", "off") }
            try await ClusterInitialization(directory: directory, programs: programs, isDurable: isDurable).run()
        }
        try directory.prepareForStart()
        let deadline = ContinuousClock.now + PrivateServer.startLimit
        let postmaster = Postmaster(cluster: directory.cluster)
        var wasAdopted = true
        while true {
            switch postmaster.state {
            case .absent:
                wasAdopted = false
                try await postmaster.clearRemains()
                try await launch(directory, programs)
            case .standalone(let process):
                throw PrivateServerError(
                    .startFailed,
                    "\(directory.cluster) is open in a single-user postgres (process \(process)); end that one first"
                )
            case .running:
                break
            }
            do {
                try await ensureDatabase(directory)
                break
            } catch let error as PostgresError where error.isTransient && ContinuousClock.now < deadline {
                // Recovering still, or shutting down after its last user; in that case it is started when it is gone.
                try await Task.sleep(for: .milliseconds(50))
            }
        }
        var details = metadata(directory)
        details["postgres.adopted"] = "\(wasAdopted)"
        logger.info("private PostgreSQL ready", metadata: details)
        return running(directory, programs, wasAdopted: wasAdopted)
    }

    private func launch(_ directory: DataDirectory, _ programs: PostgresPrograms) async throws {
        let settings = ClusterSettings(
            socketDirectory: directory.socketDirectory,
            memoryBytes: MachineMemory.bytes,
            additional: additionalSettings
        )
        let path = directory.cluster + "/" + ClusterSettings.fileName
        try Files.replace(path, with: settings.text, for: directory.account)
        try ClusterInitialization.include(in: directory.cluster, for: directory.account)
        let seconds = PrivateServer.startLimit.components.seconds
        // With -l the server's own output goes to the log: otherwise it would hold the pipe to us open for ever.
        let outcome = try await ProgramRunner(account: directory.account).run(
            programs.pgControl,
            ["start", "-D", directory.cluster, "-l", directory.log, "-w", "-t", "\(seconds)", "-s"]
        )
        guard outcome.succeeded else {
            throw PrivateServerError(
                .startFailed,
                """
                PostgreSQL did not start: \(outcome.output.trimmingCharacters(in: .whitespacesAndNewlines)) The end of \
                its log, \(directory.log):
                \(Files.tail(directory.log))
                """
            )
        }
    }

    private func ensureDatabase(_ directory: DataDirectory) async throws {
        let options = ConnectionOptions(conninfo: conninfo(directory, database: "postgres"))
        try await onThread(named: "postgres.start") {
            let connection = try Connection.connect(options)
            defer { connection.close() }
            let deadline = ContinuousClock.now + .seconds(30)
            var parameters = Parameters()
            parameters.append(text: PrivateServer.databaseName)
            let query = "SELECT EXISTS (SELECT FROM pg_catalog.pg_database WHERE datname = $1)"
            guard try !connection.query(query, parameters, deadline: deadline).bool(0, 0) else { return }
            try connection.execute("CREATE DATABASE \(PrivateServer.databaseName)", deadline: deadline)
        }
    }

    private func endUse() async {
        guard let (lock, directory, programs) = use else { return }
        use = nil
        defer { lock.release() }
        let postmaster = Postmaster(cluster: directory.cluster)
        guard lock.tryExclusive(), case .running(let process) = postmaster.state else { return }
        do {
            let outcome = try await ProgramRunner(account: directory.account).run(
                programs.pgControl,
                ["stop", "-D", directory.cluster, "-m", "fast", "-w", "-t", "\(PrivateServer.stopLimitSeconds)", "-s"]
            )
            // In a container we may be process 1, and inherit the server when pg_ctl ends: nobody else would reap it.
            waitpid(process, nil, WNOHANG)
            guard !outcome.succeeded else {
                logger.info("private PostgreSQL stopped", metadata: metadata(directory))
                return
            }
            logger.warning(
                "private PostgreSQL is still shutting down",
                metadata: ["output": "\(outcome.output)", "postgres.log": "\(directory.log)"]
            )
        } catch {
            logger.warning("private PostgreSQL could not be stopped", metadata: ["error": "\(error)"])
        }
    }

    private func metadata(_ directory: DataDirectory) -> Logger.Metadata {
        ["postgres.cluster": "\(directory.cluster)", "postgres.log": "\(directory.log)"]
    }
}
