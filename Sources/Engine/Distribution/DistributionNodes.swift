import Postgres

/// The servers of a distributed database that a command prepares, each with a connection of its own. It blocks.
struct DistributionNodes {
    let coordinator: CitusServer
    let workers: [CitusServer]

    var all: [CitusServer] { [coordinator] + workers }

    /// - Parameter address: the address at which others reach the coordinator; nil means that of the connection string.
    init(_ coordinator: DatabaseTopology, at address: ServerAddress?, workers: [DatabaseTopology]) throws {
        self.coordinator = try CitusServer(coordinator, at: address)
        self.workers = try workers.map { try CitusServer($0, at: nil) }
        // Otherwise the coordinator would go on for hours with what an interrupted command has begun.
        try self.coordinator.connection.execute(
            "set client_connection_check_interval = '2s'",
            deadline: .now + .seconds(30)
        )
    }

    func close() {
        for node in all { node.connection.close() }
    }

    var servers: [Distribution.Server] {
        [Distribution.Server(address: coordinator.address, problems: coordinator.problems(beside: nil))]
            + workers.map { .init(address: $0.address, problems: $0.problems(beside: coordinator.facts)) }
    }

    func requireReady() throws {
        let unready = servers.filter { !$0.problems.isEmpty }
        guard unready.isEmpty else { throw Distribution.Refusal.unready(unready) }
    }

    func lock() throws { try coordinator.connection.lockDistribution() }

    /// Makes the servers nodes of one database.
    func prepare(_ report: (ServerAddress) -> Void) throws {
        let logins = try coordinator.connection.query(EmbeddedSQL.readLogins, deadline: .now + .seconds(30))
            .firstRow.texts("statements")
        for node in all {
            report(node.address)
            try node.prepare()
            try node.execute(locally: logins)
        }
        let connection = coordinator.connection
        // A coordinator that is set keeps its address, by which all workers know it already.
        if try DistributionState(connection).coordinator == nil {
            try connection.call("citus_set_coordinator_host", coordinator.address)
        }
        for worker in workers { try connection.call("citus_add_node", worker.address) }
    }

    /// Runs `work` while the login may change Citus's catalog on each server.
    func allowingCatalogChanges<Value>(_ work: () throws -> Value) throws -> Value {
        do {
            for node in all { try node.allowCatalogChanges(true) }
            let value = try work()
            for node in all { try node.allowCatalogChanges(false) }
            return value
        } catch {
            for node in all where node.connection.isUsable { try? node.allowCatalogChanges(false) }
            throw error
        }
    }
}

/// How far a database with the extension is distributed.
struct DistributionState {
    /// The coordinator as host:port, as the workers know it; nil if they know none.
    var coordinator: String?
    var workers: [String]
    var isConverted: Bool
    var hasShards: Bool
    /// The shards of message_usage.
    var shards: Int

    init(_ connection: DatabaseConnection) throws(PostgresError) {
        let row = try connection.query(EmbeddedSQL.readDistribution, deadline: .now + .seconds(30)).firstRow
        coordinator = try row.textOrNil("coordinator")
        workers = try row.texts("workers")
        isConverted = try row.bool("is_converted")
        hasShards = try row.bool("has_shards")
        shards = try row.int32("shards")
    }
}

extension DatabaseConnection {
    /// Calls a function of Citus that takes a host and a port.
    func call(_ function: StaticString, _ server: ServerAddress) throws(PostgresError) {
        var parameters = Parameters()
        parameters.append(server)
        // The function connects to the server and copies what others have, which takes time.
        _ = try query("select \(function)($1, $2)", parameters, deadline: .now + .seconds(600))
    }
}

extension Parameters {
    /// Appends the host and the port.
    mutating func append(_ server: ServerAddress) {
        append(text: server.host)
        append(int32: server.port)
    }
}
