/// A row of the migrations table.
struct AppliedMigration {
    let number: Int
    let name: String
    let checksum: String
    let appliedAt: Int64
}

/// The table that says what has been applied, and its statements.
struct MigrationRecord {
    let schema: String
    let connection: Connection
    /// For each statement.
    let limit: Duration

    private var deadline: ContinuousClock.Instant { .now + limit }

    private var quotedSchema: String { "\"" + schema.map { $0 == "\"" ? "\"\"" : String($0) }.joined() + "\"" }

    /// Looks in the catalog, which everybody may read: to_regclass would fail where the schema may not be used.
    func exists() throws(PostgresError) -> Bool {
        var parameters = Parameters()
        parameters.append(text: schema)
        let result = try connection.query(
            """
            SELECT EXISTS (
                SELECT FROM pg_catalog.pg_class AS t JOIN pg_catalog.pg_namespace AS s ON s.oid = t.relnamespace
                WHERE s.nspname = $1 AND t.relname = 'migrations')
            """,
            parameters,
            deadline: deadline
        )
        return result.bool(0, 0)
    }

    /// CREATE … IF NOT EXISTS asks for the right to create even where everything exists, and a service's role need
    /// not have it; so call this only after `exists`, with the lock held.
    func create() throws(PostgresError) {
        try connection.execute(
            """
            CREATE SCHEMA IF NOT EXISTS \(quotedSchema);
            CREATE TABLE IF NOT EXISTS \(quotedSchema).migrations (
                number integer NOT NULL,
                name text NOT NULL,
                checksum text NOT NULL,
                applied_at timestamptz NOT NULL DEFAULT clock_timestamp(),
                CONSTRAINT migrations_pkey PRIMARY KEY (number)
            );
            COMMENT ON TABLE \(quotedSchema).migrations IS
                'Which files of sql/migrations are applied. checksum is what sha256sum says of the file.'
            """,
            deadline: deadline
        )
    }

    func applied() throws(PostgresError) -> [AppliedMigration] {
        let result = try connection.query(
            "SELECT number, name, checksum, applied_at FROM \(quotedSchema).migrations ORDER BY number",
            deadline: deadline
        )
        return (0..<result.rowCount).map { row in
            AppliedMigration(
                number: Int(result.int32(row, 0)),
                name: result.text(row, 1),
                checksum: result.text(row, 2),
                appliedAt: result.timestamp(row, 3)
            )
        }
    }

    /// SHA-256 in hexadecimal of each text, as `sha256sum` gives it of the file. The server computes it, so that this
    /// target needs no cryptography of its own.
    func checksums(of migrations: [Migration]) throws(PostgresError) -> [String] {
        var parameters = Parameters()
        parameters.appendTexts(count: migrations.count) { migrations[$0].sql }
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
}
