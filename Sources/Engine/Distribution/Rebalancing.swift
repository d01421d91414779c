import Postgres

/// Moves shards between the workers of a distributed database, while messages are counted: to workers that it adds,
/// from one that it removes, and from those that have more than others. If it is interrupted, it goes on where it was.
public struct Rebalancing: Sendable {
    /// The reason why nothing is moved.
    public enum Refusal: Error, Sendable, CustomStringConvertible {
        case isNotDistributed
        case hasNoWorker(ServerAddress)

        public var description: String {
            switch self {
            case .isNotDistributed: "the database has no workers; headroom distribute --workers gives it some"
            case .hasNoWorker(let address): "the database has no worker \(address)"
            }
        }
    }

    /// A bucket stayed where it was, because a server of its move was lost.
    public struct LostServer: Error, Sendable, CustomStringConvertible {
        public var address: String

        public var description: String {
            """
            a bucket stayed where it was, because \(address) cannot be reached, or is no longer the primary of its \
            worker; when the worker has a primary again, run the same command again
            """
        }
    }

    /// What a rebalancing is going to do.
    public struct Plan: Sendable {
        public var servers: [Distribution.Server]
        /// The moves; nil if workers are added, because Citus plans moves only to those that it knows.
        public var moves: [Move]?
    }

    /// A shard of each table of users, and with it the users of one bucket.
    public struct Move: Sendable {
        public var shard: Int64
        public var source: ServerAddress
        public var target: ServerAddress
    }

    public struct Progress: Sendable {
        public var moved: Int
        public var moves: Int
    }

    /// The longest time for which a server of a move may be away, as for a restart.
    private static let longestLoss = Duration.seconds(10)

    private let coordinator: DatabaseTopology
    private let added: [DatabaseTopology]
    private let removed: ServerAddress?

    /// - Parameters:
    ///   - coordinator: the database, as a superuser.
    ///   - added: further workers; `Distribution` documents what they need.
    ///   - removed: a worker to empty and to remove from the nodes.
    public init(_ coordinator: DatabaseTopology, adding added: [DatabaseTopology], removing removed: ServerAddress?) {
        self.coordinator = coordinator
        self.added = added
        self.removed = removed
    }

    /// Computes what `run` would do, and changes nothing. It blocks.
    public func plan() throws -> Plan {
        let nodes = try open()
        defer { nodes.close() }
        return Plan(servers: nodes.servers, moves: added.isEmpty && removed == nil ? try moves(nodes) : nil)
    }

    /// Moves the shards. It blocks.
    ///
    /// - Parameter report: called before the first move, and after each; not at all if there is nothing to move.
    /// - Returns: the number of shards of message_usage that were moved.
    public func run(_ report: (Progress) -> Void) throws -> Int {
        let nodes = try open()
        defer { nodes.close() }
        try nodes.requireReady()
        try nodes.lock()
        let connection = nodes.coordinator.connection
        try nodes.prepare { _ in }
        // Workers that have just been added lack these tables; the others have them.
        try connection.execute("select replicate_reference_tables('force_logical')", deadline: .now + .seconds(3_600))
        // Citus has created the views on the new workers, but not the rights on them.
        if !added.isEmpty { _ = try Schema.migrate(connection, reinstalls: true) }
        if let removed { try forbidShards(removed, connection) }
        let moves = try moves(nodes)
        let observer = try DatabaseConnection.connect(.migration(coordinator))
        defer { observer.close() }
        try connection.prepare("move", EmbeddedSQL.moveShard, deadline: .now + .seconds(30))
        for (index, move) in moves.enumerated() {
            report(Progress(moved: index, moves: moves.count))
            try run(move, connection, observer)
        }
        if !moves.isEmpty { report(Progress(moved: moves.count, moves: moves.count)) }
        if let removed { try connection.call("citus_remove_node", removed) }
        try connection.execute("call citus_cleanup_orphaned_resources()", deadline: .now + .seconds(3_600))
        return moves.count
    }

    private func open() throws -> DistributionNodes {
        let nodes = try DistributionNodes(coordinator, at: nil, workers: added)
        guard nodes.coordinator.facts.hasExtension,
            try DistributionState(nodes.coordinator.connection).shards > 1
        else {
            nodes.close()
            throw Refusal.isNotDistributed
        }
        return nodes
    }

    private func moves(_ nodes: DistributionNodes) throws(PostgresError) -> [Move] {
        var parameters = Parameters()
        parameters.append(bool: removed != nil)
        let result = try nodes.coordinator.connection.query(
            EmbeddedSQL.readMoves,
            parameters,
            deadline: .now + .seconds(60)
        )
        var moves: [Move] = []
        for row in 0..<result.rowCount {
            moves.append(
                Move(
                    shard: try result.int64(row, 0),
                    source: ServerAddress(host: result.text(row, 1), port: try result.int32(row, 2)),
                    target: ServerAddress(host: result.text(row, 3), port: try result.int32(row, 4))
                )
            )
        }
        return moves
    }

    /// Ends the move if one of its servers is lost. Citus alone would wait for hours for the one that a shard leaves.
    private func run(_ move: Move, _ connection: DatabaseConnection, _ observer: DatabaseConnection) throws {
        var parameters = Parameters()
        parameters.append(int64: move.shard)
        parameters.append(move.source)
        parameters.append(move.target)
        try connection.send(prepared: "move", parameters)
        var lostSince: ContinuousClock.Instant?
        while try connection.awaitResult(until: .now + .seconds(1)) == nil {
            guard let lost = try lostServer(of: move, observer) else {
                lostSince = nil
                continue
            }
            let began = lostSince ?? .now
            lostSince = began
            guard began.duration(to: .now) >= Rebalancing.longestLoss else { continue }
            connection.cancel()
            do {
                // The move may have ended before the loss.
                if try connection.awaitResult(until: .now + .seconds(60)) != nil { return }
            } catch {
                guard error.kind == .server(.queryCanceled) else { throw error }
            }
            throw LostServer(address: lost)
        }
    }

    private func lostServer(of move: Move, _ observer: DatabaseConnection) throws(PostgresError) -> String? {
        var parameters = Parameters()
        parameters.append(move.source)
        parameters.append(move.target)
        let lost = try observer.query(EmbeddedSQL.readLostServers, parameters, deadline: .now + .seconds(120))
        return lost.rowCount > 0 ? lost.text(0, 0) : nil
    }

    private func forbidShards(_ worker: ServerAddress, _ connection: DatabaseConnection) throws {
        guard try DistributionState(connection).workers.contains(worker.description) else {
            throw Refusal.hasNoWorker(worker)
        }
        var parameters = Parameters()
        parameters.append(worker)
        _ = try connection.query(
            "select citus_set_node_property($1, $2, 'shouldhaveshards', false)",
            parameters,
            deadline: .now + .seconds(60)
        )
    }
}
