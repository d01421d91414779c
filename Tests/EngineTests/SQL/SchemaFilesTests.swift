import Foundation
import TestSupport
import Testing

@Suite("The files of the schema")
struct SchemaFilesTests {
    static let root = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../../sql").standardizedFileURL

    static func files(in folder: String) throws -> [URL] {
        let found = FileManager.default.enumerator(at: root.appending(path: folder), includingPropertiesForKeys: nil)
        return try #require(found).compactMap { $0 as? URL }.filter { $0.pathExtension == "sql" }
    }

    /// The schemas of Headroom's functions and views.
    private static let schemas = "('headroom'::regnamespace, 'public'::regnamespace)"

    @Test("define exactly the functions and views of the database")
    func names() async throws {
        let database = try await TestDatabase.fresh()
        let objects = try await database.psql.rows(
            """
            select pronamespace::regnamespace || '/' || proname from pg_proc where pronamespace in \(Self.schemas)
            union
            select relnamespace::regnamespace || '/' || relname from pg_class
            where relkind = 'v' and relnamespace in \(Self.schemas)
            """
        )
        let files = try Self.files(in: "functions").map { file in
            let schema = file.path.dropFirst(Self.root.path.count + "/functions/".count).prefix { $0 != "/" }
            return String(schema) + "/" + file.lastPathComponent.prefix { $0 != "." }
        }
        #expect(Set(files) == Set(objects))
        #expect(objects.count > 50)
    }

    @Test("describe each function and view")
    func comments() throws {
        for file in try Self.files(in: "functions") {
            #expect(try String(contentsOf: file, encoding: .utf8).hasPrefix("-- "), "\(file.lastPathComponent)")
        }
    }

    @Test("define no function twice")
    func bodies() async throws {
        let database = try await TestDatabase.fresh()
        let repeated = try await database.psql.rows(
            """
            select string_agg(proname, ' ') from pg_proc where pronamespace in \(Self.schemas)
            group by coalesce(pg_get_function_sqlbody(oid), prosrc) having count(*) > 1
            """
        )
        #expect(repeated == [])
    }

    @Test("resolve no name by the caller's search path")
    func paths() async throws {
        let database = try await TestDatabase.fresh()
        // Names in an SQL-standard body are resolved when it is created, in any other body when it runs.
        let unpinned = try await database.psql.rows(
            """
            select oid::regprocedure from pg_proc
            where pronamespace in \(Self.schemas) and prosqlbody is null
                and 'search_path=pg_catalog, pg_temp' = any(proconfig) is not true
            """
        )
        // Setting a path takes a tenth of the time of a small batch. The service's sessions, whose path is pinned,
        // execute these with their own rights.
        let fastPath = try await database.psql.rows(
            """
            select oid::regprocedure from pg_proc
            where proname in (
                    'count_batch', 'count_keyed_batch', 'count_parts', 'counted_rows', 'lock_receipt', 'look_up_keys',
                    'read_batch', 'usable_periods', 'write_counts', 'write_keys'
                )
                and not prosecdef and not has_function_privilege('headroom_operator', oid, 'execute')
                and not has_function_privilege('headroom_dashboard', oid, 'execute')
                and not has_function_privilege('headroom_user', oid, 'execute')
            """
        )
        #expect(fastPath.count == 10)
        #expect(Set(unpinned) == Set(fastPath))
    }
}
