import Postgres
import Usage

/// The database schema that this binary works with.
public enum Schema {
    /// The schema of all objects of the product, except those that clients expect in `public`.
    public static let name = "headroom"
    /// The role that owns all objects.
    private static let owner = "headroom_owner"

    public static var migrator: Migrator {
        Migrator(
            files: SchemaFiles(
                before: [
                    Definition(file: "roles.sql", sql: EmbeddedSQL.roles),
                    Definition(file: "become_owner.sql", sql: EmbeddedSQL.becomeOwner),
                    Definition(file: "undo_alterations.sql", sql: EmbeddedSQL.undoAlterations),
                    Definition(file: "grant_create.sql", sql: EmbeddedSQL.grantCreate),
                    Definition(file: "check_adopted_table.sql", sql: EmbeddedSQL.checkAdoptedTable),
                ],
                migrations: EmbeddedSQL.migrations.map { Migration(number: $0.number, name: $0.name, sql: $0.sql) },
                renameConflicts: EmbeddedSQL.setAside,
                // The folder of the subject is left out, so that a file that moves to another one has not changed.
                definitions: EmbeddedSQL.definitions.map {
                    Definition(file: "functions/\($0.schema)/\($0.name).sql", sql: $0.sql)
                },
                after: [Definition(file: "triggers.sql", sql: EmbeddedSQL.triggers)],
                last: [
                    Definition(file: "rights.sql", sql: EmbeddedSQL.rights),
                    Definition(file: "distributed.sql", sql: EmbeddedSQL.distributed),
                    Definition(file: "rights_on_message_usage.sql", sql: EmbeddedSQL.rightsOnMessageUsage),
                ],
                owner: SchemaOwner(
                    role: owner,
                    become: EmbeddedSQL.refuseUntrustedTable + EmbeddedSQL.becomeOwner,
                    resign: EmbeddedSQL.resignOwner,
                    installedObjects: EmbeddedSQL.readInstalledObjects,
                    newRoles: EmbeddedSQL.readNewRoles
                ),
                release: HeadroomVersion.current
            )
        )
    }

    /// The number of the newest migration that this binary works with.
    public static var newestMigration: Int { EmbeddedSQL.migrations.map(\.number).max() ?? 0 }

    /// The script that creates the roles. An administrator runs it if the login that migrates may not create roles.
    public static var rolesScript: String { EmbeddedSQL.roles }

    /// Migrates a database to the current schema and writes this binary's texts into it. It blocks; run it on a thread
    /// of its own.
    ///
    /// - Parameters:
    ///   - reinstalls: whether to define all functions and views again, also if none has changed.
    ///   - whenBegun: called when a file begins to be applied.
    ///   - warn: called with what was set aside, and with what was restored.
    public static func migrate(
        _ connection: DatabaseConnection,
        reinstalls: Bool = false,
        whenBegun: @escaping @Sendable (_ file: String) -> Void = { _ in },
        warn: (String) -> Void = { _ in }
    ) throws -> MigrationPlan {
        var isDistributed = false
        var migrator = Schema.migrator
        migrator.whenBegun = whenBegun
        let applied = try migrator.migrate(
            connection,
            reinstalls: reinstalls,
            finally: { connection throws(PostgresError) in
                isDistributed = try connection.isDistributed()
                // Citus refuses to write in another role what was changed in the same transaction.
                if !isDistributed { try finish(connection) }
            },
            warn: warn
        )
        if isDistributed { try finishApart(connection) }
        return applied
    }

    /// What `prepare` has found.
    public struct Preparation: Sendable {
        public var applied: MigrationPlan
        /// Whether the words are another release's. A login that may migrate replaces them.
        public var hasChangedWords: Bool
        /// Whether the login may migrate, and so replace Headroom's functions. A service need not do that.
        public var mayMigrate: Bool
    }

    /// Ensures that a service can run with this login. It migrates if the login may, and otherwise checks that the
    /// schema is current, and as it was installed. The connection cannot be used for anything else afterwards.
    ///
    /// It blocks; run it on a thread of its own.
    ///
    /// - Throws: `MigrationError`, or `LoginError` if the login may not act as the service's role.
    public static func prepare(
        _ connection: DatabaseConnection,
        warn: (String) -> Void = { _ in }
    ) throws -> Preparation {
        var rights = try LoginRights(of: connection)
        if rights.mayMigrate {
            let applied = try migrate(connection, warn: warn)
            // The rights are read again, because the migration may have created the roles.
            rights = try LoginRights(of: connection)
            guard rights.mayServe else { throw LoginError.mayNotServe(rights) }
            return Preparation(applied: applied, hasChangedWords: false, mayMigrate: true)
        }
        guard rights.mayServe else { throw LoginError.mayNotServe(rights) }
        try connection.execute("set role \(ServiceRole.name)", deadline: .now + .seconds(30))
        try migrator.requireCurrent(connection, owner: rights.owner)
        let changed = try connection.query(
            EmbeddedSQL.countChangedWords,
            shippedWords(),
            deadline: .now + .seconds(30)
        )
        try verifyCounting(connection)
        return Preparation(
            applied: MigrationPlan(),
            hasChangedWords: try changed.int32(0, 0) > 0,
            mayMigrate: false
        )
    }

    /// Finishes in the migration's transaction, so that a table in which counting fails stays as it was.
    private static func finish(_ connection: DatabaseConnection) throws(PostgresError) {
        // The audit log has operators' edits of words, but not those of a release.
        try connection.execute("set local role \(owner)", deadline: .now + .seconds(30))
        try writeWords(connection)
        try connection.execute("set local role \(ServiceRole.name)", deadline: .now + .seconds(30))
        try verifyCounting(connection)
        try connection.execute("set local role none", deadline: .now + .seconds(30))
    }

    /// Finishes in transactions of their own; otherwise as `finish`.
    private static func finishApart(_ connection: DatabaseConnection) throws(PostgresError) {
        let deadline = ContinuousClock.now + .seconds(120)
        do throws(PostgresError) {
            // Instances that start at the same time wait here: Citus locks copies of words in another order than rows.
            // Only a login that may change the table can lock it so; an advisory lock would be open to every login.
            try connection.execute(
                "begin; set local role \(owner); lock table headroom.migrations in share update exclusive mode",
                deadline: deadline
            )
            try writeWords(connection)
            try connection.execute("commit; select headroom.define_present_revisions()", deadline: deadline)
            try connection.execute("begin; set local role \(ServiceRole.name)", deadline: deadline)
            try verifyCounting(connection)
            try connection.execute("commit", deadline: deadline)
        } catch {
            try connection.rollBack(deadline: .now + .seconds(30))
            throw error
        }
    }

    /// Counts a message and undoes it, as the role of the lanes.
    private static func verifyCounting(_ connection: DatabaseConnection) throws(PostgresError) {
        do throws(PostgresError) {
            _ = try connection.query(EmbeddedSQL.verifyCounting, deadline: .now + .seconds(90))
        } catch {
            throw PostgresError(
                error.kind,
                "counting one message on trial failed: \(error.message)",
                hint: error.hint,
                sqlState: error.sqlState
            )
        }
    }

    private static func writeWords(_ connection: DatabaseConnection) throws(PostgresError) {
        let sentences = Sentence.allCases
        var parameters = shippedWords()
        parameters.appendTexts(count: sentences.count) { sentences[$0].rawValue }
        parameters.appendTexts(count: sentences.count) { sentences[$0].blanks.map(\.rawValue).joined(separator: " ") }
        parameters.appendTexts(count: sentences.count) { sentences[$0].numberBlank?.rawValue }
        _ = try connection.query(EmbeddedSQL.writeShippedWords, parameters, deadline: .now + .seconds(30))
    }

    private static func shippedWords() -> Parameters {
        let rows = ShippedWords.rows
        var parameters = Parameters()
        parameters.appendTexts(count: rows.count) { rows[$0].language.text }
        parameters.appendTexts(count: rows.count) { rows[$0].sentence.rawValue }
        parameters.appendTexts(count: rows.count) { rows[$0].forms.one }
        parameters.appendTexts(count: rows.count) { rows[$0].forms.other }
        parameters.appendTexts(count: rows.count) { rows[$0].forms.few }
        parameters.appendTexts(count: rows.count) { rows[$0].forms.many }
        return parameters
    }
}

extension DatabaseConnection {
    /// Whether Citus has the rows of users.
    func isDistributed() throws(PostgresError) -> Bool {
        try query("select headroom.is_distributed()", deadline: .now + .seconds(30)).bool(0, 0)
    }
}
