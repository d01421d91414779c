import Engine
import Foundation
import Logging
import Postgres

/// A private PostgreSQL server per test process in a temporary directory, with a database for each test.
public enum TestServer {
    /// Starts the server at the first call.
    ///
    /// - Returns: the connection string of the database `headroom`.
    public static func shared() async throws -> String { try await start.value.running.conninfo }

    /// Creates an empty database in the shared server, and returns its connection string.
    public static func emptyDatabase() async throws -> String { try await conninfo(of: createDatabase()) }

    /// Creates a database with the present schema, and returns its connection string. It is a copy of a template,
    /// because migrating takes longer.
    public static func migratedDatabase() async throws -> String {
        try await conninfo(of: createDatabase(template: template.value))
    }

    /// Creates an empty directory that is deleted after the test process.
    public static func makeDirectory() async throws -> String {
        let path = try await start.value.directory.path + "/" + uniqueName("directory")
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        return path
    }

    private struct Started: Sendable {
        let running: PrivateServer.Running
        let server: PrivateServer
        /// The watchdog of the directory ends the server with the process.
        let directory: TemporaryDirectory
    }

    private static let start = Task<Started, any Error> {
        let directory = try TemporaryDirectory()
        let server = PrivateServer(
            dataDirectory: directory.path,
            logger: .silent,
            // Test data need not survive a power loss.
            additionalSettings: [
                ("fsync", "off"), ("shared_buffers", "64MB"), ("max_wal_size", "256MB"), ("max_connections", "500"),
                // Tests of the leeway set it.
                ("headroom.renewal_leeway", "0"),
                // It would visit the databases of all tests in turn, a thousand in the end, which live for seconds.
                ("autovacuum", "off"),
            ]
        )
        return Started(running: try await server.start(), server: server, directory: directory)
    }

    /// The name of a migrated database without connections: PostgreSQL only copies such databases.
    private static let template = Task<String, any Error> {
        let name = try await createDatabase()
        let conninfo = try await TestServer.conninfo(of: name)
        try await onThread {
            let connection = try DatabaseConnection.connect(conninfo)
            defer { connection.close() }
            _ = try Schema.migrate(connection)
        }
        try await perform("alter database \(name) with allow_connections false")
        // A session ends shortly after its connection.
        try await waitUntil("the template has no sessions") {
            try await perform("select from pg_stat_activity where datname = '\(name)'") == 0
        }
        return name
    }

    /// - Returns: the name of the database.
    private static func createDatabase(template: String? = nil) async throws -> String {
        let name = uniqueName("test")
        try await perform("create database \(name)" + (template.map { " template \($0)" } ?? ""))
        return name
    }

    private static func conninfo(of database: String) async throws -> String {
        try await shared().replacing("dbname=headroom", with: "dbname=\(database)")
    }

    /// - Returns: the number of rows.
    @discardableResult
    private static func perform(_ sql: String) async throws -> Int {
        let conninfo = try await shared()
        return try await onThread {
            let connection = try DatabaseConnection.connect(conninfo)
            defer { connection.close() }
            return try connection.query(sql, deadline: .now + waitLimit).rowCount
        }
    }

    private static func uniqueName(_ prefix: String) -> String {
        "\(prefix)_" + UUID().uuidString.lowercased().filter { $0 != "-" }
    }
}

extension DatabaseConnection {
    /// Connects with a timeout for a machine that is busy with tests.
    public static func connect(_ conninfo: String) throws(PostgresError) -> DatabaseConnection {
        try connect(ConnectionOptions(database: DatabaseTopology(conninfo), connectTimeout: waitLimit))
    }
}
