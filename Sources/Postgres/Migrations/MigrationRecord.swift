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
        /// The definitions by their files.
        var definitions: [String: AppliedDefinition] = [:]
    }

    enum State {
        case missing
        case current
        /// The schema has only some of the tables, from a development version.
        case outdated
    }

    let schema: String
    let connection: DatabaseConnection
    /// The time limit for each statement.
    let limit: Duration

    var deadline: ContinuousClock.Instant { .now + limit }

    var quotedSchema: String { "\"" + schema.map { $0 == "\"" ? "\"\"" : String($0) }.joined() + "\"" }

    /// Reads the catalog, which any role may read: to_regclass would fail without USAGE on the schema.
    func state() throws(PostgresError) -> State {
        var parameters = Parameters()
        parameters.append(text: schema)
        let result = try connection.query(
            """
            SELECT FROM pg_catalog.pg_class AS t JOIN pg_catalog.pg_namespace AS s ON s.oid = t.relnamespace
            WHERE s.nspname = $1 AND t.relname IN ('migrations', 'definitions', 'installed_objects')
            """,
            parameters,
            deadline: deadline
        )
        switch result.rowCount {
        case 0: return .missing
        case 3: return .current
        default: return .outdated
        }
    }

    /// Refuses a schema or a record of applied files that somebody else has created: triggers on these tables would run
    /// with the rights of this login. A superuser can act as every role, and trusts none but superusers and the owner.
    func refuseForeignOwner(_ owner: SchemaOwner) throws(MigrationError) {
        var parameters = Parameters()
        parameters.append(text: schema)
        parameters.append(text: owner.role)
        let result: QueryResult
        do throws(PostgresError) {
            result = try connection.query(
                """
                SELECT objects.name, owners.rolname
                FROM (
                    SELECT 'the schema ' || nspname, nspowner FROM pg_catalog.pg_namespace WHERE nspname = $1
                    UNION ALL
                    SELECT 'the table ' || s.nspname || '.' || t.relname, t.relowner
                    FROM pg_catalog.pg_class AS t JOIN pg_catalog.pg_namespace AS s ON s.oid = t.relnamespace
                    WHERE s.nspname = $1 AND t.relname IN ('migrations', 'definitions', 'installed_objects')
                ) AS objects (name, owner)
                JOIN pg_catalog.pg_roles AS owners ON owners.oid = objects.owner
                JOIN pg_catalog.pg_roles AS login ON login.rolname = current_user
                WHERE NOT owners.rolsuper AND owners.rolname NOT IN ($2, login.rolname)
                    AND (login.rolsuper OR NOT pg_catalog.pg_has_role(owners.oid, 'USAGE'))
                """,
                parameters,
                deadline: deadline
            )
        } catch {
            throw .database("the owner of the schema cannot be read", error)
        }
        guard result.rowCount == 0 else { throw .foreignOwner(result.text(0, 0), result.text(0, 1)) }
    }

    /// Admits one migration at a time, until the end of the transaction. Only a role that may change the table can lock
    /// it like this; an advisory lock would be open to every login.
    func lock() throws(PostgresError) {
        try connection.execute(
            "LOCK TABLE \(quotedSchema).migrations IN SHARE UPDATE EXCLUSIVE MODE",
            deadline: deadline
        )
    }

    /// Creates the tables of the record. Call it only after `state`, with the lock held: CREATE … IF NOT EXISTS
    /// requires the right to create even if everything exists, and a service's role need not have it.
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
                'The applied version of each function, view and script, and its release.';
            CREATE TABLE \(quotedSchema).installed_objects (
                object text NOT NULL,
                facts jsonb NOT NULL,
                CONSTRAINT installed_objects_pkey PRIMARY KEY (object)
            );
            COMMENT ON TABLE \(quotedSchema).installed_objects IS
                'What the newest migration has installed, which the service compares with what is there when it starts.'
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

    /// Returns the SHA-256 of each text in hexadecimal, as `sha256sum` prints it. The server computes it, so that this
    /// module needs no cryptography.
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

    /// Returns the roles that were created after the last migration, and lack their rights.
    func newRoles(_ owner: SchemaOwner) throws(PostgresError) -> [String] {
        let result = try connection.query(owner.newRoles, deadline: deadline)
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
