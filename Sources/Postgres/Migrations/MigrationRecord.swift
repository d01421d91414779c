/// The tables that record the applied files, and their statements.
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

    struct Rows {
        var migrations: [AppliedMigration] = []
        /// By file.
        var definitions: [String: AppliedDefinition] = [:]
    }

    enum State {
        case missing
        case current
        /// Only a table of migrations, from before functions were recorded.
        case outdated
    }

    let schema: String
    let connection: Connection
    /// For each statement.
    let limit: Duration

    var deadline: ContinuousClock.Instant { .now + limit }

    var quotedSchema: String { "\"" + schema.map { $0 == "\"" ? "\"\"" : String($0) }.joined() + "\"" }

    /// Reads the catalog, which any role may read: to_regclass would fail without USAGE on the schema.
    func state() throws(PostgresError) -> State {
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
        guard result.rowCount > 0 else { return .missing }
        return try result.bool(0, 0) ? .current : .outdated
    }

    /// Call only after `state`, with the lock held: CREATE … IF NOT EXISTS requires the right to create even if
    /// everything exists, and a service's role need not have it.
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
                'The applied files of sql/tables. checksum is the SHA-256 of the file.';
            CREATE TABLE \(quotedSchema).definitions (
                file text NOT NULL,
                checksum text NOT NULL,
                release text NOT NULL,
                applied_at timestamptz NOT NULL DEFAULT clock_timestamp(),
                CONSTRAINT definitions_pkey PRIMARY KEY (file)
            );
            COMMENT ON TABLE \(quotedSchema).definitions IS
                'The applied version of each function, view and script, and its release.'
            """,
            deadline: deadline
        )
    }

    func rows() throws(PostgresError) -> Rows {
        var rows = Rows()
        let migrations = try connection.query(
            "SELECT number, name, checksum, applied_at FROM \(quotedSchema).migrations ORDER BY number",
            deadline: deadline
        )
        rows.migrations = try (0..<migrations.rowCount).map { row throws(PostgresError) in
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
            rows.definitions[definitions.text(row, 0)] = AppliedDefinition(
                checksum: definitions.text(row, 1),
                release: definitions.text(row, 2),
                appliedAt: try definitions.timestamp(row, 3)
            )
        }
        return rows
    }

    /// The SHA-256 of each text in hexadecimal, as `sha256sum` prints it. The server computes it, so that this module
    /// needs no cryptography.
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

    /// Replaces the record of definitions.
    func replaceDefinitions(_ files: [String], checksums: [String], release: String) throws(PostgresError) {
        var parameters = Parameters()
        parameters.appendTexts(count: files.count) { files[$0] }
        parameters.appendTexts(count: checksums.count) { checksums[$0] }
        parameters.append(text: release)
        _ = try connection.query(
            """
            WITH new AS (SELECT * FROM unnest($1, $2) AS new (file, checksum)),
            removed AS (DELETE FROM \(quotedSchema).definitions WHERE file <> ALL ($1))
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
