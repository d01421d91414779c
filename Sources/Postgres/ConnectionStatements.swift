import CLibPQ

extension DatabaseConnection {
    /// Prepares a statement under a name for the rest of the session; the server infers the parameters' types.
    ///
    /// - Throws: `.timedOut` at the deadline; the connection is then unusable.
    public func prepare(_ name: String, _ sql: String, deadline: ContinuousClock.Instant) throws(PostgresError) {
        try begin()
        try sent(PQsendPrepare(handle, name, sql, 0, nil))
        _ = try awaitResult(orTimeOutAt: deadline)
    }

    /// Prepares several statements as `prepare(_:_:deadline:)` does, in one round trip.
    public func prepare(
        _ statements: [PreparedQuery],
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) {
        guard !statements.isEmpty else { return }
        try sendPipeline { pipeline throws(PostgresError) in
            for statement in statements { try pipeline.prepare(statement) }
        }
        _ = try awaitResult(orTimeOutAt: deadline)
    }

    /// Starts a prepared statement. It returns before all of it is sent; `awaitResult` sends the rest.
    public func send(prepared name: String, _ parameters: borrowing Parameters) throws(PostgresError) {
        try begin()
        try sent(
            parameters.withBinaryFormat { count, _, values, lengths, formats in
                PQsendQueryPrepared(handle, name, count, values, lengths, formats, 1)
            }
        )
    }

    /// Runs one statement with parameters.
    ///
    /// - Throws: `.timedOut` at the deadline: the statement is cancelled, and the connection is closed, or late if
    ///   `isKeptWhenLate`.
    public func query(
        _ sql: String,
        _ parameters: borrowing Parameters = .init(),
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> QueryResult {
        try begin()
        try sent(
            parameters.withBinaryFormat { count, types, values, lengths, formats in
                PQsendQueryParams(handle, sql, count, types, values, lengths, formats, 1)
            }
        )
        return try awaitResult(orTimeOutAt: deadline)
    }

    /// Runs several statements as psql does, and drops their results. Without BEGIN they are one transaction.
    ///
    /// - Throws: as `query` does; the error's `position` counts from the start of the script.
    public func execute(_ script: String, deadline: ContinuousClock.Instant) throws(PostgresError) {
        _ = try notices(executing: script, deadline: deadline)
    }

    /// Runs the statements as `execute` does.
    ///
    /// - Returns: the notices of the statements.
    func notices(executing script: String, deadline: ContinuousClock.Instant) throws(PostgresError) -> [Warning] {
        try begin()
        try sent(PQsendQuery(handle, script))
        return try awaitResult(orTimeOutAt: deadline).warnings
    }

    func awaitResult(orTimeOutAt deadline: ContinuousClock.Instant) throws(PostgresError) -> QueryResult {
        // There is one, even if no statement has rows.
        try awaitResults(orTimeOutAt: deadline)[0]
    }

    /// Waits for the statements of a pipeline: `awaitResults(until:)`.
    ///
    /// - Throws: `.timedOut` at the deadline, as `query` does.
    public func awaitResults(orTimeOutAt deadline: ContinuousClock.Instant) throws(PostgresError) -> [QueryResult] {
        if let results = try awaitResults(until: deadline) { return results }
        cancel()
        if isKeptWhenLate { giveUp() } else { close() }
        throw PostgresError(
            .timedOut,
            "no answer from the database within the deadline; the statement was cancelled",
            hint: "pg_stat_activity shows what it waits for"
        )
    }

    /// Sets all settings in one round trip. It does not use startup options (`-c role=…`): poolers refuse these, and
    /// the server's errors about them have no SQLSTATE.
    ///
    /// - Parameter process: the server process that must run the statement.
    /// - Returns: false if another process ran it, which then set nothing.
    func apply(
        _ settings: [(String, String)],
        role: String?,
        inProcess process: Int32,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> Bool {
        // The role comes last, because it may have fewer rights to set the others than the login.
        let newer = serverVersion >= 170_000 ? DatabaseConnection.pinnedSettingsSince17 : []
        let settings = DatabaseConnection.pinnedSettings + newer + settings + (role.map { [("role", $0)] } ?? [])
        var parameters = Parameters()
        parameters.append(int32: process)
        for (name, value) in settings {
            parameters.append(text: name)
            parameters.append(text: value)
        }
        let calls = settings.indices.map { "pg_catalog.set_config($\(2 * $0 + 2), $\(2 * $0 + 3), false)" }
        let statement =
            "SELECT \(calls.joined(separator: ", ")) WHERE pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.=) $1"
        do throws(PostgresError) {
            return try query(statement, parameters, deadline: deadline).rowCount == 1
        } catch {
            let advice = role.flatMap { hint(for: error, setting: $0) } ?? error.hint
            close()
            let message = "the session settings were not accepted: \(error.message)"
            throw PostgresError(.connectFailed, message, hint: advice, sqlState: error.sqlState)
        }
    }

    /// Sets settings if the database has the extension Citus.
    func apply(withCitus settings: [(String, String)], deadline: ContinuousClock.Instant) throws(PostgresError) {
        guard !settings.isEmpty else { return }
        var parameters = Parameters()
        for (name, value) in settings {
            parameters.append(text: name)
            parameters.append(text: value)
        }
        let calls = settings.indices.map { "pg_catalog.set_config($\(2 * $0 + 1), $\(2 * $0 + 2), false)" }
        let condition = "pg_catalog.to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL"
        _ = try query("SELECT \(calls.joined(separator: ", ")) WHERE \(condition)", parameters, deadline: deadline)
    }

    /// Makes a superuser's login take the role of the schema's owner, unless the owner is a superuser, too. The audit
    /// trail keeps the login's name.
    func actAsOwner(of schema: String, deadline: ContinuousClock.Instant) throws(PostgresError) {
        var parameters = Parameters()
        parameters.append(text: schema)
        _ = try query(
            """
            SELECT set_config('headroom.actor', session_user, false), set_config('role', owner.rolname, false)
            FROM pg_namespace AS namespace
            JOIN pg_roles AS owner ON owner.oid = namespace.nspowner AND NOT owner.rolsuper
            JOIN pg_roles AS login ON login.rolname = current_user AND login.rolsuper
            WHERE namespace.nspname = $1
            """,
            parameters,
            deadline: deadline
        )
    }

    private func hint(for error: PostgresError, setting role: String) -> String? {
        guard error.sqlState == .insufficientPrivilege, error.message.contains(role), let login = PQuser(handle) else {
            return nil
        }
        return "have an administrator run: grant \(role) to \"\(String(cString: login))\""
    }
}
