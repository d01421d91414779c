import Postgres
import Usage

/// The schema that this binary works with.
public enum Schema {
    public static var migrator: Migrator {
        Migrator(
            migrations: EmbeddedSQL.migrations.map {
                Migration(
                    number: $0.number,
                    name: $0.name,
                    sql: $0.sql,
                    preparation: $0.number == firstThatTakesNames ? EmbeddedSQL.setAside : nil
                )
            }
        )
    }

    /// The number of the schema that this binary works with.
    public static var newestMigration: Int { EmbeddedSQL.migrations.map(\.number).max() ?? 0 }

    /// Before it there is none of our functions and views in schema public.
    private static let firstThatTakesNames = 4

    /// What an administrator runs where the login that migrates may not make roles.
    public static var rolesScript: String { EmbeddedSQL.roles }

    /// Brings a database to the current schema and gives it this binary's words.
    ///
    /// Blocks; run it on a thread of its own.
    ///
    /// - Parameter warn: told what was set aside.
    public static func migrate(
        _ connection: Connection,
        warn: (String) -> Void = { _ in }
    ) throws -> [Migration] {
        try migrator.migrate(connection, finally: writeWords, warn: warn)
    }

    /// What `prepare` found and did.
    public struct Preparation: Sendable {
        public var applied: [Migration]
        /// The SQL functions say another release's sentences, until the schema's owner migrates.
        public var hasOtherWords: Bool
    }

    /// Makes sure that a service can run with this login: migrates where the login owns the schema, and looks whether
    /// everything is there where it does not. The connection is of no use for anything else afterwards.
    ///
    /// Blocks; run it on a thread of its own.
    ///
    /// - Throws: `MigrationError`, and `LoginError` when the login may not act as the service's role.
    public static func prepare(
        _ connection: Connection,
        warn: (String) -> Void = { _ in }
    ) throws -> Preparation {
        var rights = try LoginRights(of: connection)
        if rights.mayMigrate {
            let applied = try migrate(connection, warn: warn)
            // The first migration that knows of roles may just have made them.
            rights = try LoginRights(of: connection)
            guard rights.mayServe else { throw LoginError.mayNotServe(rights) }
            return Preparation(applied: applied, hasOtherWords: false)
        }
        guard rights.mayServe else { throw LoginError.mayNotServe(rights) }
        try connection.execute("set role \(ServiceRole.name)", deadline: .now + .seconds(30))
        try migrator.requireCurrent(connection, owner: rights.owner)
        let words = try connection.query(EmbeddedSQL.countOtherWords, wordParameters(), deadline: .now + .seconds(30))
        return Preparation(applied: [], hasOtherWords: words.int32(0, 0) > 0)
    }

    private static func writeWords(_ connection: Connection) throws(PostgresError) {
        _ = try connection.query(EmbeddedSQL.writeWords, wordParameters(), deadline: .now + .seconds(30))
    }

    private static func wordParameters() -> Parameters {
        let words = Words.allCases
        var parameters = Parameters()
        parameters.appendTexts(count: words.count) { words[$0].rawValue }
        parameters.appendTexts(count: words.count) { words[$0].template }
        return parameters
    }
}
