import CLibPQ

/// A statement that each session prepares once, under its name.
public struct PreparedQuery: Sendable {
    public var name: String
    public var sql: String

    public init(name: String, sql: String) {
        self.name = name
        self.sql = sql
    }
}

/// Statements that are sent together. The server executes them in their order, and none after one that fails.
public struct Pipeline {
    fileprivate let connection: DatabaseConnection

    /// Begins a transaction.
    public func begin() throws(PostgresError) { try send("BEGIN") }

    /// Commits the transaction, unless a statement before it has failed.
    public func commit() throws(PostgresError) { try send("COMMIT") }

    /// Sends a statement that the session has prepared under this name.
    public func send(prepared name: String, _ parameters: borrowing Parameters) throws(PostgresError) {
        try connection.sent(
            parameters.withBinaryFormat { count, _, values, lengths, formats in
                PQsendQueryPrepared(connection.handle, name, count, values, lengths, formats, 1)
            }
        )
    }

    /// Sends a statement with parameters.
    public func send(_ sql: String, _ parameters: borrowing Parameters = .init()) throws(PostgresError) {
        try connection.sent(
            parameters.withBinaryFormat { count, types, values, lengths, formats in
                PQsendQueryParams(connection.handle, sql, count, types, values, lengths, formats, 1)
            }
        )
    }

    func prepare(_ statement: PreparedQuery) throws(PostgresError) {
        try connection.sent(PQsendPrepare(connection.handle, statement.name, statement.sql, 0, nil))
    }
}

extension DatabaseConnection {
    /// The position of a statement in its transaction.
    public enum Position: Sendable {
        /// `BEGIN` precedes it.
        case first
        /// `COMMIT` follows it, unless it fails.
        case last
    }

    /// Starts the statements that `body` adds, in one round trip. `awaitResults` returns their results.
    ///
    /// After an error of the server the transaction may still be open: call `rollBack`.
    public func sendPipeline(_ body: (Pipeline) throws(PostgresError) -> Void) throws(PostgresError) {
        try begin()
        do throws(PostgresError) {
            try sent(PQenterPipelineMode(handle))
            isPipelined = true
            try body(Pipeline(connection: self))
            try sent(PQpipelineSync(handle))
        } catch {
            // Some of the statements may have been sent already.
            close()
            throw error
        }
    }

    /// Ends an open transaction without a change; does nothing outside a transaction.
    public func rollBack(deadline: ContinuousClock.Instant) throws(PostgresError) {
        if isInTransaction { try execute("rollback", deadline: deadline) }
    }

    /// Runs the first or the last statement of a transaction together with its `BEGIN` or `COMMIT`, in one round trip.
    /// Prepares the statement first, once per session.
    ///
    /// - Returns: the statement's rows; its warnings include those of `COMMIT`.
    /// - Throws: as `query(_:_:deadline:)` does. After `.server` the transaction may still be open: roll it back.
    public func query(
        _ statement: PreparedQuery,
        _ parameters: borrowing Parameters = .init(),
        as position: Position,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> QueryResult {
        if !preparedStatements.contains(statement.name) {
            try prepare(statement.name, statement.sql, deadline: deadline)
            preparedStatements.insert(statement.name)
        }
        try sendPipeline { pipeline throws(PostgresError) in
            if position == .first { try pipeline.begin() }
            try pipeline.send(prepared: statement.name, parameters)
            if position == .last { try pipeline.commit() }
        }
        return try awaitResult(orTimeOutAt: deadline)
    }
}
