/// Migrates a database to the schema of this binary.
///
/// Any number of instances may start at once: a lock admits one at a time, and the others find nothing to do. All work
/// runs in one transaction: if the process is killed, nothing is applied. Missing migrations run first, in order. Then,
/// if one of them or a definition has changed, or an object is not as it was installed, all definitions run. A function
/// or view that no file defines is dropped.
public struct Migrator: Sendable {
    public let files: SchemaFiles
    public let schema: String
    /// How long to wait for another instance that is migrating, and for each lock that a migration itself takes.
    public let lockTimeout: Duration
    /// How long one file may take.
    public let statementTimeout: Duration
    /// It is called when a file begins to be applied.
    public var whenBegun: @Sendable (_ file: String) -> Void = { _ in }

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

    /// Applies missing and changed files.
    ///
    /// - Parameters:
    ///   - connection: an idle connection, outside a transaction.
    ///   - reinstalls: whether to apply all functions and views again, even if none has changed.
    ///   - finally: runs last, in the same transaction, even if no file was applied.
    ///   - warn: called after the commit with each warning that a migration or `files.renameConflicts` raised.
    /// - Returns: the changes that were made.
    public func migrate(
        _ connection: DatabaseConnection,
        reinstalls: Bool = false,
        finally: (DatabaseConnection) throws(PostgresError) -> Void = { (_: DatabaseConnection) throws(PostgresError) in
        },
        warn: (String) -> Void = { _ in }
    ) throws(MigrationError) -> MigrationPlan {
        try checkServerVersion(connection)
        do throws(MigrationError) {
            return try migrateOnce(connection, reinstalls: reinstalls, finally: finally, warn: warn)
        } catch {
            // There was nothing to lock yet: another instance created the schema, and this one waited for it.
            guard error.code == .createdConcurrently else { throw error }
            return try migrateOnce(connection, reinstalls: reinstalls, finally: finally, warn: warn)
        }
    }

    private func migrateOnce(
        _ connection: DatabaseConnection,
        reinstalls: Bool,
        finally: (DatabaseConnection) throws(PostgresError) -> Void,
        warn: (String) -> Void
    ) throws(MigrationError) -> MigrationPlan {
        var warnings: [String] = []
        let plan = try inTransaction(connection) { () throws(MigrationError) in
            let plan = try apply(record(connection), reinstalls: reinstalls, &warnings)
            do throws(PostgresError) { try finally(connection) } catch { throw .finallyFailed(error) }
            try execute(files.owner?.resign, connection)
            return plan
        }
        for warning in warnings { warn(warning) }
        return plan
    }

    /// Returns the changes that `migrate` would make. It changes nothing, and needs no lock and only the right to read
    /// the record.
    public func plan(_ connection: DatabaseConnection) throws(MigrationError) -> MigrationPlan {
        try comparison(connection).plan()
    }

    /// Returns the state of each file in the database. It changes nothing.
    public func status(_ connection: DatabaseConnection) throws(MigrationError) -> [MigrationStatus] {
        try comparison(connection).status()
    }

    /// Returns the objects that differ from what was installed. It changes nothing.
    public func alteredObjects(_ connection: DatabaseConnection) throws(MigrationError) -> [AlteredObject] {
        try comparison(connection).altered
    }

    /// Returns the roles that were created after the last migration, and lack their rights. It changes nothing.
    public func newRoles(_ connection: DatabaseConnection) throws(MigrationError) -> [String] {
        try comparison(connection).newRoles
    }

    /// Makes sure that the database has this binary's schema, for a login that may not migrate.
    ///
    /// - Parameter owner: the role that may migrate, for the message.
    /// - Throws: `.missing`, `.altered`, `.databaseNewer` or `.changedAfterApplied`.
    public func requireCurrent(_ connection: DatabaseConnection, owner: String?) throws(MigrationError) {
        let plan = try plan(connection)
        guard plan.missingFiles.isEmpty else { throw .missing(plan.missingFiles, owner: owner) }
        guard plan.alteredObjects.isEmpty else { throw .altered(plan.alteredObjects, owner: owner) }
    }

    private func comparison(_ connection: DatabaseConnection) throws(MigrationError) -> MigrationComparison {
        try checkServerVersion(connection)
        let record = record(connection)
        do throws(PostgresError) {
            switch try record.state() {
            case .outdated: break
            case .missing:
                return MigrationComparison(
                    files: files,
                    migrationChecksums: try record.checksums(of: files.migrations.map(\.sql)),
                    definitionChecksums: try record.checksums(of: files.repeatable.map(\.sql)),
                    record: .init(),
                    altered: [],
                    newRoles: []
                )
            case .current: return try comparison(record, rows: try record.rows())
            }
        } catch {
            throw .database("the record of applied files cannot be read", error)
        }
        throw .outdated(schema: schema)
    }

    func comparison(
        _ record: MigrationRecord,
        rows: MigrationRecord.Rows
    ) throws(PostgresError) -> MigrationComparison {
        MigrationComparison(
            files: files,
            migrationChecksums: try record.checksums(of: files.migrations.map(\.sql)),
            definitionChecksums: try record.checksums(of: files.repeatable.map(\.sql)),
            record: rows,
            altered: try files.owner.map { owner throws(PostgresError) in try record.alteredObjects(owner) } ?? [],
            newRoles: try files.owner.map { owner throws(PostgresError) in try record.newRoles(owner) } ?? []
        )
    }

    func record(_ connection: DatabaseConnection) -> MigrationRecord {
        // The record's statements are short, but CREATE SCHEMA can wait for locks of other sessions.
        MigrationRecord(schema: schema, connection: connection, limit: lockTimeout + .seconds(30))
    }

    private func checkServerVersion(_ connection: DatabaseConnection) throws(MigrationError) {
        let version = connection.serverVersion
        guard version > 0 else {
            throw .database("cannot migrate", PostgresError(.connectionLost, "the connection is closed"))
        }
        guard version >= MigrationError.minimumServerVersion else { throw .serverTooOld(version) }
    }
}

// MARK: The transaction

extension Migrator {
    /// Runs `body` in a transaction. It replaces the session's timeouts, which are meant for requests, and sets the
    /// search path, too, for a session that was not opened by `DatabaseConnection.connect`.
    private func inTransaction<Value>(
        _ connection: DatabaseConnection,
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

    private func commit(_ connection: DatabaseConnection) throws(MigrationError) {
        guard connection.isInTransaction else { throw .endsTransaction("the last file") }
        do throws(PostgresError) {
            // A commit can take long: it may wait for a synchronous standby or a checkpoint.
            try connection.execute("COMMIT", deadline: .now + statementTimeout)
        } catch {
            throw .database("the transaction was not committed", error)
        }
    }

    private func rollBack(_ connection: DatabaseConnection) {
        guard connection.isInTransaction else { return }
        do throws(PostgresError) {
            try connection.execute("ROLLBACK", deadline: .now + .seconds(30))
        } catch {
            connection.close()
        }
    }
}

extension Duration {
    /// The duration in milliseconds, rounded down, and at least 1: for PostgreSQL 0 means "no limit".
    package var milliseconds: Int64 {
        max(1, components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000)
    }
}
