import Postgres
import Usage

/// The schema that this binary works with.
public enum Schema {
    public static var migrator: Migrator {
        Migrator(
            migrations: EmbeddedSQL.migrations.map { Migration(number: $0.number, name: $0.name, sql: $0.sql) }
        )
    }

    /// Brings a database to the current schema and gives it this binary's words.
    ///
    /// Blocks; run it on a thread of its own.
    public static func migrate(_ connection: Connection) throws -> [Migration] {
        try migrator.migrate(connection, finally: writeWords)
    }

    private static func writeWords(_ connection: Connection) throws(PostgresError) {
        let words = Words.allCases
        var parameters = Parameters()
        parameters.appendTexts(count: words.count) { words[$0].rawValue }
        parameters.appendTexts(count: words.count) { words[$0].template }
        _ = try connection.query(EmbeddedSQL.writeWords, parameters, deadline: .now + .seconds(30))
    }
}
