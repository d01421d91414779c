import Postgres

/// Distributes the rows of users over several PostgreSQL servers with Citus, while messages are counted. A distribution
/// that is interrupted goes on where it was. docs/scaling.md describes it for operators.
///
/// The users are divided into buckets before (`UserDivision`). Then
///
/// 1. each server gets the extension, its settings and Headroom's roles, and the coordinator learns of the workers;
/// 2. all functions are defined again, which Citus now does on each server;
/// 3. the tables become tables of Citus, whose rows are still where they were (`headroom.convert_tables`), and all
///    functions and views are defined again;
/// 4. the tables of users are declared to have one shard each (`headroom.declare_one_shard`), which
/// 5. Citus splits into as many as there are buckets, and moves to the workers: it copies
///    the rows, follows what changes meanwhile, and holds up messages only at the end.
///
/// docs/decisions/0043-distributing-in-place.md has the reasons.
public struct Distribution: Sendable {
    /// The reason why a database is not distributed.
    public enum Refusal: Error, Sendable, CustomStringConvertible {
        /// A server has another release of Citus than the one that serves.
        case otherRelease(ServerAddress, String)
        /// Servers lack something; nothing was changed.
        case unready([Server])
        /// The connection string of a server names a Unix socket, which others cannot reach.
        case noAddress
        /// The rows are on these workers.
        case hasWorkers([String])
        /// Users must be divided into buckets before.
        case isNotDivided
        /// Another command changes the servers: the process of its session, and the login.
        case isRunning(String)

        public var description: String {
            switch self {
            case .otherRelease(let server, let release):
                "\(server) has Citus \(release); install \(Citus.release), the release that was tried"
            case .unready(let servers):
                "not all servers are ready, and nothing was changed:\n"
                    + servers.flatMap { server in server.problems.map { "\(server.address): \($0)" } }
                    .joined(separator: "\n")
            case .noAddress:
                """
                each URL must name its server by a host, so that the others can reach it; --coordinator HOST:PORT names \
                that of database-url
                """
            case .hasWorkers(let workers):
                """
                the rows of users are on \(workers.joined(separator: ", ")); headroom rebalance --workers adds \
                further workers
                """
            case .isNotDivided: "the users are not divided into buckets"
            case .isRunning(let session): "\(session) moves the users of this database; wait until it has ended"
            }
        }
    }

    /// A node, and the reasons why it cannot be one yet.
    public struct Server: Sendable {
        public var address: ServerAddress
        public var problems: [String]
    }

    /// What a distribution is going to do.
    public struct Plan: Sendable {
        public var servers: [Server]
        /// The bytes of the tables of users.
        public var bytes: Int
        /// Whether the rows are on the workers.
        public var isDone: Bool
    }

    public enum Progress: Sendable {
        case preparing(ServerAddress)
        case definingFunctions
        case convertingTables
        /// The bytes that were written on the workers, and about how many there will be.
        case moving(bytes: Int, ofAbout: Int)
        case collectingStatistics
    }

    /// What a distribution has done.
    public struct Summary: Sendable {
        /// The longest time for which nothing was counted, while the tables became tables of Citus.
        public var longestPause: Duration
        public var shards: Int
    }

    /// A rate for estimates. It was measured beside a load, between servers on one machine.
    public static let usualBytesPerSecond = 20_000_000
    /// A time limit that is longer than copying the largest database takes.
    static let copyLimit = Duration.seconds(7 * 86_400)

    private let coordinator: DatabaseTopology
    private let coordinatorAddress: ServerAddress?
    private let workers: [DatabaseTopology]

    /// - Parameters:
    ///   - coordinator: the database to distribute, as a superuser.
    ///   - address: the address at which workers reach it; nil means that of the connection string.
    ///   - workers: for each other server, an empty database of the same name, as a superuser of the same name.
    public init(_ coordinator: DatabaseTopology, at address: ServerAddress?, workers: [DatabaseTopology]) {
        self.coordinator = coordinator
        coordinatorAddress = address
        self.workers = workers
    }

    /// Computes what `run` would do, and changes nothing. It blocks.
    public func plan() throws -> Plan {
        let nodes = try DistributionNodes(coordinator, at: coordinatorAddress, workers: workers)
        defer { nodes.close() }
        let state = try nodes.coordinator.facts.hasExtension ? DistributionState(nodes.coordinator.connection) : nil
        return Plan(
            servers: nodes.servers,
            bytes: try size(nodes.coordinator.connection),
            isDone: (state?.shards ?? 0) > 1
        )
    }

    /// Checks that each server has what it needs, and changes nothing. It blocks.
    public func check() throws {
        let nodes = try DistributionNodes(coordinator, at: coordinatorAddress, workers: workers)
        defer { nodes.close() }
        try nodes.requireReady()
    }

    /// Distributes the database, or does nothing if it is distributed over the same workers. It blocks.
    public func run(_ report: (Progress) -> Void) throws -> Summary {
        let nodes = try DistributionNodes(coordinator, at: coordinatorAddress, workers: workers)
        defer { nodes.close() }
        try nodes.requireReady()
        try nodes.lock()
        let connection = nodes.coordinator.connection
        let map = try connection.currentBuckets(deadline: .now + .seconds(30))
        guard !map.isSingle, map.isSettled else { throw Refusal.isNotDivided }

        if nodes.coordinator.facts.hasExtension {
            let state = try DistributionState(connection)
            if state.shards > 1 {
                let wanted = Set(nodes.workers.map(\.address.description))
                guard Set(state.workers) == wanted else { throw Refusal.hasWorkers(state.workers) }
                return Summary(longestPause: .zero, shards: state.shards)
            }
        }
        try nodes.prepare { report(.preparing($0)) }
        // Older sessions have neither the settings of the database nor those that the service sets with Citus.
        _ = try connection.query(EmbeddedSQL.endSessions, deadline: .now + .seconds(30))
        let state = try DistributionState(connection)
        var summary = Summary(longestPause: .zero, shards: state.shards)
        if !state.isConverted {
            report(.definingFunctions)
            _ = try Schema.migrate(connection, reinstalls: true)
            report(.convertingTables)
            summary.longestPause = try RetriedTransaction(connection: connection)
                .execute(EmbeddedSQL.convertTables).duration
        }
        _ = try Schema.migrate(connection, reinstalls: true)
        if !state.hasShards {
            let pause = try nodes.allowingCatalogChanges {
                try RetriedTransaction(connection: connection).execute(EmbeddedSQL.declareOneShard).duration
            }
            summary.longestPause = max(summary.longestPause, pause)
        }
        try move(nodes, report)
        report(.collectingStatistics)
        try finish(connection)
        summary.shards = try DistributionState(connection).shards
        return summary
    }

    // MARK: Moving

    private func size(_ connection: DatabaseConnection) throws(PostgresError) -> Int {
        Int(try connection.query(EmbeddedSQL.readUsersSize, deadline: .now + .seconds(60)).int64(0, 0))
    }

    /// Copies the rows to the workers. The time grows with their number.
    private func move(_ nodes: DistributionNodes, _ report: (Progress) -> Void) throws {
        let connection = nodes.coordinator.connection
        let observer = try DatabaseConnection.connect(.migration(coordinator))
        defer { observer.close() }
        let bytes = try size(observer)
        let before = try workersSize(observer)
        let split = try connection.query(EmbeddedSQL.readSplit, deadline: .now + .seconds(30))
        guard split.rowCount > 0 else { return }
        let points = try split.firstRow.texts("split_points")
        let targets = try split.int32s(0, split.column("workers")).compactMap(\.self)
        var parameters = Parameters()
        parameters.append(int64: try split.firstRow.int64("shard"))
        parameters.appendTexts(count: points.count) { points[$0] }
        parameters.appendInt32s(count: targets.count) { targets[$0] }
        try connection.prepare("split", EmbeddedSQL.splitShard, deadline: .now + .seconds(30))
        let limit = ContinuousClock.now + Distribution.copyLimit
        try connection.send(prepared: "split", parameters)
        report(.moving(bytes: 0, ofAbout: bytes))
        while try connection.awaitResult(until: min(limit, .now + .seconds(1))) == nil {
            guard ContinuousClock.now < limit else {
                connection.cancel()
                throw PostgresError(.timedOut, "the rows were not copied within \(Distribution.copyLimit)")
            }
            report(.moving(bytes: max(0, try workersSize(observer) - before), ofAbout: bytes))
        }
    }

    private func workersSize(_ connection: DatabaseConnection) throws(PostgresError) -> Int {
        Int(try connection.query(EmbeddedSQL.readWorkersSize, deadline: .now + .seconds(60)).int64(0, 0))
    }

    /// Deletes what the move has left over, and lets lanes find the workers.
    private func finish(_ connection: DatabaseConnection) throws(PostgresError) {
        let tables = try connection.query(EmbeddedSQL.listDistributedTables, deadline: .now + .seconds(30))
        for row in 0..<tables.rowCount {
            try connection.execute("analyze \(tables.text(row, 0))", deadline: .now + .seconds(3_600))
        }
        // This also informs the lanes, whose next batch finds that the revision has changed.
        try connection.execute(
            "update headroom.plan_revision set buckets_revision = buckets_revision + 1",
            deadline: .now + .seconds(30)
        )
        try connection.execute("call citus_cleanup_orphaned_resources()", deadline: .now + .seconds(3_600))
    }
}
