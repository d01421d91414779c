import Foundation
import Logging

/// The PostgreSQL that the service runs in its data directory if no database is configured.
///
/// Several processes may use one data directory: the first starts the server, and the last to stop stops it. Meanwhile,
/// each holds a shared file lock, which the kernel releases if the process is killed. The locks and the adoption of a
/// running server are needed because commands such as `headroom token` run beside a service, and because a killed
/// service leaves its server running.
public actor PrivateServer {
    /// How to reach the running server.
    public struct Running: Sendable, Hashable {
        /// The libpq connection string, with the database `headroom`; it holds no secret.
        public let conninfo: String
        /// A shell command that opens the database, for the service's account.
        public let psqlCommand: String
        /// The file to which the server writes its log.
        public let logFile: String
        /// Whether the server was already running.
        public let wasAdopted: Bool
    }

    static let databaseName = "headroom"
    static let userName = "headroom"
    /// The time limit for a start. Recovery after a crash replays up to `max_wal_size`, 4 GB.
    static let startLimit = Duration.seconds(300)
    private let dataDirectory: String
    /// Whether a directory without a cluster gets one. A command in the wrong directory must not create an empty
    /// database there.
    private let createsCluster: Bool
    private let logger: Logger
    private let additionalSettings: [(name: String, value: String)]
    private let stopLimitSeconds: Int
    /// The use of the server by this process; nil while it does not use it. It changes only with the start lock held.
    private var use: (lock: DirectoryLock, directory: DataDirectory, programs: PostgresPrograms)?

    /// - Parameter createsCluster: whether `start` creates a missing cluster; otherwise it throws `.clusterMissing` and
    ///   changes nothing.
    public init(dataDirectory: String, createsCluster: Bool, logger: Logger) {
        self.init(
            dataDirectory: dataDirectory,
            createsCluster: createsCluster,
            logger: logger,
            additionalSettings: []
        )
    }

    /// - Parameters:
    ///   - additionalSettings: settings for tests, which run without fsync.
    ///   - stopLimitSeconds: how long `stop` waits, within the service's drain; a longer shutdown of the server
    ///     continues after this process has ended. It is longer in tests, for a busy machine.
    package init(
        dataDirectory: String,
        createsCluster: Bool = true,
        logger: Logger,
        additionalSettings: [(name: String, value: String)],
        stopLimitSeconds: Int = 8
    ) {
        self.dataDirectory = dataDirectory
        self.createsCluster = createsCluster
        self.logger = logger
        self.additionalSettings = additionalSettings
        self.stopLimitSeconds = stopLimitSeconds
    }

    /// Starts or adopts the server, and waits until it accepts connections. A repeated call restarts a crashed server,
    /// and otherwise changes nothing.
    public func start() async throws -> Running {
        if !createsCluster { try DataDirectory.requireCluster(in: dataDirectory) }
        let directory = try await DataDirectory.prepare(dataDirectory)
        let startLock = try DirectoryLock(directory.startLock)
        try await startLock.waitExclusive(until: .now + PrivateServer.startLimit)
        defer { startLock.release() }
        // A process takes this lock exclusively only with the start lock held, so it is free or shared now.
        let usersLock = try use?.lock ?? DirectoryLock(directory.usersLock)
        guard usersLock.trySharing() else { throw FileSystem.failed("lock", directory.usersLock) }
        let isNewUse = use == nil
        // The directory is read again, because another start may have changed it before this one got the lock.
        let current = try await DataDirectory.prepare(dataDirectory)
        let programs = try await PostgresPrograms.find(
            clusterVersion: current.clusterVersion(),
            cluster: current.cluster
        )
        use = (usersLock, current, programs)
        do {
            return try await startOrAdopt(current, programs)
        } catch {
            // A cancelled start has to stop the server all the same.
            if isNewUse { await Task { await endUse() }.value }
            throw error
        }
    }

    /// Stops the server if no other process uses it. It waits at most `stopLimitSeconds` and cannot be cancelled.
    public func stop() async {
        await Task { await stopUncancelled() }.value
    }

    private func stopUncancelled() async {
        guard let directory = use?.directory else { return }
        do {
            let startLock = try DirectoryLock(directory.startLock)
            try await startLock.waitExclusive(until: .now + .seconds(stopLimitSeconds))
            defer { startLock.release() }
            await endUse()
        } catch {
            use = nil
            logger.warning("the private PostgreSQL was not stopped", metadata: ["error": "\(error)"])
        }
    }

    // MARK: With the start lock held

    private func startOrAdopt(_ directory: DataDirectory, _ programs: PostgresPrograms) async throws -> Running {
        if try directory.clusterVersion() == nil {
            guard FileSystem.kind(directory.cluster) == nil else {
                throw PrivateServerError(
                    .directoryUnusable,
                    "\(directory.cluster) is not a PostgreSQL cluster; move it away, or choose another data-dir"
                )
            }
            logger.info("creating a private PostgreSQL", metadata: metadata(directory))
            let isDurable = !additionalSettings.contains { $0 == ("fsync", "off") }
            try await ClusterInitialization(directory: directory, programs: programs, isDurable: isDurable).run()
        }
        try directory.prepareForStart()
        let deadline = ContinuousClock.now + PrivateServer.startLimit
        let processes = ClusterProcesses(cluster: directory.cluster)
        var wasAdopted = true
        while true {
            switch try processes.state() {
            case .absent:
                wasAdopted = false
                try await processes.removeCrashed()
                try await launch(directory, programs)
            case .standalone(let process):
                throw PrivateServerError(
                    .startFailed,
                    "\(directory.cluster) is open in a single-user postgres (process \(process)); end it first"
                )
            case .running:
                break
            }
            do {
                try await ensureDatabase(directory)
                break
            } catch let error as PostgresError where error.isTransient && ContinuousClock.now < deadline {
                // The server still recovers, or another process is stopping it; then the loop starts it again.
                try await Task.sleep(for: .milliseconds(50))
            }
        }
        var details = metadata(directory)
        details["postgres.adopted"] = "\(wasAdopted)"
        logger.info("the private PostgreSQL is ready", metadata: details)
        return running(directory, programs, wasAdopted: wasAdopted)
    }

    private func launch(_ directory: DataDirectory, _ programs: PostgresPrograms) async throws {
        let settings = ClusterSettings(
            socketDirectory: directory.socketDirectory,
            memoryBytes: MachineMemory.bytes,
            additional: additionalSettings
        )
        let cluster = try AccountDirectory(directory.cluster)
        try cluster.replace(ClusterSettings.fileName, with: settings.text, for: directory.account)
        try ClusterInitialization.include(in: cluster, for: directory.account)
        let seconds = PrivateServer.startLimit.components.seconds
        // With -l the server writes to the log; otherwise it would keep the pipe to this process open for ever.
        let outcome = try await ProgramRunner(account: directory.account).run(
            programs.pgCtl,
            ["start", "-D", directory.cluster, "-l", directory.log, "-w", "-t", "\(seconds)", "-s"]
        )
        guard outcome.succeeded else {
            throw PrivateServerError(
                .startFailed,
                """
                PostgreSQL did not start: \(outcome.output.trimmingCharacters(in: .whitespacesAndNewlines)) The end of \
                its log, \(directory.log):
                \(FileSystem.tail(directory.log))
                """
            )
        }
    }

    private func ensureDatabase(_ directory: DataDirectory) async throws {
        let options = ConnectionOptions(database: DatabaseTopology(conninfo(directory, database: "postgres")))
        try await onThread(named: "postgres.start") {
            let connection = try DatabaseConnection.connect(options)
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
        let processes = ClusterProcesses(cluster: directory.cluster)
        let deadline = ContinuousClock.now + .seconds(stopLimitSeconds)
        do {
            guard lock.tryExclusive(), case .running(let process) = try processes.state() else { return }
            let outcome = try await ProgramRunner(account: directory.account).run(
                programs.pgCtl,
                ["stop", "-D", directory.cluster, "-m", "fast", "-w", "-t", "\(stopLimitSeconds)", "-s"]
            )
            // pg_ctl waits for the removal of the pid file, which the server removes shortly before it ends.
            let hasEnded = outcome.succeeded ? try await processes.waitForEnd(of: process, until: deadline) : false
            guard !hasEnded else {
                logger.info("the private PostgreSQL has stopped", metadata: metadata(directory))
                return
            }
            logger.warning(
                "the private PostgreSQL is still shutting down",
                metadata: ["output": "\(outcome.output)", "postgres.log": "\(directory.log)"]
            )
        } catch {
            logger.warning("the private PostgreSQL could not be stopped", metadata: ["error": "\(error)"])
        }
    }

    private func metadata(_ directory: DataDirectory) -> Logger.Metadata {
        ["postgres.cluster": "\(directory.cluster)", "postgres.log": "\(directory.log)"]
    }
}
