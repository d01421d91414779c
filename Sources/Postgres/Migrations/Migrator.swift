/// Brings a database to the schema that the binary carries.
///
/// Any number of instances may start at once: an advisory lock lets one through at a time, and the others find the
/// work done. Each file is applied once, in order, in one transaction with its row in the migrations table.
public struct Migrator: Sendable {
    public let migrations: [Migration]
    public let schema: String
    /// How long to wait for another instance that is migrating, and for each lock that a migration itself takes.
    public let lockTimeout: Duration
    /// How long one migration may take.
    public let statementTimeout: Duration

    /// "headroom" in ASCII. Advisory locks are per database, and 64-bit keys are apart from pairs of 32-bit keys.
    static let lockKey: Int64 = 0x6865_6164_726F_6F6D

    public init(
        migrations: [Migration],
        schema: String = "headroom",
        lockTimeout: Duration = .seconds(60),
        statementTimeout: Duration = .seconds(3_600)
    ) {
        self.migrations = migrations.sorted { $0.number < $1.number }
        self.schema = schema
        self.lockTimeout = lockTimeout
        self.statementTimeout = statementTimeout
    }

    /// Applies what is missing.
    ///
    /// - Parameters:
    ///   - connection: idle, outside a transaction; not to be used by anybody else meanwhile.
    ///   - finally: runs after the migrations, in a transaction of its own, with the lock still held; also when
    ///     nothing was missing.
    ///   - warn: told what a migration's preparation has to say to whoever runs it.
    /// - Returns: what this call applied, in order.
    public func migrate(
        _ connection: Connection,
        finally: (Connection) throws(PostgresError) -> Void = { (_: Connection) throws(PostgresError) in },
        warn: (String) -> Void = { _ in }
    ) throws(MigrationError) -> [Migration] {
        try checkServerVersion(connection)
        try lock(connection)
        defer { unlock(connection) }
        let record = record(connection)
        let pending = try findPending(record)
        for (migration, checksum) in pending {
            for warning in try apply(migration, checksum: checksum, record) { warn(warning.message) }
        }
        do throws(PostgresError) {
            try inTransaction(connection) { () throws(PostgresError) in try finally(connection) }
        } catch {
            let message = "the migrations are applied, but what follows them failed: \(error)"
            throw MigrationError(.finallyFailed, message, underlying: error)
        }
        return pending.map(\.migration)
    }

    /// Where the database stands; changes nothing, and needs no lock and no right but to read the migrations table.
    ///
    /// - Returns: the binary's migrations and those that only the database knows, by number.
    public func status(_ connection: Connection) throws(MigrationError) -> [MigrationStatus] {
        try checkServerVersion(connection)
        let record = record(connection)
        do throws(PostgresError) {
            guard try record.exists() else {
                return migrations.map { MigrationStatus(number: $0.number, name: $0.name, state: .pending) }
            }
            let applied = try record.applied()
            let checksums = try record.checksums(of: migrations)
            let known = zip(migrations, checksums).map { migration, checksum in
                let row = applied.first { $0.number == migration.number }
                let state: MigrationStatus.State =
                    switch row {
                    case nil: .pending
                    case let row?: row.checksum == checksum ? .applied(at: row.appliedAt) : .changed(at: row.appliedAt)
                    }
                return MigrationStatus(number: migration.number, name: migration.name, state: state)
            }
            let numbers = Set(migrations.map(\.number))
            let unknown = applied.filter { !numbers.contains($0.number) }.map {
                MigrationStatus(number: $0.number, name: $0.name, state: .unknown(at: $0.appliedAt))
            }
            return (known + unknown).sorted { $0.number < $1.number }
        } catch {
            throw .database("the migrations' status cannot be read", error)
        }
    }

    /// Makes sure that the database has this binary's schema, for a login that may not migrate.
    ///
    /// - Parameter owner: who may, for the message.
    /// - Throws: `.missing`, `.databaseNewer`, `.changedAfterApplied`.
    public func requireCurrent(_ connection: Connection, owner: String?) throws(MigrationError) {
        var missing: [String] = []
        for status in try status(connection) {
            switch status.state {
            case .applied: break
            case .pending: missing.append(status.fileName)
            case .changed: throw .changed(Migration(number: status.number, name: status.name, sql: ""))
            case .unknown: throw .databaseNewer(number: status.number, name: status.name)
            }
        }
        guard missing.isEmpty else { throw .missing(missing, owner: owner) }
    }

    private func record(_ connection: Connection) -> MigrationRecord {
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
        do throws(PostgresError) {
            try inTransaction(connection) { () throws(PostgresError) in
                var key = Parameters()
                key.append(int64: Migrator.lockKey)
                _ = try connection.query(
                    "SELECT pg_advisory_lock($1)",
                    key,
                    deadline: .now + lockTimeout + .seconds(5)
                )
            }
        } catch {
            switch error.kind {
            case .server(.lockNotAvailable): throw .lockTimedOut(after: lockTimeout, error)
            default: throw .database("the migration lock was not obtained", error)
            }
        }
    }

    private func unlock(_ connection: Connection) {
        guard connection.isUsable else { return }  // the lock has gone with the session
        var key = Parameters()
        key.append(int64: Migrator.lockKey)
        do throws(PostgresError) {
            _ = try connection.query("SELECT pg_advisory_unlock($1)", key, deadline: .now + .seconds(5))
        } catch {
            connection.close()  // the end of the session releases it, too
        }
    }
}

// MARK: Applying

extension Migrator {
    private func findPending(
        _ record: MigrationRecord
    ) throws(MigrationError) -> [(migration: Migration, checksum: String)] {
        var applied: [AppliedMigration] = []
        var checksums: [String] = []
        do throws(PostgresError) {
            try inTransaction(record.connection) { () throws(PostgresError) in
                if try !record.exists() { try record.create() }
                applied = try record.applied()
                checksums = try record.checksums(of: migrations)
            }
        } catch {
            throw .database("the migrations table cannot be prepared", error)
        }
        let numbers = Set(migrations.map(\.number))
        if let unknown = applied.last(where: { !numbers.contains($0.number) }) {
            throw .databaseNewer(number: unknown.number, name: unknown.name)
        }
        var pending: [(migration: Migration, checksum: String)] = []
        for (migration, checksum) in zip(migrations, checksums) {
            if let row = applied.first(where: { $0.number == migration.number }) {
                guard row.checksum == checksum else { throw .changed(migration) }
            } else {
                pending.append((migration, checksum))
            }
        }
        return pending
    }

    /// The row comes first: should the lock ever fail to keep two instances apart, the primary key makes the second
    /// wait for the first and then fail, before it has touched anything.
    ///
    /// - Returns: what its preparation warned of.
    private func apply(
        _ migration: Migration,
        checksum: String,
        _ record: MigrationRecord
    ) throws(MigrationError) -> [Warning] {
        let connection = record.connection
        var endedEarly = false
        var warnings: [Warning] = []
        do throws(PostgresError) {
            try inTransaction(connection) { () throws(PostgresError) in
                try record.insert(migration, checksum: checksum)
                if let preparation = migration.preparation {
                    warnings = try connection.query(preparation, deadline: .now + statementTimeout).warnings
                }
                try connection.execute(migration.sql, deadline: .now + statementTimeout)
                endedEarly = !connection.isInTransaction
            }
        } catch {
            throw .failed(migration, error)
        }
        if endedEarly { throw .endsTransaction(migration) }
        return warnings.filter { $0.severity == "WARNING" }
    }

    /// The session's own timeouts are meant for requests: within the transaction they are replaced.
    private func inTransaction(
        _ connection: Connection,
        _ body: () throws(PostgresError) -> Void
    ) throws(PostgresError) {
        let short = Duration.seconds(30)
        do throws(PostgresError) {
            try connection.execute(
                """
                BEGIN;
                SET LOCAL statement_timeout = 0;
                SET LOCAL idle_in_transaction_session_timeout = 0;
                SET LOCAL lock_timeout = \(lockTimeout.milliseconds);
                """,
                deadline: .now + short
            )
            try body()
            // A commit can wait long: for a synchronous standby, or for a checkpoint's disk.
            if connection.isInTransaction { try connection.execute("COMMIT", deadline: .now + statementTimeout) }
        } catch {
            if connection.isInTransaction {
                do throws(PostgresError) {
                    try connection.execute("ROLLBACK", deadline: .now + short)
                } catch {
                    connection.close()
                }
            }
            throw error
        }
    }
}

extension Duration {
    /// Rounded down, and at least 1: to PostgreSQL 0 means "no limit".
    var milliseconds: Int64 {
        max(1, components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000)
    }
}
