import Postgres

/// The failure of a statement, by what it means for the statement's effect and for a next attempt.
enum StatementFailure {
    /// The server did not answer, so the statement may have been executed.
    case unknown
    /// It had no effect; the same statement can succeed.
    case rolledBack
    /// It had no effect; another session may execute it: this server takes no writes, or does not reach the server to
    /// which it forwards the statement.
    case unavailableServer
    /// It had no effect; a new session can execute it. A release that is being installed has changed the columns that a
    /// prepared statement returns.
    case outdatedSession
    /// It had no effect; the database has no receipt of the lane, or one with another number.
    case receiptLost
    /// It had no effect and never will have: users may have moved to other buckets since they were grouped.
    case outdatedBuckets
    /// It had no effect; the same statement would most likely fail again at once.
    case refused

    init(of error: PostgresError) {
        self =
            switch error.kind {
            case .connectionLost, .connectFailed, .timedOut, .misuse: .unknown
            // After a unique violation, the next attempt finds the key that another session used at the same moment.
            case .server(.deadlockDetected), .server(.serializationFailure), .server(.uniqueViolation): .rolledBack
            case .server(.readOnlySQLTransaction): .unavailableServer
            case .server(.featureNotSupported): .outdatedSession
            case .server(StatementFailure.receiptUnknown): .receiptLost
            case .server(.outdatedBuckets): .outdatedBuckets
            case .server(let state) where state.isAboutForwarding || error.isAboutMovingTables: .unavailableServer
            case .server where error.isForwardedDuplicate: .rolledBack
            case .server: .refused
            }
    }

    /// The error of `headroom.raise_other_receipt` and `headroom.advance_receipt`.
    static let receiptUnknown = SQLState(rawValue: "HR001")
    /// Another error of it: an earlier attempt was committed.
    static let countedBefore = SQLState(rawValue: "HR013")
}

extension PostgresError {
    /// Whether Citus planned the statement while it distributed a table or split a shard.
    fileprivate var isAboutMovingTables: Bool {
        message.hasPrefix("could not find valid entry for shard")
            || message.hasPrefix("the partition column of table") && message.hasSuffix("should have a value")
    }

    /// Whether this is a unique violation on another server, whose code Citus has lost.
    fileprivate var isForwardedDuplicate: Bool {
        kind == .server(SQLState(rawValue: "XX000"))
            && message.hasPrefix("duplicate key value violates unique constraint")
    }
}

extension SQLState {
    /// Whether Citus could not forward the statement. The other server cannot be reached (class 08) or shuts down
    /// (57P01 to 57P03), or the transaction acts as several users (25001), which Citus executes on its own server
    /// alone. It rolls back the transaction. If COMMIT had been sent before, Citus also warns
    /// (`Warning.isAboutLostCommit`).
    fileprivate var isAboutForwarding: Bool {
        isClass("08") || ["57P01", "57P02", "57P03", "25001"].contains(rawValue)
    }

    /// The error of the functions that lock a receipt: the batch was grouped by an earlier map of buckets.
    static let outdatedBuckets = SQLState(rawValue: "HR012")
}

extension QueryResult {
    /// Whether the commit succeeded with the warning that no standby has confirmed it.
    var isUnreplicated: Bool { warnings.contains { $0.sqlState == .warning } }
}
