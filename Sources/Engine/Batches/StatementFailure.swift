import Postgres

/// What follows from the failure of a statement.
enum StatementFailure {
    /// It was executed or not: the server did not answer.
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
    /// It had no effect, and never will: users may have moved to other buckets since they were grouped.
    case outdatedBuckets
    /// It had no effect; the same statement would most likely fail again at once.
    case refused

    init(of error: PostgresError) {
        self =
            switch error.kind {
            case .connectionLost, .connectFailed, .timedOut, .misuse: .unknown
            // Not unique: another session used the same new key at the same moment, and is committed by the next
            // attempt.
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

    /// Raised by headroom.lock_receipt, and thrown by `ChangeStatement`.
    static let receiptUnknown = SQLState(rawValue: "HR001")
}

extension PostgresError {
    /// Of Citus: the statement was planned while a table became one of Citus, or a shard was split.
    fileprivate var isAboutMovingTables: Bool {
        message.hasPrefix("could not find valid entry for shard")
            || message.hasPrefix("the partition column of table") && message.hasSuffix("should have a value")
    }

    /// A unique violation of rows that Citus has copied to another server, which has lost its code.
    fileprivate var isForwardedDuplicate: Bool {
        kind == .server(SQLState(rawValue: "XX000"))
            && message.hasPrefix("duplicate key value violates unique constraint")
    }
}

extension SQLState {
    /// Of an error about forwarding: the other server cannot be reached (class 08) or shuts down (57P01 to 57P03), or
    /// the transaction acts as several users (25001), which Citus executes on its own server alone. It rolls back the
    /// transaction. If COMMIT had been sent before, Citus warns, too (`Warning.isAboutLostCommit`).
    fileprivate var isAboutForwarding: Bool {
        isClass("08") || ["57P01", "57P02", "57P03", "25001"].contains(rawValue)
    }

    /// Ours: a batch was grouped by an earlier map of buckets. Raised by the functions that lock a receipt.
    static let outdatedBuckets = SQLState(rawValue: "HR012")
}

extension QueryResult {
    /// Whether the commit succeeded with the warning that no standby has confirmed it.
    var isUnreplicated: Bool { warnings.contains { $0.sqlState == .warning } }
}
