import Postgres
import Usage

/// Imports the rows of a file, a thousand in a transaction, while the service counts.
/// docs/migrate-a-counter.md has the rules.
///
/// The database holds how far a file is imported, in the transactions that import it. So an import that was
/// interrupted continues when it is run again, and after a lost connection the database says whether the last
/// transaction was committed.
public struct UserImport {
    public enum Failure: Error, Sendable, CustomStringConvertible {
        /// Another session has imported a part of the file meanwhile.
        case isRunning

        public var description: String {
            switch self {
            case .isRunning: "another headroom import is importing this file; wait until it has ended"
            }
        }
    }

    /// The end of a run.
    public enum Ending: Sendable {
        case done(ImportResult)
        /// An earlier run has imported the whole file.
        case wasDone(at: Instant)
    }

    /// The longest time for which the database may be away.
    private static let retryLimit = Duration.seconds(120)
    /// The longest time that a transaction may take.
    private static let timeout = Duration.seconds(120)
    private static let pause = Duration.milliseconds(500)

    private let reader: ImportReader
    private let survey: ImportSurvey
    private let database: DatabaseTopology
    private let name: String
    private let digest: [UInt8]
    private let adds: Bool

    /// - Parameters:
    ///   - name: the name of the file, for the audit log.
    ///   - digest: the SHA-256 of the file.
    ///   - adds: whether counts are added to those that Headroom has counted.
    public init(
        _ reader: ImportReader,
        _ survey: ImportSurvey,
        database: DatabaseTopology,
        name: String,
        digest: [UInt8],
        adds: Bool
    ) {
        self.reader = reader
        self.survey = survey
        self.database = database
        self.name = name
        self.digest = digest
        self.adds = adds
    }

    /// Imports the rows that have no problem. It blocks.
    ///
    /// - Parameters:
    ///   - checks: whether to find out only what would become of the rows.
    ///   - report: called with the number of rows that are done, before the first batch and after each.
    public func run(checks: Bool, _ report: (Int) -> Void) throws -> Ending {
        var session = Session()
        defer { session.close() }
        var result = ImportResult()
        if !checks {
            let begun = try retrying(&session) { connection throws(PostgresError) in try begin(connection) }
            if let finishedAt = begun.finishedAt { return .wasDone(at: finishedAt) }
            result.doneBefore = begun.done
        }
        report(result.doneBefore)
        let rowsMaximum = adds ? ImportBatch.addedRowsMaximum : ImportBatch.rowsMaximum
        var batch = ImportBatch(from: result.doneBefore, through: result.doneBefore)
        try reader.forEachRow { position, row, _ in
            guard position > result.doneBefore else { return }
            batch.through = position
            if let row, !survey.badRecords.contains(position) { batch.rows.append(row) }
            guard batch.rows.count == rowsMaximum else { return }
            try send(batch, checks: checks, &session, &result)
            report(position)
            batch = ImportBatch(from: position, through: position)
        }
        // A batch without rows is sent, too: it finishes the import.
        if !checks || !batch.rows.isEmpty { try send(batch, checks: checks, &session, &result) }
        report(batch.through)
        return .done(result)
    }

    private func send(
        _ batch: ImportBatch,
        checks: Bool,
        _ session: inout Session,
        _ result: inout ImportResult
    ) throws {
        var hasFailed = false
        let answer = try retrying(&session) { connection throws(PostgresError) -> QueryResult? in
            if hasFailed, !checks {
                let done = try begin(connection).done
                // The connection broke after the commit.
                if done == batch.through, batch.through > batch.from { return nil }
            }
            hasFailed = true
            return try connection.query(
                EmbeddedSQL.importBatch,
                batch.parameters(digest: digest, adds: adds, checks: checks),
                deadline: .now + UserImport.timeout
            )
        }
        if let answer { try result.add(answer, batch) } else { result.unanswered += batch.rows.count }
    }

    private func begin(_ connection: DatabaseConnection) throws(PostgresError) -> (done: Int, finishedAt: Instant?) {
        var parameters = Parameters()
        parameters.append(bytes: digest)
        parameters.append(bool: adds)
        parameters.append(text: name)
        parameters.append(int64: Int64(survey.records))
        let row = try connection.query(
            EmbeddedSQL.beginImport,
            parameters,
            deadline: .now + UserImport.timeout
        ).firstRow
        return (Int(try row.int64("done")), try row.instantOrNil("finished_at", of: "headroom.imports"))
    }

    /// Executes `work` again, in a new session, after errors that pass: a lost connection, a deadlock with messages, a
    /// user whose bucket has changed.
    private func retrying<Value>(
        _ session: inout Session,
        _ work: (DatabaseConnection) throws(PostgresError) -> Value
    ) throws -> Value {
        let deadline = ContinuousClock.now + UserImport.retryLimit
        var isBusy = false
        while true {
            do throws(PostgresError) {
                return try work(try session.connection(database))
            } catch {
                session.close()
                // The session of a connection that broke may still commit; then `work` finds that the batch is done.
                let mayHaveCommitted = error.sqlState == .objectInUse && !isBusy
                isBusy = error.sqlState == .objectInUse
                if isBusy, !mayHaveCommitted { throw Failure.isRunning }
                guard isBusy || error.isTransient || error.isAboutBuckets, ContinuousClock.now < deadline else {
                    throw error
                }
                RetriedTransaction.sleep(UserImport.pause)
            }
        }
    }

    /// A connection that is opened when it is needed.
    private struct Session {
        private var open: DatabaseConnection?

        mutating func connection(_ database: DatabaseTopology) throws(PostgresError) -> DatabaseConnection {
            if let open { return open }
            let connection = try DatabaseConnection.connect(.command("import", database))
            let deadline = ContinuousClock.now + .seconds(30)
            try connection.execute(EmbeddedSQL.refuseUntrustedTable, deadline: deadline)
            // An operator's time limit is for short statements, not for a batch. Locks are waited for briefly.
            try connection.execute("set statement_timeout = 0; set lock_timeout = 5000", deadline: deadline)
            try connection.requireDurableCommits(deadline: deadline)
            open = connection
            return connection
        }

        mutating func close() {
            open?.close()
            open = nil
        }
    }
}

extension PostgresError {
    /// Whether a user has moved to another bucket while the transaction waited.
    fileprivate var isAboutBuckets: Bool { constraint == "bucket_is_of_the_user" }
}
