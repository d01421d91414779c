import Postgres

/// What follows from the failure of a statement.
enum StatementEffect {
    /// It was executed or not: the server did not answer.
    case unknown
    /// It had no effect; the same statement can succeed.
    case rolledBack
    /// It had no effect; this server takes no writes, another may.
    case readOnlyServer
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
            case .server(.readOnlySQLTransaction): .readOnlyServer
            case .server(.featureNotSupported): .outdatedSession
            case .server(StatementEffect.receiptUnknown): .receiptLost
            case .server(.outdatedBuckets): .outdatedBuckets
            case .server: .refused
            }
    }

    /// Raised by headroom.lock_receipt, and thrown by `ChangeStatement`.
    static let receiptUnknown = SQLState(rawValue: "HR001")
}

extension SQLState {
    /// Ours: a batch was grouped by an earlier map of buckets. Raised by the functions that lock a receipt.
    static let outdatedBuckets = SQLState(rawValue: "HR012")
}

extension QueryResult {
    /// Whether the commit succeeded with the warning that no standby has confirmed it.
    var isUnreplicated: Bool { warnings.contains { $0.sqlState == .warning } }
}
