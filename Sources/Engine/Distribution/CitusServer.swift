import Postgres

/// A PostgreSQL server that is, or is going to be, a node of a distributed database. Its functions block.
struct CitusServer {
    let address: ServerAddress
    let connection: DatabaseConnection
    let facts: Facts

    /// What a server has that a node needs.
    struct Facts {
        var login: String
        var isSuperuser: Bool
        var majorVersion: Int
        var isPreloaded: Bool
        var writesLogicalWAL: Bool
        var allowsPlugin: Bool
        var preparesTransactions: Bool
        var hasExtension: Bool
        var hasSchema: Bool
        var isStandby: Bool
        var database: String
        var encoding: String
        var collation: String

        init(_ result: QueryResult) throws(PostgresError) {
            let row = result.firstRow
            login = try row.text("login")
            isSuperuser = try row.bool("is_superuser")
            majorVersion = try row.int32("major_version")
            isPreloaded = try row.boolOrNil("is_preloaded") ?? false
            writesLogicalWAL = try row.text("wal_level") == "logical"
            allowsPlugin = try row.text("output_plugins").split { ", ".contains($0) }.contains("citus")
            preparesTransactions = try row.int32("prepared_transactions") > 0
            hasExtension = try row.bool("has_extension")
            hasSchema = try row.bool("has_schema")
            isStandby = try row.bool("is_standby")
            database = try row.text("database")
            encoding = try row.text("encoding")
            collation = try row.text("collation")
        }
    }

    /// - Parameter address: the address at which others reach it; nil means that of the primary among the servers of
    ///   the connection string.
    /// - Throws: `Distribution.Refusal.noAddress` if that is a Unix socket.
    init(_ database: DatabaseTopology, at address: ServerAddress?) throws {
        connection = try DatabaseConnection.connect(.migration(database))
        guard let address = address ?? connection.address else {
            connection.close()
            throw Distribution.Refusal.noAddress
        }
        self.address = address
        facts = try Facts(connection.query(EmbeddedSQL.readNode, deadline: .now + .seconds(30)))
    }

    /// The reasons why the server cannot be a node, each with what to do about it.
    func problems(beside coordinator: Facts?) -> [String] {
        var problems: [String] = []
        if !facts.isSuperuser { problems.append("\(facts.login) is no superuser; give the URL of one") }
        if facts.isStandby { problems.append("it is a standby; give the URL of its primary") }
        if !facts.isPreloaded {
            problems.append("it does not load Citus; install it, and set shared_preload_libraries = 'citus'")
        }
        if !facts.writesLogicalWAL {
            problems.append("rows cannot be moved while messages are counted; set wal_level = logical")
        }
        if !facts.allowsPlugin {
            problems.append("rows cannot be moved; set output_plugin_libraries = 'pgoutput, test_decoding, citus'")
        }
        if !facts.preparesTransactions {
            problems.append("changes of several machines cannot be committed; set max_prepared_transactions = 200")
        }
        guard let coordinator else { return problems }
        if facts.hasSchema, !facts.hasExtension {
            problems.append("its database has the schema headroom already; give an empty database")
        }
        for (name, own, other) in [
            ("PostgreSQL", "\(facts.majorVersion)", "\(coordinator.majorVersion)"),
            ("login", facts.login, coordinator.login), ("database", facts.database, coordinator.database),
            ("encoding", facts.encoding, coordinator.encoding), ("collation", facts.collation, coordinator.collation),
        ] where own != other {
            problems.append("\(name) is \(own), on the coordinator \(other); all nodes must have the same")
        }
        return problems
    }

    /// Installs the extension and sets the settings of the database.
    ///
    /// - Throws: `Distribution.Refusal.otherRelease` if another release of Citus serves.
    func prepare() throws {
        try connection.execute(EmbeddedSQL.prepareNode, deadline: .now + .seconds(60))
        let query = "select substring(citus_version() from 'Citus ([^ ]+)')"
        let release = try connection.query(query, deadline: .now + .seconds(30)).text(0, 0)
        guard release == Citus.release else { throw Distribution.Refusal.otherRelease(address, release) }
    }

    /// Executes statements that Citus must not pass on to other servers.
    func execute(locally statements: [String]) throws(PostgresError) {
        try connection.execute(
            (["begin", "set local citus.enable_ddl_propagation = off"] + statements + ["commit"])
                .joined(separator: ";\n"),
            deadline: .now + .seconds(60)
        )
    }

    /// Lets the session's login change Citus's catalog, or ends that.
    func allowCatalogChanges(_ isAllowed: Bool) throws(PostgresError) {
        let login = isAllowed ? facts.login : ""
        let literal = login.replacing("'", with: "''")
        // ALTER SYSTEM runs in no transaction, so each is a statement of its own.
        try connection.execute(
            isAllowed
                ? "alter system set citus.enable_manual_metadata_changes_for_user = '\(literal)'"
                : "alter system reset citus.enable_manual_metadata_changes_for_user",
            deadline: .now + .seconds(30)
        )
        try connection.execute("select pg_reload_conf()", deadline: .now + .seconds(30))
        // Sessions see the new setting a moment later.
        let limit = ContinuousClock.now + .seconds(30)
        let query = "select current_setting('citus.enable_manual_metadata_changes_for_user')"
        while try connection.query(query, deadline: limit).text(0, 0) != login {
            RetriedTransaction.sleep(.milliseconds(20))
        }
    }
}
