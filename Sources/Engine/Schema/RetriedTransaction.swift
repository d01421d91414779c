import Postgres

/// A transaction with the rights of a migration, beside messages that are being counted. It waits for a lock only
/// briefly, because messages wait behind it, and is executed again instead.
struct RetriedTransaction {
    /// The time that it waits for a lock, for example of somebody's open transaction.
    private static let lockTimeout = Duration.milliseconds(250)
    /// The pause before it is executed again, in which others go on.
    private static let pause = Duration.milliseconds(100)
    /// The most attempts in a row that fail to get their locks.
    private static let attemptsMaximum = 240

    let connection: DatabaseConnection
    /// Whether the statement is executed in the role that owns the schema.
    var asOwner = false

    /// Executes one statement.
    ///
    /// - Returns: its result, and the duration of the transaction that was committed.
    @discardableResult
    func execute(
        _ statement: String,
        _ argument: Int32? = nil
    ) throws(PostgresError) -> (result: QueryResult, duration: Duration) {
        var attempts = 0
        while true {
            let begun = ContinuousClock.now
            do throws(PostgresError) {
                let result = try attempt(statement, argument)
                return (result, ContinuousClock.now - begun)
            } catch {
                attempts += 1
                guard error.isTransient, attempts < RetriedTransaction.attemptsMaximum else { throw error }
                RetriedTransaction.sleep(RetriedTransaction.pause)
            }
        }
    }

    private func attempt(_ statement: String, _ argument: Int32?) throws(PostgresError) -> QueryResult {
        let deadline = ContinuousClock.now + .seconds(3_600)
        do throws(PostgresError) {
            try connection.execute(
                """
                begin;
                set local statement_timeout = 0;
                set local lock_timeout = \(RetriedTransaction.lockTimeout.milliseconds);
                \(EmbeddedSQL.refuseUntrustedTable)
                \(EmbeddedSQL.becomeOwner)
                \(asOwner ? "set local role headroom_owner;" : "")
                """,
                deadline: deadline
            )
            var parameters = Parameters()
            if let argument { parameters.append(int32: argument) }
            let result = try connection.query(statement, parameters, deadline: deadline)
            try connection.execute("set local role none;\n\(EmbeddedSQL.resignOwner)\ncommit", deadline: deadline)
            return result
        } catch {
            try connection.rollBack(deadline: .now + .seconds(30))
            throw error
        }
    }

    static func sleep(_ duration: Duration) {
        _ = WakePipe().sleep(orUntilReadable: -1, until: .now + duration)
    }
}

extension PostgresError {
    /// Whether somebody else had a lock. The same statement may succeed a moment later.
    fileprivate var isTransient: Bool {
        switch kind {
        case .server(.lockNotAvailable), .server(.deadlockDetected), .server(.serializationFailure): true
        default: false
        }
    }
}
