/// Checks that a pooler does not share this connection's session with other clients.
///
/// PgBouncer with `pool_mode = transaction` or `statement`, and similar poolers, run each transaction in any free
/// server process. Clients then share roles, settings, LISTEN and prepared statements: messages would be counted with
/// another client's role or search path. The server does not report the pooler's mode, so this tests it: an unshared
/// session runs all its statements in one server process, and a second connection to the same pooler gets another one.
///
/// A pooler that shares sessions can reuse the process as soon as a statement ends. PgBouncer by default assigns the
/// process that was used last, so the second connection gets the same process. With `server_round_robin`, this
/// connection's next statement gets another process, or the second connection gets the same one. While other clients
/// are busy, the result is random, so the test is repeated. If sharing is detected only later, the connection is closed
/// (`PostgresError.from`, `DatabaseConnection.requireProcess`).
struct ExclusiveSessionCheck {
    private static let rounds = 3
    /// If all processes of the pool are in use, the second connection gets none. The comparison is then skipped, so
    /// that the service does not wait.
    private static let secondConnectionTimeout = Duration.milliseconds(500)

    private let connection: DatabaseConnection
    private let server: ConnectionParameters
    private let deadline: ContinuousClock.Instant

    /// - Parameter server: the parameters of the connection's server.
    init(_ connection: DatabaseConnection, _ server: ConnectionParameters, deadline: ContinuousClock.Instant) {
        self.connection = connection
        self.server = server
        self.deadline = deadline
    }

    /// - Returns: the id of the session's server process.
    /// - Throws: `PostgresError.sharedSession` if other clients share the session.
    func verify() throws(PostgresError) -> Int32 {
        let process = try ServerProcess(of: connection, deadline: deadline)
        for _ in 0..<ExclusiveSessionCheck.rounds {
            try requireSame(process)
            guard let other = processOfSecondConnection() else { break }
            guard other != process else { throw PostgresError.sharedSession }
        }
        try requireSame(process)
        return process.id
    }

    private func requireSame(_ process: ServerProcess) throws(PostgresError) {
        let current = try ServerProcess(of: connection, deadline: deadline)
        guard current == process else { throw PostgresError.sharedSession }
    }

    /// Returns the server process of a second connection; nil if the connection gets none in time.
    private func processOfSecondConnection() -> ServerProcess? {
        let timeout = min(ExclusiveSessionCheck.secondConnectionTimeout, deadline - ContinuousClock.now)
        guard timeout > .zero else { return nil }
        do throws(PostgresError) {
            let other = try DatabaseConnection.open(server, until: .now + timeout)
            defer { other.close() }
            return try ServerProcess(of: other, deadline: .now + timeout)
        } catch {
            return nil
        }
    }
}

/// A process of a server. The id alone is unique neither over time nor over servers.
private struct ServerProcess: Equatable {
    let id: Int32
    /// When the process started; 0 if the session's current role may not read it.
    private let startedAt: Int64

    init(of connection: DatabaseConnection, deadline: ContinuousClock.Instant) throws(PostgresError) {
        let result = try connection.query(
            """
            SELECT activity.pid, activity.backend_start FROM pg_catalog.pg_stat_activity AS activity
            WHERE activity.pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid()
            """,
            deadline: deadline
        )
        guard result.rowCount == 1 else {
            throw PostgresError(.connectFailed, "pg_stat_activity does not show this session")
        }
        id = try result.int32(0, 0)
        startedAt = result.isNull(0, 1) ? 0 : try result.timestamp(0, 1)
    }
}
