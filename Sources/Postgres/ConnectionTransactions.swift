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

extension Connection {
    /// The position of a statement in its transaction.
    public enum Position: Sendable {
        /// `BEGIN` precedes it.
        case first
        /// `COMMIT` follows it, unless it fails.
        case last
    }

    /// Runs the first or the last statement of a transaction together with its `BEGIN` or `COMMIT`, in one round trip.
    /// Prepares the statement first, once per session.
    ///
    /// - Returns: the statement's rows; its warnings include those of `COMMIT`.
    /// - Throws: as `query(_:_:deadline:)` does. After `.server` the transaction may still be open: roll it back.
    ///   `ROLLBACK` without a transaction does no harm.
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
        try begin()
        do throws(PostgresError) {
            try sent(PQenterPipelineMode(handle))
            isPipelined = true
            if position == .first { try sent(PQsendQueryParams(handle, "BEGIN", 0, nil, nil, nil, nil, 1)) }
            try sent(
                parameters.withBinaryFormat { count, _, values, lengths, formats in
                    PQsendQueryPrepared(handle, statement.name, count, values, lengths, formats, 1)
                }
            )
            if position == .last { try sent(PQsendQueryParams(handle, "COMMIT", 0, nil, nil, nil, nil, 1)) }
            try sent(PQpipelineSync(handle))
        } catch {
            // A part may have been sent.
            close()
            throw error
        }
        return try awaitResult(orTimeOutAt: deadline)
    }
}
