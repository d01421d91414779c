/// A failed migration. The database is unchanged.
public struct MigrationError: Error, Sendable, CustomStringConvertible {
    public enum Code: Sendable, Hashable {
        case serverTooOld
        /// The database has migrations that this binary does not have.
        case databaseNewer
        /// An applied migration's text differs from the binary's.
        case changedAfterApplied
        /// Another instance held the lock until the timeout.
        case lockTimedOut
        /// The server refused a migration's statement.
        case migrationFailed
        /// The closure `finally` failed.
        case finallyFailed
        /// The schema dates from before functions were recorded apart from tables.
        case outdated
        /// Migrations are missing, and this login may not apply them.
        case missing
        /// Objects differ from what was installed, and this login may not restore them.
        case altered
        /// The schema, or the record of applied files, belongs to a role that is not trusted.
        case foreignOwner
        /// Another instance created the schema first.
        case createdConcurrently
        /// Another error of the database: connection, privileges, a read-only server.
        case database
    }

    public let code: Code
    public let message: String
    public let underlying: PostgresError?

    init(_ code: Code, _ message: String, underlying: PostgresError? = nil) {
        self.code = code
        self.message = message
        self.underlying = underlying
    }

    /// Whether a later retry may succeed.
    public var isTransient: Bool {
        code == .lockTimedOut || (underlying?.isTransient ?? false)
    }

    public var description: String { message }
}

extension MigrationError {
    static let minimumServerVersion = 140_000

    static func serverTooOld(_ version: Int) -> MigrationError {
        let message = "PostgreSQL \(version / 10_000) is too old: version 14 or newer is needed; upgrade the server"
        return MigrationError(.serverTooOld, message)
    }

    /// - Parameter evidence: the sign that the database is newer.
    static func databaseNewer(_ evidence: String) -> MigrationError {
        let message = """
            the database is newer than this binary: \(evidence); start the newer release, or restore a backup from \
            before the upgrade
            """
        return MigrationError(.databaseNewer, message)
    }

    static func outdated(schema: String) -> MigrationError {
        let message = """
            this database has the schema of a development version from before the first release, which cannot be \
            upgraded. Use another database; or keep message_usage and lose the rest: drop schema \(schema) cascade, \
            drop the columns of message_usage other than user_id, billing_period, message_count, "limit" and updated_at, \
            and migrate again
            """
        return MigrationError(.outdated, message)
    }

    static func changed(_ migration: Migration) -> MigrationError {
        let message = """
            \(migration.file) was changed after it had been applied; restore the file, and put the change into a \
            new migration
            """
        return MigrationError(.changedAfterApplied, message)
    }

    static func lockTimedOut(after limit: Duration, _ error: PostgresError) -> MigrationError {
        let message = """
            another instance has been migrating this database for \(limit.components.seconds) s; wait until it \
            has finished and start again (pg_locks with relation = 'headroom.migrations'::regclass shows the session that holds \
            the lock)
            """
        return MigrationError(.lockTimedOut, message, underlying: error)
    }

    /// - Parameter offset: the position in the file at which the statement begins.
    static func failed(_ file: String, _ sql: String, at offset: Int, _ error: PostgresError) -> MigrationError {
        var place = file
        if let position = error.position {
            place += ":\(line(of: offset + position, in: sql))"
        }
        return MigrationError(.migrationFailed, "\(place) failed and was rolled back: \(error)", underlying: error)
    }

    static func endsTransaction(_ file: String) -> MigrationError {
        let message = """
            \(file) ends the transaction it runs in; remove its COMMIT or ROLLBACK: a migration is one transaction. Part \
            of it may be applied: check before starting again
            """
        return MigrationError(.migrationFailed, message)
    }

    static func finallyFailed(_ error: PostgresError) -> MigrationError {
        let message = "a step after the schema failed, and nothing was changed: \(error)"
        return MigrationError(.finallyFailed, message, underlying: error)
    }

    static func notDropped(_ object: String, _ error: PostgresError) -> MigrationError {
        let message = """
            this release no longer has \(object.isEmpty ? "a function or view" : object), and it cannot be dropped: \
            \(error.message). DROP \(object) in psql shows what depends on it; drop or change that, and migrate again
            """
        return MigrationError(.migrationFailed, message, underlying: error)
    }

    static func missing(_ files: [String], owner: String?) -> MigrationError {
        let shown = files.prefix(5).joined(separator: ", ") + (files.count > 5 ? " and \(files.count - 5) more" : "")
        let message = """
            the schema is not this binary's: \(shown) must be applied first, which this login may not do; have a superuser or a login that may act as \(owner ?? "the owner") run `headroom migrate`, then start again
            """
        return MigrationError(.missing, message)
    }

    static func altered(_ objects: [AlteredObject], owner: String?) -> MigrationError {
        let shown = objects.prefix(10).map(\.description).joined(separator: ", ")
        let more = objects.count > 10 ? " and \(objects.count - 10) more" : ""
        let message = """
            objects are not as `headroom migrate` installed them (\(shown)\(more)), which this login may not restore; find \
            out who changed them, have a superuser or a login that may act as \(owner ?? "the owner") run `headroom migrate`, \
            which restores them, then start again
            """
        return MigrationError(.altered, message)
    }

    static func foreignOwner(_ object: String, _ role: String) -> MigrationError {
        let message = """
            \(object) belongs to \(role), whose triggers and functions would run with the rights of this login: rename or \
            drop it, then migrate again
            """
        return MigrationError(.foreignOwner, message)
    }

    static func createdConcurrently(_ error: PostgresError) -> MigrationError {
        MigrationError(.createdConcurrently, "another instance created the schema: \(error)", underlying: error)
    }

    static func database(_ action: String, _ error: PostgresError) -> MigrationError {
        let advice: String
        switch error.kind {
        case .server(.readOnlySQLTransaction):
            advice = "; this is a standby: connect to the primary, or add target_session_attrs=primary"
        case .server(.insufficientPrivilege):
            advice = """
                ; migrating needs CREATE on the database, showing the status needs USAGE on the schema and SELECT on \
                its tables migrations and definitions
                """
        default: advice = ""
        }
        return MigrationError(.database, "\(action): \(error)\(advice)", underlying: error)
    }

    /// - Parameter position: the position in characters (code points) from 1, as the server counts.
    private static func line(of position: Int, in sql: String) -> Int {
        1 + sql.unicodeScalars.prefix(max(0, position - 1)).count { $0 == "\n" }
    }
}
