import Postgres
import TestSupport
import Testing

/// Functions, views and scripts, which are applied again whenever one of them has changed.
@Suite("Definitions")
struct DefinitionTests {
    private static func function(_ name: String, _ body: String, _ parameters: String = "") -> Definition {
        let file = "functions/headroom/\(name).sql"
        return Definition(
            file: file,
            sql: "CREATE OR REPLACE FUNCTION headroom.\(name)(\(parameters)) RETURNS int LANGUAGE sql RETURN \(body);\n"
        )
    }

    private static let schema = Migration(number: 1, name: "t", sql: "CREATE TABLE public.t (); SELECT 1;\n")
    private static let one = function("one", "1")
    private static let two = function("two", "headroom.one() + 1")
    private static let alone = function("alone", "2")
    private static let view = Definition(
        file: "functions/public/ones.sql",
        sql: "CREATE OR REPLACE VIEW public.ones AS SELECT headroom.one() AS one;\n"
    )

    private static func files(_ definitions: [Definition], after: [Definition] = []) -> SchemaFiles {
        SchemaFiles(migrations: [schema], definitions: definitions, after: after)
    }

    private func perform<Value: Sendable>(
        _ conninfo: String,
        _ work: @escaping @Sendable (DatabaseConnection) throws -> Value
    ) async throws -> Value {
        try await onThread {
            let connection = try DatabaseConnection.connect(conninfo)
            defer { connection.close() }
            return try work(connection)
        }
    }

    private func migrate(_ conninfo: String, _ files: SchemaFiles) async throws -> MigrationPlan {
        try await perform(conninfo) { try Migrator(files: files).migrate($0) }
    }

    private func failToMigrate(_ conninfo: String, _ files: SchemaFiles) async throws -> MigrationError {
        let error = await #expect(throws: MigrationError.self) { _ = try await migrate(conninfo, files) }
        return try #require(error)
    }

    private func number(_ conninfo: String, _ sql: String) async throws -> Int {
        try await perform(conninfo) { Int(try $0.query("SELECT \(sql)", deadline: .now + waitLimit).int32(0, 0)) }
    }

    @Test("all definitions are applied again if one has changed") func changed() async throws {
        let conninfo = try await TestServer.emptyDatabase()
        let created = try await migrate(conninfo, Self.files([Self.one, Self.two]))
        let files = [Self.one.file, Self.two.file]
        #expect(created.changes == [.apply(file: Self.schema.file)] + files.map { .create(file: $0) })
        #expect(try await migrate(conninfo, Self.files([Self.one, Self.two])).isEmpty)
        // Changed manually, without a change of a file.
        try await perform(conninfo) {
            try $0.execute(
                "CREATE OR REPLACE FUNCTION headroom.two() RETURNS int LANGUAGE sql RETURN 7",
                deadline: .now + waitLimit
            )
        }
        let replaced = try await migrate(conninfo, Self.files([Self.function("one", "10"), Self.two]))
        #expect(replaced.changes == [.replace(file: Self.one.file)])
        #expect(try await number(conninfo, "headroom.two()") == 11)
    }

    @Test("an object without a file is dropped") func removed() async throws {
        let conninfo = try await TestServer.emptyDatabase()
        _ = try await migrate(conninfo, Self.files([Self.one, Self.two, Self.view]))
        let plan = try await perform(conninfo) { try Migrator(files: Self.files([Self.one])).plan($0) }
        #expect(plan.changes == [.drop(object: Self.two.file), .drop(object: Self.view.file)])
        let dropped = try await migrate(conninfo, Self.files([Self.one]))
        #expect(dropped.changes == [.drop(object: "VIEW public.ones"), .drop(object: "ROUTINE headroom.two()")])
        #expect(try await number(conninfo, "count(*)::int FROM pg_proc WHERE proname = 'two'") == 0)
        #expect(try await number(conninfo, "count(*)::int FROM pg_class WHERE relname = 'ones'") == 0)
        #expect(try await migrate(conninfo, Self.files([Self.one])).isEmpty)
    }

    @Test("a function with changed parameters replaces the old one") func changedParameters() async throws {
        let conninfo = try await TestServer.emptyDatabase()
        _ = try await migrate(conninfo, Self.files([Self.one]))
        let changed = try await migrate(conninfo, Self.files([Self.function("one", "p", "p int")]))
        #expect(changed.changes == [.replace(file: Self.one.file), .drop(object: "ROUTINE headroom.one()")])
    }

    @Test("another role's function is not dropped") func otherOwner() async throws {
        let conninfo = try await TestServer.emptyDatabase()
        _ = try await migrate(conninfo, Self.files([Self.one]))
        try await perform(conninfo) {
            try $0.execute(
                "CREATE FUNCTION headroom.report_of_theirs() RETURNS int LANGUAGE sql RETURN 1",
                deadline: .now + waitLimit
            )
        }
        #expect(try await migrate(conninfo, Self.files([Self.function("one", "10")])).changes.count == 1)
        #expect(try await number(conninfo, "headroom.report_of_theirs() + headroom.one()") == 11)
    }

    @Test("another role's function in public is not dropped") func otherOwnerInPublic() async throws {
        let conninfo = try await TestServer.emptyDatabase()
        try await perform(conninfo) {
            try $0.execute(
                "CREATE FUNCTION public.ours(int) RETURNS int LANGUAGE sql RETURN 1",
                deadline: .now + waitLimit
            )
        }
        let ours = Definition(
            file: "functions/public/ours.sql",
            sql: "CREATE OR REPLACE FUNCTION public.ours() RETURNS int LANGUAGE sql RETURN 2;\n"
        )
        #expect(try await migrate(conninfo, Self.files([ours])).changes.count == 2)
        #expect(try await number(conninfo, "public.ours(0) * 10 + public.ours()") == 12)
    }

    @Test("an object on which another depends is not dropped") func dependency() async throws {
        let conninfo = try await TestServer.emptyDatabase()
        _ = try await migrate(conninfo, Self.files([Self.one]))
        try await perform(conninfo) {
            try $0.execute("CREATE VIEW public.mine AS SELECT headroom.one()", deadline: .now + waitLimit)
        }
        let error = try await failToMigrate(conninfo, Self.files([Self.alone]))
        #expect(error.message.contains("this release no longer has ROUTINE headroom.one(), and it cannot be dropped"))
        #expect(error.message.contains("other objects depend on it"))
        #expect(try await number(conninfo, "headroom.one()") == 1)
    }

    @Test("a script after the definitions is applied only if it has changed") func after() async throws {
        let conninfo = try await TestServer.emptyDatabase()
        let script = Definition(file: "triggers.sql", sql: "CREATE TABLE IF NOT EXISTS public.u ();\n")
        _ = try await migrate(conninfo, Self.files([Self.one], after: [script]))
        try await perform(conninfo) { try $0.execute("DROP TABLE public.u", deadline: .now + waitLimit) }
        let changed = Self.function("one", "10")
        #expect(try await migrate(conninfo, Self.files([changed], after: [script])).changes.count == 1)
        #expect(try await number(conninfo, "count(*)::int FROM pg_class WHERE relname = 'u'") == 0)
        let again = Definition(file: "triggers.sql", sql: script.sql + "-- once more\n")
        let replaced = try await migrate(conninfo, Self.files([changed], after: [again]))
        #expect(replaced.changes == [.replace(file: "triggers.sql")])
        #expect(try await number(conninfo, "count(*)::int FROM pg_class WHERE relname = 'u'") == 1)
    }

    @Test("an older release does not restore its functions") func olderRelease() async throws {
        let conninfo = try await TestServer.emptyDatabase()
        var newer = Self.files([Self.function("one", "10")])
        newer.release = "1.10.0"
        _ = try await migrate(conninfo, newer)
        var older = Self.files([Self.one])
        older.release = "1.9.3"
        let error = try await failToMigrate(conninfo, older)
        #expect(error.code == .databaseNewer)
        #expect(error.message.contains("those of release 1.10.0, and this is 1.9.3"))
        #expect(try await number(conninfo, "headroom.one()") == 10)
    }

    @Test("a schema from before the first release is refused") func outdated() async throws {
        let conninfo = try await TestServer.emptyDatabase()
        try await perform(conninfo) {
            try $0.execute(
                """
                CREATE SCHEMA headroom;
                CREATE TABLE headroom.migrations (number int, name text, checksum text, applied_at timestamptz);
                INSERT INTO headroom.migrations VALUES (1, 'message_usage', 'x', now())
                """,
                deadline: .now + waitLimit
            )
        }
        for refuse in [
            { @Sendable in _ = try await migrate(conninfo, Self.files([Self.one])) },
            { @Sendable in _ = try await perform(conninfo) { try Migrator(files: Self.files([])).status($0) } },
        ] {
            let error = await #expect(throws: MigrationError.self) { try await refuse() }
            #expect(error?.code == .outdated)
            #expect(error?.message.contains("development version from before the first release") == true)
        }
    }

    @Test("conflicting objects are renamed whenever definitions are applied") func renamedConflicts() async throws {
        let conninfo = try await TestServer.emptyDatabase()
        var files = Self.files([Self.one])
        files.renameConflicts = "DO $$ BEGIN RAISE WARNING 'set aside'; END $$"
        let cases = [(Self.one, ["set aside"]), (Self.one, []), (Self.function("one", "2"), ["set aside"])]
        for (definition, expected) in cases {
            files.definitions = [definition]
            let warnings = try await perform(conninfo) { [files] connection in
                var warnings: [String] = []
                _ = try Migrator(files: files).migrate(connection, warn: { warnings.append($0) })
                return warnings
            }
            #expect(warnings == expected)
        }
    }
}
