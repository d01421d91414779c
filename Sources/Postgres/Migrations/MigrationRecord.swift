/// The tables that say what has been applied, and their statements.
struct MigrationRecord {
    struct AppliedMigration {
        let number: Int
        let name: String
        let checksum: String
        let appliedAt: Int64

        var file: String { Migration.file(number: number, name: name) }
    }

    struct AppliedDefinition {
        let checksum: String
        let release: String
        let appliedAt: Int64
    }

    struct Contents {
        var migrations: [AppliedMigration] = []
        /// By file.
        var definitions: [String: AppliedDefinition] = [:]
    }

    enum Presence {
        case absent
        case present
        /// Only a table of migrations: from before functions were recorded.
        case outdated
    }

    let schema: String
    let connection: Connection
    /// For each statement.
    let limit: Duration

    var deadline: ContinuousClock.Instant { .now + limit }

    var quotedSchema: String { "\"" + schema.map { $0 == "\"" ? "\"\"" : String($0) }.joined() + "\"" }

    /// Looks in the catalog, which everybody may read: to_regclass would fail where the schema may not be used.
    func presence() throws(PostgresError) -> Presence {
        var parameters = Parameters()
        parameters.append(text: schema)
        let result = try connection.query(
            """
            SELECT t.relname = 'definitions'
            FROM pg_catalog.pg_class AS t JOIN pg_catalog.pg_namespace AS s ON s.oid = t.relnamespace
            WHERE s.nspname = $1 AND t.relname IN ('migrations', 'definitions') ORDER BY 1 DESC
            """,
            parameters,
            deadline: deadline
        )
        guard result.rowCount > 0 else { return .absent }
        return try result.bool(0, 0) ? .present : .outdated
    }

    /// CREATE … IF NOT EXISTS asks for the right to create even where everything exists, and a service's role need
    /// not have it; so call this only after `presence`, with the lock held.
    func create() throws(PostgresError) {
        try connection.execute(
            """
            CREATE SCHEMA IF NOT EXISTS \(quotedSchema);
            CREATE TABLE \(quotedSchema).migrations (
                number integer NOT NULL,
                name text NOT NULL,
                checksum text NOT NULL,
                applied_at timestamptz NOT NULL DEFAULT clock_timestamp(),
                CONSTRAINT migrations_pkey PRIMARY KEY (number)
            );
            COMMENT ON TABLE \(quotedSchema).migrations IS
                'Which files of sql/tables are applied. checksum is what sha256sum says of the file.';
            CREATE TABLE \(quotedSchema).definitions (
                file text NOT NULL,
                checksum text NOT NULL,
                release text NOT NULL,
                applied_at timestamptz NOT NULL DEFAULT clock_timestamp(),
                CONSTRAINT definitions_pkey PRIMARY KEY (file)
            );
            COMMENT ON TABLE \(quotedSchema).definitions IS
                'Which text of each function, view and script is applied, and the release that it came with.'
            """,
            deadline: deadline
        )
    }

    func contents() throws(PostgresError) -> Contents {
        var contents = Contents()
        let migrations = try connection.query(
            "SELECT number, name, checksum, applied_at FROM \(quotedSchema).migrations ORDER BY number",
            deadline: deadline
        )
        contents.migrations = try (0..<migrations.rowCount).map { row throws(PostgresError) in
            AppliedMigration(
                number: Int(try migrations.int32(row, 0)),
                name: migrations.text(row, 1),
                checksum: migrations.text(row, 2),
                appliedAt: try migrations.timestamp(row, 3)
            )
        }
        let definitions = try connection.query(
            "SELECT file, checksum, release, applied_at FROM \(quotedSchema).definitions",
            deadline: deadline
        )
        for row in 0..<definitions.rowCount {
            contents.definitions[definitions.text(row, 0)] = AppliedDefinition(
                checksum: definitions.text(row, 1),
                release: definitions.text(row, 2),
                appliedAt: try definitions.timestamp(row, 3)
            )
        }
        return contents
    }

    /// SHA-256 in hexadecimal of each text, as `sha256sum` gives it of the file. The server computes it, so that this
    /// target needs no cryptography of its own.
    func checksums(of texts: [String]) throws(PostgresError) -> [String] {
        var parameters = Parameters()
        parameters.appendTexts(count: texts.count) { texts[$0] }
        let result = try connection.query(
            """
            SELECT encode(sha256(convert_to(text.sql, 'UTF8')), 'hex')
            FROM unnest($1) WITH ORDINALITY AS text (sql, position)
            ORDER BY text.position
            """,
            parameters,
            deadline: deadline
        )
        return (0..<result.rowCount).map { result.text($0, 0) }
    }

    func insert(_ migration: Migration, checksum: String) throws(PostgresError) {
        var parameters = Parameters()
        parameters.append(int32: Int32(clamping: migration.number))
        parameters.append(text: migration.name)
        parameters.append(text: checksum)
        _ = try connection.query(
            "INSERT INTO \(quotedSchema).migrations (number, name, checksum) VALUES ($1, $2, $3)",
            parameters,
            deadline: deadline
        )
    }

    /// Makes the record of definitions say what the files say.
    func replaceDefinitions(_ files: [String], checksums: [String], release: String) throws(PostgresError) {
        var parameters = Parameters()
        parameters.appendTexts(count: files.count) { files[$0] }
        parameters.appendTexts(count: checksums.count) { checksums[$0] }
        parameters.append(text: release)
        _ = try connection.query(
            """
            WITH new AS (SELECT * FROM unnest($1, $2) AS new (file, checksum)),
            gone AS (DELETE FROM \(quotedSchema).definitions WHERE file <> ALL ($1))
            INSERT INTO \(quotedSchema).definitions AS old (file, checksum, release)
            SELECT new.file, new.checksum, $3 FROM new
            ON CONFLICT (file) DO UPDATE
            SET checksum = excluded.checksum, release = excluded.release,
                applied_at = CASE WHEN old.checksum = excluded.checksum THEN old.applied_at ELSE excluded.applied_at END
            """,
            parameters,
            deadline: deadline
        )
    }
}
