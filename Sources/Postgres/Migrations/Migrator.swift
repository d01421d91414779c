/// Brings a database to the schema that the binary carries.
///
/// Any number of instances may start at once: an advisory lock lets one through at a time, and the others find the
/// work done. All work runs in one transaction: if the process is killed, nothing is applied. Missing migrations run first,
/// in order. Then, if one of them or a definition has changed, all definitions run. A function or view that no file defines
/// any more is dropped.
public struct Migrator: Sendable {
    public let files: SchemaFiles
    public let schema: String
    /// How long to wait for another instance that is migrating, and for each lock that a migration itself takes.
    public let lockTimeout: Duration
    /// How long one file may take.
    public let statementTimeout: Duration

    /// "headroom" in ASCII. Advisory locks are per database, and 64-bit keys are apart from pairs of 32-bit keys.
    static let lockKey: Int64 = 0x6865_6164_726F_6F6D

    public init(
        files: SchemaFiles,
        schema: String = "headroom",
        lockTimeout: Duration = .seconds(60),
        statementTimeout: Duration = .seconds(3_600)
    ) {
        self.files = files
        self.schema = schema
        self.lockTimeout = lockTimeout
        self.statementTimeout = statementTimeout
    }

    /// Applies what is missing.
    ///
    /// - Parameters:
    ///   - connection: idle, outside a transaction; not to be used by anybody else meanwhile.
    ///   - finally: runs after the rest and in its transaction; also when nothing was missing.
    ///   - warn: called with each warning that a migration or `files.makeRoom` raises, after the commit.
    /// - Returns: what this call changed.
    public func migrate(
        _ connection: Connection,
        finally: (Connection) throws(PostgresError) -> Void = { (_: Connection) throws(PostgresError) in },
        warn: (String) -> Void = { _ in }
    ) throws(MigrationError) -> MigrationPlan {
        try checkServerVersion(connection)
        try lock(connection)
        defer { unlock(connection) }
        var warnings: [String] = []
        let plan = try inTransaction(connection) { () throws(MigrationError) in
            let plan = try apply(record(connection), &warnings)
            do throws(PostgresError) { try finally(connection) } catch { throw .finallyFailed(error) }
            return plan
        }
        for warning in warnings { warn(warning) }
        return plan
    }

    /// What `migrate` would do; changes nothing, and needs no lock and no right but to read the record.
    public func plan(_ connection: Connection) throws(MigrationError) -> MigrationPlan {
        try comparison(connection).plan()
    }

    /// Where the database stands, file by file; changes nothing.
    public func status(_ connection: Connection) throws(MigrationError) -> [MigrationStatus] {
        try comparison(connection).status()
    }

    /// Makes sure that the database has this binary's schema, for a login that may not migrate.
    ///
    /// - Parameter owner: who may, for the message.
    /// - Throws: `.missing`, `.databaseNewer`, `.changedAfterApplied`.
    public func requireCurrent(_ connection: Connection, owner: String?) throws(MigrationError) {
        let missing = try plan(connection).missingFiles
        guard missing.isEmpty else { throw .missing(missing, owner: owner) }
    }

    private func comparison(_ connection: Connection) throws(MigrationError) -> MigrationComparison {
        try checkServerVersion(connection)
        let record = record(connection)
        do throws(PostgresError) {
            switch try record.presence() {
            case .outdated: break
            case .absent: return try comparison(record, contents: .init())
            case .present: return try comparison(record, contents: try record.contents())
            }
        } catch {
            throw .database("the record of what is applied cannot be read", error)
        }
        throw .outdated(schema: schema)
    }

    func comparison(
        _ record: MigrationRecord,
        contents: MigrationRecord.Contents
    ) throws(PostgresError) -> MigrationComparison {
        MigrationComparison(
            files: files,
            migrationChecksums: try record.checksums(of: files.migrations.map(\.sql)),
            definitionChecksums: try record.checksums(of: files.repeatable.map(\.sql)),
            record: contents
        )
    }

    func record(_ connection: Connection) -> MigrationRecord {
        // The record's statements are short, but CREATE SCHEMA can wait for another one's locks.
        MigrationRecord(schema: schema, connection: connection, limit: lockTimeout + .seconds(30))
    }

    private func checkServerVersion(_ connection: Connection) throws(MigrationError) {
        let version = connection.serverVersion
        guard version > 0 else {
            throw .database("cannot migrate", PostgresError(.connectionLost, "the connection is closed"))
        }
        guard version >= MigrationError.minimumServerVersion else { throw .serverTooOld(version) }
    }
}

// MARK: The lock

extension Migrator {
    /// A session's lock outlives the transactions in which the migrations run, and ends with the session: an instance
    /// that is killed blocks nobody. It is taken within a transaction only so that the timeouts are set for it alone.
    private func lock(_ connection: Connection) throws(MigrationError) {
        try inTransaction(connection) { () throws(MigrationError) in
            var key = Parameters()
            key.append(int64: Migrator.lockKey)
            do throws(PostgresError) {
                _ = try connection.query(
                    "SELECT pg_advisory_lock($1)",
                    key,
                    deadline: .now + lockTimeout + .seconds(5)
                )
            } catch {
                switch error.kind {
                case .server(.lockNotAvailable): throw .lockTimedOut(after: lockTimeout, error)
                default: throw .database("the migration lock was not obtained", error)
                }
            }
        }
    }

    private func unlock(_ connection: Connection) {
        guard connection.isUsable else { return }  // the lock has gone with the session
        var key = Parameters()
        key.append(int64: Migrator.lockKey)
        do throws(PostgresError) {
            _ = try connection.query("SELECT pg_catalog.pg_advisory_unlock($1)", key, deadline: .now + .seconds(5))
        } catch {
            connection.close()  // the end of the session releases it, too
        }
    }
}

// MARK: The transaction

extension Migrator {
    /// The session's own timeouts are meant for requests: within the transaction they are replaced. So is the search path,
    /// which a session that was not made by `Connection.connect` need not have set.
    private func inTransaction<Value>(
        _ connection: Connection,
        _ body: () throws(MigrationError) -> Value
    ) throws(MigrationError) -> Value {
        do throws(PostgresError) {
            try connection.execute(
                """
                BEGIN;
                SET LOCAL search_path = pg_catalog, pg_temp;
                SET LOCAL statement_timeout = 0;
                SET LOCAL idle_in_transaction_session_timeout = 0;
                SET LOCAL lock_timeout = \(lockTimeout.milliseconds);
                """,
                deadline: .now + .seconds(30)
            )
        } catch {
            throw .database("a transaction cannot be begun", error)
        }
        do throws(MigrationError) {
            let value = try body()
            try commit(connection)
            return value
        } catch {
            rollBack(connection)
            throw error
        }
    }

    private func commit(_ connection: Connection) throws(MigrationError) {
        guard connection.isInTransaction else { throw .endsTransaction("the last file") }
        do throws(PostgresError) {
            // This can wait long: for a synchronous standby, or for a checkpoint's disk.
            try connection.execute("COMMIT", deadline: .now + statementTimeout)
        } catch {
            throw .database("the transaction was not committed", error)
        }
    }

    private func rollBack(_ connection: Connection) {
        guard connection.isInTransaction else { return }
        do throws(PostgresError) {
            try connection.execute("ROLLBACK", deadline: .now + .seconds(30))
        } catch {
            connection.close()
        }
    }
}

extension Duration {
    /// Rounded down, and at least 1: to PostgreSQL 0 means "no limit".
    var milliseconds: Int64 {
        max(1, components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000)
    }
}
