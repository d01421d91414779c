import Postgres
import TestSupport

/// A deadline for one statement.
var soon: ContinuousClock.Instant { .now + waitLimit }

/// Runs the scenario on a thread, with a connection to the shared server.
func connected(_ scenario: @escaping @Sendable (DatabaseConnection) throws -> Void) async throws {
    let conninfo = try await TestServer.shared()
    try await onThread {
        let connection = try DatabaseConnection.connect(conninfo)
        defer { connection.close() }
        try scenario(connection)
    }
}
