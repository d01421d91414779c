import CLibPQ

/// Finds out whether a session behind a pooler is its client's alone.
///
/// PgBouncer with `pool_mode = transaction` or `statement`, and others like it, run each transaction in any server
/// process that is free. Role, settings, LISTEN and prepared statements would then reach other clients, and theirs
/// would reach us: messages would be counted as somebody else, or with another search path. No server says which mode
/// it is behind, so this looks: a process that is ours alone serves all our transactions, and never those of a second
/// connection to the same pooler.
///
/// A pooler that shares has our process free as soon as a statement is over. PgBouncer then gives out the one that was
/// used last, so the second connection gets it; with `server_round_robin` our own next statement gets another one, or
/// there is only one for both. While other clients are busy chance decides, so it is tried some times; and what sharing
/// comes to light later ends the connection (`PostgresError.from`, `Connection.requireProcess`).
struct SessionOwnership {
    private static let attempts = 3
    /// A pool of which every process is in use has none for the second connection. Then nothing is proved by it, and
    /// the service is not to wait.
    private static let patience = Duration.milliseconds(500)

    private let connection: Connection
    private let connecting: Connecting
    private let deadline: ContinuousClock.Instant

    init(_ connection: Connection, _ connecting: Connecting, deadline: ContinuousClock.Instant) {
        self.connection = connection
        self.connecting = connecting
        self.deadline = deadline
    }

    /// - Returns: the process of the session.
    /// - Throws: `PostgresError.sharedSession`.
    func prove() throws(PostgresError) -> Int32 {
        let own = try ServerProcess(of: connection, deadline: deadline)
        for _ in 0..<SessionOwnership.attempts {
            try requireOwn(own)
            guard let other = processOfAnother() else { break }
            guard other != own else { throw PostgresError.sharedSession }
        }
        try requireOwn(own)
        return own.id
    }

    private func requireOwn(_ process: ServerProcess) throws(PostgresError) {
        let now = try ServerProcess(of: connection, deadline: deadline)
        guard now == process else { throw PostgresError.sharedSession }
    }

    /// Nil where a second connection gets none in time, for whatever reason.
    private func processOfAnother() -> ServerProcess? {
        let patience = min(SessionOwnership.patience, deadline - ContinuousClock.now)
        guard patience > .zero else { return nil }
        do throws(PostgresError) {
            var connecting = connecting.again(like: connection.handle, timeout: patience)
            let other = Connection(handle: try connecting.run())
            defer { other.close() }
            guard PQsetnonblocking(other.handle, 1) == 0 else { return nil }
            return try ServerProcess(of: other, deadline: .now + patience)
        } catch {
            return nil
        }
    }
}

/// A process of a server. Its number alone may be another one's later, or on another server.
private struct ServerProcess: Equatable {
    let id: Int32
    /// 0 where a role was left in the session that may not see it.
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
