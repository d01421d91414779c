import Engine
import Foundation
import Logging
import Postgres

/// One private PostgreSQL per test process, in a temporary directory, and a database of its own for each test.
public enum TestServer {
    /// Starts the server at the first call.
    ///
    /// - Returns: a connection string, of the database `headroom`.
    public static func shared() async throws -> String {
        try await start.value.running.conninfo
    }

    /// An empty database of the caller's own, in the shared server.
    ///
    /// - Returns: its connection string.
    public static func emptyDatabase() async throws -> String {
        try await createDatabase()
    }

    /// A database of the caller's own with the present schema. It is a copy, because migrating takes much longer.
    ///
    /// - Returns: its connection string.
    public static func migratedDatabase() async throws -> String {
        try await createDatabase(template: template.value)
    }

    /// An empty directory of the caller's own, which goes with the test process.
    public static func makeDirectory() async throws -> String {
        let path = try await start.value.directory.path + "/" + uniqueName("directory")
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        return path
    }

    private struct Started: Sendable {
        let running: PrivateServer.Running
        let server: PrivateServer
        /// Held until the process ends, and the server ends with it.
        let directory: TemporaryDirectory
    }

    private static let start = Task<Started, any Error> {
        let directory = try TemporaryDirectory()
        let server = PrivateServer(
            dataDirectory: directory.path,
            logger: .silent,
            // Nothing here has to survive a power loss.
            additionalSettings: [("fsync", "off"), ("shared_buffers", "64MB"), ("max_connections", "500")]
        )
        return Started(running: try await server.start(), server: server, directory: directory)
    }

    /// The name of a migrated database that nobody is connected to, as PostgreSQL demands of what it copies.
    private static let template = Task<String, any Error> {
        let conninfo = try await createDatabase()
        let name = try databaseName(conninfo)
        try await onThread {
            let connection = try Connection.connect(conninfo)
            defer { connection.close() }
            _ = try Schema.migrate(connection)
        }
        try await perform("alter database \(name) with allow_connections false")
        // A session ends a moment after its connection.
        try await waitUntil("nobody is connected to the template") {
            try await perform("select from pg_stat_activity where datname = '\(name)'") == 0
        }
        return name
    }

    private static func createDatabase(template: String? = nil) async throws -> String {
        // Test processes do not share a server, so a number would do; a name that says so helps in pg_stat_activity.
        let name = uniqueName("test")
        try await perform("create database \(name)" + (template.map { " template \($0)" } ?? ""))
        return try await shared().replacing("dbname=headroom", with: "dbname=\(name)")
    }

    /// - Returns: the number of rows.
    @discardableResult
    private static func perform(_ sql: String) async throws -> Int {
        let conninfo = try await shared()
        return try await onThread {
            let connection = try Connection.connect(conninfo)
            defer { connection.close() }
            return try connection.query(sql, deadline: .now + waitLimit).rowCount
        }
    }

    private static func databaseName(_ conninfo: String) throws -> String {
        guard let match = conninfo.firstMatch(of: /dbname=(\w+)/) else { throw CocoaError(.formatting) }
        return String(match.1)
    }

    private static func uniqueName(_ prefix: String) -> String {
        "\(prefix)_" + UUID().uuidString.lowercased().filter { $0 != "-" }
    }
}

extension Connection {
    /// With time enough for a machine that is busy testing.
    public static func connect(_ conninfo: String) throws(PostgresError) -> Connection {
        try connect(ConnectionOptions(conninfo: conninfo, connectTimeout: waitLimit))
    }
}
