import CLibPQ

/// Checks that a pooler does not share a session with other clients.
///
/// PgBouncer with `pool_mode = transaction` or `statement`, and similar poolers, run each transaction in any free server
/// process. Role, settings, LISTEN and prepared statements would then affect other clients, and theirs this one: messages would
/// be counted with another role, or another search path. The server does not report the pooler's mode, so this tests it: an
/// exclusive process runs all transactions of this connection, and none of a second connection to the same pooler.
///
/// A sharing pooler can reuse the process as soon as a statement ends. PgBouncer then assigns the one that was used last, so
/// the second connection gets it; with `server_round_robin` this connection's next statement gets another one, or both share
/// one. While other clients are busy the result is random, so the test is repeated; sharing that shows later closes the
/// connection (`PostgresError.from`, `Connection.requireProcess`).
struct SessionOwnership {
    private static let attempts = 3
    /// A pool whose processes are all in use has none for a second connection. The test then ends without a result, so that the
    /// service does not wait.
    private static let secondConnectionTimeout = Duration.milliseconds(500)

    private let connection: Connection
    private let attempt: ConnectionAttempt
    private let deadline: ContinuousClock.Instant

    init(_ connection: Connection, _ attempt: ConnectionAttempt, deadline: ContinuousClock.Instant) {
        self.connection = connection
        self.attempt = attempt
        self.deadline = deadline
    }

    /// - Returns: the process of the session.
    /// - Throws: `PostgresError.sharedSession`.
    func verify() throws(PostgresError) -> Int32 {
        let own = try ServerProcess(of: connection, deadline: deadline)
        for _ in 0..<SessionOwnership.attempts {
            try requireOwn(own)
            guard let other = processOfSecondConnection() else { break }
            guard other != own else { throw PostgresError.sharedSession }
        }
        try requireOwn(own)
        return own.id
    }

    private func requireOwn(_ process: ServerProcess) throws(PostgresError) {
        let now = try ServerProcess(of: connection, deadline: deadline)
        guard now == process else { throw PostgresError.sharedSession }
    }

    /// The process of a second connection; nil if that gets none in time.
    private func processOfSecondConnection() -> ServerProcess? {
        let timeout = min(SessionOwnership.secondConnectionTimeout, deadline - ContinuousClock.now)
        guard timeout > .zero else { return nil }
        do throws(PostgresError) {
            var attempt = attempt.again(like: connection.handle, timeout: timeout)
            let other = Connection(handle: try attempt.run())
            defer { other.close() }
            guard PQsetnonblocking(other.handle, 1) == 0 else { return nil }
            return try ServerProcess(of: other, deadline: .now + timeout)
        } catch {
            return nil
        }
    }
}

/// A process of a server. The id alone is not unique over time and servers.
private struct ServerProcess: Equatable {
    let id: Int32
    /// 0 if the session's present role may not see it.
    private let startedAt: Int64

    init(of connection: Connection, deadline: ContinuousClock.Instant) throws(PostgresError) {
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
