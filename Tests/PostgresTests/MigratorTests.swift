import Postgres
import TestSupport
import Testing

@Suite("Migrations")
struct MigratorTests {
    private static let first = Migration(
        number: 1,
        name: "users",
        sql: "CREATE TABLE public.users (id int PRIMARY KEY);\nINSERT INTO public.users VALUES (1);\n"
    )
    private static let second = Migration(
        number: 2,
        name: "names",
        sql: "ALTER TABLE public.users ADD COLUMN name text;\n"
    )
    private static let both = migrator([second, first])

    private static func migrator(_ migrations: [Migration]) -> Migrator {
        Migrator(files: SchemaFiles(migrations: migrations))
    }

    private func migrate(
        _ conninfo: String,
        _ migrator: Migrator = both,
        role: String? = nil
    ) async throws -> MigrationPlan {
        try await onThread {
            let connection = try DatabaseConnection.connect(conninfo)
            defer { connection.close() }
            if let role { try connection.execute("SET ROLE \(role)", deadline: .now + waitLimit) }
            return try migrator.migrate(connection)
        }
    }

    private static func applied(_ migrations: Migration...) -> MigrationPlan {
        MigrationPlan(changes: migrations.map { .apply(file: $0.file) })
    }

    private func failToMigrate(_ conninfo: String, _ migrator: Migrator) async throws -> MigrationError {
        let error = await #expect(throws: MigrationError.self) { _ = try await migrate(conninfo, migrator) }
        return try #require(error)
    }

    private func status(
        _ conninfo: String,
        _ migrator: Migrator = both,
        role: String? = nil
    ) async throws -> [MigrationStatus] {
        try await onThread {
            let connection = try DatabaseConnection.connect(conninfo)
            defer { connection.close() }
            if let role { try connection.execute("SET ROLE \(role)", deadline: .now + waitLimit) }
            return try migrator.status(connection)
        }
    }

    private func execute(_ conninfo: String, _ sql: String) async throws {
        try await onThread {
            let connection = try DatabaseConnection.connect(conninfo)
            defer { connection.close() }
            try connection.execute(sql, deadline: .now + waitLimit)
        }
    }

    @Test("missing migrations are applied once and in order") func missing() async throws {
        let conninfo = try await TestServer.emptyDatabase()
        #expect(try await migrate(conninfo, Self.migrator([Self.first])) == Self.applied(Self.first))
        #expect(try await migrate(conninfo) == Self.applied(Self.second))
        #expect(try await migrate(conninfo).isEmpty)
        #expect(try await TestObserver(conninfo).count("public.users WHERE name IS NULL") == 1)
        #expect(try await TestObserver(conninfo).count("headroom.migrations") == 2)
    }

    @Test("concurrent instances apply each migration once") func concurrent() async throws {
        let conninfo = try await TestServer.emptyDatabase()
        let applied = try await withThrowingTaskGroup(of: MigrationPlan.self) { group in
            for _ in 0..<4 { group.addTask { try await migrate(conninfo) } }
            return try await group.reduce([]) { $0 + $1.changes }
        }
        #expect(applied == Self.applied(Self.first, Self.second).changes)
        #expect(try await TestObserver(conninfo).count("public.users") == 1)
    }

    @Test("a failed migration is rolled back and named") func failing() async throws {
        let conninfo = try await TestServer.emptyDatabase()
        let bad = Migration(number: 2, name: "bad", sql: "CREATE TABLE public.t ();\nSELECT 1;\nSELECT nope;\n")
        let error = try await failToMigrate(conninfo, Self.migrator([Self.first, bad]))
        #expect(error.code == .migrationFailed && !error.isTransient)
        #expect(error.message.contains("tables/0002_bad.sql:3") && error.message.contains("42703"))
        #expect(error.message.contains("column \"nope\" does not exist"))
        #expect(try await TestObserver(conninfo).count("pg_class WHERE relname = 't'") == 0)
        // Nor anything of what came before it.
        #expect(try await TestObserver(conninfo).count("pg_namespace WHERE nspname = 'headroom'") == 0)
        #expect(try await migrate(conninfo) == Self.applied(Self.first, Self.second))
    }

    @Test("a migration that commits is refused") func committing() async throws {
        let conninfo = try await TestServer.emptyDatabase()
        let bad = Migration(number: 1, name: "bad", sql: "CREATE TABLE public.t ();\nCOMMIT;\n")
        let error = try await failToMigrate(conninfo, Self.migrator([bad]))
        #expect(error.code == .migrationFailed && error.message.contains("COMMIT"))
    }

    @Test("a changed migration is refused, and named by status") func changed() async throws {
        let conninfo = try await TestServer.emptyDatabase()
        _ = try await migrate(conninfo)
        let changed = Self.migrator([
            Migration(number: 1, name: "users", sql: Self.first.sql + "-- another thought\n"), Self.second,
        ])
        let error = try await failToMigrate(conninfo, changed)
        #expect(error.code == .changedAfterApplied)
        #expect(error.message.contains("tables/0001_users.sql was changed after it had been applied"))
        let states = try await status(conninfo, changed).map(\.state)
        guard case .changed = states[0], case .applied = states[1] else {
            Issue.record("unexpected: \(states)")
            return
        }
    }

    @Test("a newer database is refused, and named by status") func newer() async throws {
        let conninfo = try await TestServer.emptyDatabase()
        _ = try await migrate(conninfo)
        let older = Self.migrator([Self.first])
        let error = try await failToMigrate(conninfo, older)
        #expect(error.code == .databaseNewer && error.message.contains("0002_names.sql is applied in it"))
        #expect(error.message.contains("start the newer release"))
        let states = try await status(conninfo, older)
        #expect(states.map(\.file) == ["tables/0001_users.sql", "tables/0002_names.sql"])
        guard case .unknown = states[1].state else {
            Issue.record("unexpected: \(states)")
            return
        }
    }

    @Test("a checksum equals that of sha256sum") func checksum() async throws {
        let conninfo = try await TestServer.emptyDatabase()
        _ = try await migrate(conninfo, Self.migrator([Migration(number: 1, name: "a", sql: "SELECT 1;\n")]))
        let sum = "b4e0497804e46e0a0b0b8c31975b062152d551bac49c3c2e80932567b4085dcd"
        #expect(try await TestObserver(conninfo).count("headroom.migrations WHERE checksum = '\(sum)'") == 1)
    }

    @Test("status changes nothing, and needs only the right to read") func readingStatus() async throws {
        let conninfo = try await TestServer.emptyDatabase()
        let role = "reader_" + (conninfo.split(separator: "_").last.map(String.init) ?? "")
        try await execute(conninfo, "CREATE ROLE \(role)")
        #expect(try await status(conninfo, role: role).map(\.state) == [.pending, .pending])
        #expect(try await TestObserver(conninfo).count("pg_namespace WHERE nspname = 'headroom'") == 0)
        _ = try await migrate(conninfo, Self.migrator([Self.first]))
        let refused = await #expect(throws: MigrationError.self) { try await status(conninfo, role: role) }
        #expect(refused?.message.contains("USAGE on the schema") == true)
        let grants = """
            GRANT USAGE ON SCHEMA headroom TO \(role);
            GRANT SELECT ON headroom.migrations, headroom.definitions TO \(role)
            """
        try await execute(conninfo, grants)
        let states = try await status(conninfo, role: role)
        #expect(states[1].state == .pending)
        guard case .applied = states[0].state else {
            Issue.record("unexpected: \(states)")
            return
        }
    }

    @Test("a login that may not migrate gets the missing files and the owner's name") func notAllowed() async throws {
        let conninfo = try await TestServer.emptyDatabase()
        let require = { @Sendable (migrator: Migrator) in
            try await onThread {
                let connection = try DatabaseConnection.connect(conninfo)
                defer { connection.close() }
                try migrator.requireCurrent(connection, owner: "ann")
            }
        }
        _ = try await migrate(conninfo, Self.migrator([Self.first]))
        let missing = await #expect(throws: MigrationError.self) { try await require(Self.both) }
        #expect(missing?.code == .missing)
        #expect(missing?.message.contains("tables/0002_names.sql must be applied first") == true)
        #expect(missing?.message.contains("a login that may act as ann run `headroom migrate`") == true)
        #expect(try await status(conninfo).map { $0.state == .pending } == [false, true])
        _ = try await migrate(conninfo)
        try await require(Self.both)
        let newer = await #expect(throws: MigrationError.self) { try await require(Self.migrator([Self.first])) }
        #expect(newer?.code == .databaseNewer)
        let other = Migration(number: 2, name: "names", sql: "SELECT 1;\n")
        let changed = await #expect(throws: MigrationError.self) {
            try await require(Self.migrator([Self.first, other]))
        }
        #expect(changed?.code == .changedAfterApplied)
    }

    @Test("waits for another instance's lock until the timeout") func lock() async throws {
        let conninfo = try await TestServer.emptyDatabase()
        let error = try await onThread {
            let holder = try DatabaseConnection.connect(conninfo)
            defer { holder.close() }
            let deadline = ContinuousClock.now + waitLimit
            _ = try Migrator(files: SchemaFiles()).migrate(holder)
            try holder.execute(
                "BEGIN; LOCK TABLE headroom.migrations IN SHARE UPDATE EXCLUSIVE MODE",
                deadline: deadline
            )
            let impatient = Migrator(files: SchemaFiles(), lockTimeout: .milliseconds(100))
            let connection = try DatabaseConnection.connect(conninfo)
            defer { connection.close() }
            let error = #expect(throws: MigrationError.self) { _ = try impatient.migrate(connection) }
            // The refused connection is as good as before.
            let alive = try connection.query("SELECT 1", deadline: deadline)
            #expect(alive.rowCount == 1)
            return try #require(error)
        }
        #expect(error.code == .lockTimedOut && error.isTransient)
        #expect(error.message.contains("another instance has been migrating"))
    }

    @Test("finally runs in the same transaction, with the lock held") func finally() async throws {
        let conninfo = try await TestServer.emptyDatabase()
        try await onThread {
            let connection = try DatabaseConnection.connect(conninfo)
            defer { connection.close() }
            let deadline = ContinuousClock.now + waitLimit
            let refused = #expect(throws: MigrationError.self) {
                _ = try Self.both.migrate(connection) { (connection) throws(PostgresError) in
                    try connection.execute("INSERT INTO public.users VALUES (2); SELECT 1 / 0", deadline: deadline)
                }
            }
            #expect(refused?.code == .finallyFailed)
            let tables = try connection.query("SELECT FROM pg_class WHERE relname = 'users'", deadline: deadline)
            #expect(tables.rowCount == 0)
            let applied = try Self.both.migrate(connection) { (connection) throws(PostgresError) in
                let locks = try connection.query(
                    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()",
                    deadline: deadline
                )
                #expect(try locks.int64(0, 0) == 0, "they are open to every login")
                try connection.execute("INSERT INTO public.users VALUES (3)", deadline: deadline)
            }
            #expect(applied == Self.applied(Self.first, Self.second))
            let ids = try connection.query("SELECT array_agg(id ORDER BY id) FROM public.users", deadline: deadline)
            #expect(try ids.int32s(0, 0) == [1, 3])
        }
    }

    @Test("no login without rights can keep an instance from migrating") func lockOfOthers() async throws {
        let conninfo = try await TestServer.emptyDatabase()
        _ = try await migrate(conninfo, Self.migrator([Self.first]))
        let reader = "reader_" + (conninfo.split(separator: "_").last.map(String.init) ?? "")
        try await execute(
            conninfo,
            "CREATE ROLE \(reader); GRANT USAGE ON SCHEMA headroom TO \(reader); GRANT SELECT ON headroom.migrations TO \(reader)"
        )
        try await onThread {
            let deadline = ContinuousClock.now + waitLimit
            let holder = try DatabaseConnection.connect(conninfo)
            defer { holder.close() }
            // The former lock of the migrator, and the strongest lock of the table that the role may take.
            try holder.execute(
                """
                SET ROLE \(reader); BEGIN; SELECT pg_advisory_lock(7522525836636811117);
                LOCK TABLE headroom.migrations IN ACCESS SHARE MODE
                """,
                deadline: deadline
            )
            let connection = try DatabaseConnection.connect(conninfo)
            defer { connection.close() }
            let impatient = Migrator(
                files: SchemaFiles(migrations: [Self.first, Self.second]),
                lockTimeout: .milliseconds(500)
            )
            #expect(try impatient.migrate(connection) == Self.applied(Self.second))
            for mode in ["ROW SHARE", "SHARE UPDATE EXCLUSIVE", "ACCESS EXCLUSIVE"] {
                try holder.execute("SAVEPOINT s", deadline: deadline)
                let refused = #expect(throws: PostgresError.self) {
                    try holder.execute("LOCK TABLE headroom.migrations IN \(mode) MODE", deadline: deadline)
                }
                #expect(refused?.kind == .server(.insufficientPrivilege), "\(mode)")
                try holder.execute("ROLLBACK TO s", deadline: deadline)
            }
        }
    }

    @Test("the session's timeouts do not apply to a migration") func timeouts() async throws {
        let conninfo = try await TestServer.emptyDatabase()
        try await onThread {
            let options = ConnectionOptions(
                database: DatabaseTopology(conninfo),
                connectTimeout: waitLimit,
                sessionSettings: [("statement_timeout", "5s")]
            )
            let connection = try DatabaseConnection.connect(options)
            defer { connection.close() }
            let readsTimeouts = Migration(
                number: 1,
                name: "reads_timeouts",
                sql: "CREATE TABLE public.seen AS SELECT current_setting('statement_timeout') AS statement_timeout"
            )
            #expect(try Self.migrator([readsTimeouts]).migrate(connection) == Self.applied(readsTimeouts))
            let seen = try connection.query("SELECT statement_timeout FROM public.seen", deadline: .now + waitLimit)
            #expect(seen.text(0, 0) == "0")
            let timeout = try connection.query("SHOW statement_timeout", deadline: .now + waitLimit)
            #expect(timeout.text(0, 0) == "5s")
        }
    }

    @Test("the error of a read-only server says what to do") func readOnly() async throws {
        let conninfo = try await TestServer.emptyDatabase()
        let error = try await failToMigrate(
            conninfo.replacing("dbname=", with: "options='-c default_transaction_read_only=on' dbname="),
            Self.both
        )
        #expect(error.code == .database && error.message.contains("target_session_attrs=primary"))
    }
}
