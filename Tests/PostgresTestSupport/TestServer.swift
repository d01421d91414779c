import Foundation
import Logging
import Postgres

/// One private PostgreSQL per test process, in a temporary directory, and a fresh database for each test.
public enum TestServer {
    /// Starts the server at the first call.
    ///
    /// - Returns: a connection string, of the database `headroom`.
    public static func shared() async throws -> String {
        try await start.value.running.conninfo
    }

    /// A database of the caller's own, empty, in the shared server.
    ///
    /// - Returns: its connection string.
    public static func freshDatabase() async throws -> String {
        let conninfo = try await shared()
        // Test processes do not share a server, so a number would do; a name that says so helps in pg_stat_activity.
        let name = "test_" + UUID().uuidString.lowercased().filter { $0 != "-" }
        try await onThread {
            let connection = try Connection.connect(conninfo)
            defer { connection.close() }
            try connection.execute("CREATE DATABASE \(name)", deadline: .now + .seconds(60))
        }
        return conninfo.replacing("dbname=headroom", with: "dbname=\(name)")
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
            logger: Logger(label: "test.postgres") { _ in SwiftLogNoOpLogHandler() },
            // Nothing here has to survive a power loss.
            additionalSettings: [("fsync", "off"), ("shared_buffers", "64MB"), ("max_connections", "400")]
        )
        return Started(running: try await server.start(), server: server, directory: directory)
    }
}

extension Connection {
    /// With time enough for a machine that is busy testing.
    public static func connect(_ conninfo: String) throws(PostgresError) -> Connection {
        try connect(ConnectionOptions(conninfo: conninfo, connectTimeout: .seconds(30)))
    }
}
