import Foundation
import Testing

/// Runs the program that the plugin runs.
@Suite("embed-files")
struct EmbedFilesTests {
    private struct Outcome {
        let status: Int32
        let message: String
        let source: String
    }

    private func embed(_ files: [String: String], asTexts: Bool = false) throws -> Outcome {
        let folder = FileManager.default.temporaryDirectory.appending(path: "embed-files-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        for (name, text) in files {
            let file = folder.appending(path: name)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(),
                withIntermediateDirectories: true
            )
            try Data(text.utf8).write(to: file)
        }
        let output = folder.appending(path: "EmbeddedSQL.swift")
        let pipe = Pipe()
        let program = Process()
        // Built beside the test bundle.
        program.executableURL = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
            .appending(path: "embed-files")
        program.arguments =
            asTexts
            ? ["texts", output.path] + files.keys.map { folder.appending(path: $0).path }
            : ["sql", folder.path, output.path, folder.appending(path: "last-run").path]
        program.standardOutput = pipe
        try program.run()
        let message = try pipe.fileHandleForReading.readToEnd() ?? Data()
        program.waitUntilExit()
        return Outcome(
            status: program.terminationStatus,
            message: String(decoding: message, as: UTF8.self),
            source: (try? String(contentsOf: output, encoding: .utf8)) ?? ""
        )
    }

    @Test("writes migrations by number, definitions after those that they need, and queries by name")
    func output() throws {
        let outcome = try embed([
            "tables/0002_more.sql": "SELECT 2;\n",
            "tables/0001_usage.sql": "SELECT '\"\"\"#', '\\(x)', '##';\n",
            "queries/consume_batch.sql": "SELECT 3",
            "queries/default.sql": "SELECT 4;\n\n",
            "queries/README.md": "not SQL",
            "roles.sql": "SELECT 5",
            "functions/headroom/one/a.sql": "create or replace view headroom.a as select headroom.b();\n",
            "functions/headroom/two/b.sql":
                "create or replace function headroom.b() returns int language sql return 1;\n",
        ])
        #expect(outcome.status == 0)
        #expect(
            outcome.source == """
                // Written by embed-files from the files in sql/. Change those.

                enum EmbeddedSQL {
                static let migrations: [(number: Int, name: String, sql: String)] = [
                (number: 1, name: "usage", sql: ###\"""
                SELECT '\"""#', '\\(x)', '##';

                \"""###),
                (number: 2, name: "more", sql: #\"""
                SELECT 2;

                \"""#),
                ]
                static let definitions: [(schema: String, name: String, sql: String)] = [
                (schema: "headroom", name: "b", sql: #\"""
                create or replace function headroom.b() returns int language sql return 1;

                \"""#),
                (schema: "headroom", name: "a", sql: #\"""
                create or replace view headroom.a as select headroom.b();

                \"""#),
                ]
                static let `roles` = #\"""
                SELECT 5
                \"""#
                static let `consumeBatch` = #\"""
                -- name: consume_batch
                SELECT 3
                \"""#
                static let `default` = #\"""
                -- name: default
                SELECT 4;


                \"""#
                }

                """
        )
    }

    @Test("writes empty lists without files")
    func noFiles() throws {
        let outcome = try embed(["tables/README.md": ""])
        #expect(outcome.status == 0 && outcome.source.contains("] = [\n]\nstatic let definitions"))
        #expect(outcome.source.hasSuffix("] = [\n]\n}\n"))
    }

    @Test(
        "reports an error with the file and advice",
        arguments: [
            (["tables/1_usage.sql": ""], "name a migration NNNN_what_it_does.sql"),
            (["tables/0001-usage.sql": ""], "name a migration NNNN_what_it_does.sql"),
            (["tables/0001_Usage.sql": ""], "name a migration NNNN_what_it_does.sql"),
            (["tables/0001_a.sql": "", "tables/0001_b.sql": ""], "has the number of 0001_a.sql"),
            (["tables/0001_a.sql": "", "tables/0003_c.sql": ""], "migration 2 is missing"),
            (["tables/0000_a.sql": ""], "migration 1 is missing"),
            (["tables/0001_a.sql": "SELECT 1;\r\n"], "use LF line ends"),
            (["queries/Consume.sql": ""], "name a query in_lower_case.sql"),
            (["queries/a__b.sql": ""], "name a query in_lower_case.sql"),
            (["queries/migrations.sql": ""], "exists already"),
            (["queries/definitions.sql": ""], "exists already"),
            (["functions/headroom/Now.sql": ""], "name a definition after its function or view"),
            (["functions/headroom/now.of.day.sql": ""], "name a definition after its function or view"),
            (
                ["functions/headroom/now.sql": "create function headroom.now() returns int language sql return 1;"],
                "must contain `create or replace function headroom.now`"
            ),
            (
                [
                    "functions/headroom/a.sql": "create or replace view headroom.a as select headroom.b();",
                    "functions/headroom/b.sql": "create or replace view headroom.b as select from headroom.a;",
                ],
                "depends on itself"
            ),
            (["queries/roles.sql": "", "roles.sql": ""], "exists already"),
            (["functions/a.sql": "create or replace view a as select;"], "put it into the folder of its schema"),
            (
                [
                    "functions/headroom/a.sql": "create or replace view headroom.a as select;",
                    "functions/headroom/one/b.sql": "create or replace view headroom.b as select;",
                ],
                "put it into a folder of its subject, such as "
            ),
            (
                ["functions/headroom/one/more/a.sql": "create or replace view headroom.a as select;"],
                "the folder of a subject contains files only"
            ),
            (
                [
                    "functions/headroom/one/a.sql": "create or replace view headroom.a as select;",
                    "functions/headroom/two/a.sql": "create or replace view headroom.a as select;",
                ],
                "functions/headroom/one/a.sql, too"
            ),
            (
                [
                    "functions/headroom/a.sql":
                        "create or replace view headroom.a as select; create or replace view headroom.b as select;"
                ],
                "and no other one"
            ),
            (["queries/a.sql": "create or replace view a as select;"], "put a function or a view into functions/"),
        ]
    )
    func errors(files: [String: String], message: String) throws {
        let outcome = try embed(files)
        #expect(outcome.status == 1 && outcome.source.isEmpty)
        #expect(outcome.message.contains(":1: error: ") && outcome.message.contains(message))
    }

    @Test("writes texts under the names of their files")
    func texts() throws {
        let outcome = try embed(["b/page.mustache": "{{\"\"\"#}}\n", "a/style.css": "  a\n"], asTexts: true)
        #expect(
            outcome.source == """
                // Written by embed-files. Change the files.

                enum EmbeddedTexts {
                static let all: [String: String] = [
                "style.css": #\"""
                  a

                \"""#,
                "page.mustache": ##\"""
                {{\"""#}}

                \"""##,
                ]
                }

                """
        )
        #expect(try embed([:], asTexts: true).source.contains("= [:\n]"))
        let twice = try embed(["a/style.css": "", "b/style.css": ""], asTexts: true)
        #expect(twice.status == 1 && twice.message.contains("/b/style.css:1: error: another file has the same name"))
    }
}
