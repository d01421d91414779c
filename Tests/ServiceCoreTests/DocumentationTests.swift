import Foundation
import LineProtocol
import Testing
import Usage

@testable import ServiceCore

@Suite("The reference agrees with the code")
struct DocumentationTests {
    private func page(_ path: String) throws -> String {
        try String(contentsOf: Repository.root.appending(path: path), encoding: .utf8)
    }

    /// The text of each part of the reference.
    private func parts() throws -> [String] {
        let folder = Repository.root.appending(path: "docs/reference")
        return try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
            .filter { $0.pathExtension == "md" }
            .map { try String(contentsOf: $0, encoding: .utf8) }
    }

    /// The rows of the tables whose first column has this heading, in all parts of the reference. A name that two
    /// parts document is in two of the rows.
    private func rows(_ column: String) throws -> [String] {
        try parts().flatMap { part -> [String] in
            var rows: [String] = []
            var isInTable = false
            for line in part.split(separator: "\n", omittingEmptySubsequences: false) {
                if line.hasPrefix("| \(column) |") {
                    isInTable = true
                } else if !line.hasPrefix("|") {
                    isInTable = false
                } else if isInTable && !line.hasPrefix("|---") {
                    rows.append(String(line))
                }
            }
            return rows
        }
    }

    /// The cells of the only row whose first cell names `first`, alone or with others, without backquotes and escapes;
    /// nil if there is none, or another.
    private func row(_ first: String, in rows: [String]) -> [String]? {
        let found =
            rows.map { line in
                line.replacing("\\|", with: "\u{0}").split(separator: "|").map {
                    $0.replacing("\u{0}", with: "|").trimmingCharacters(in: CharacterSet(charactersIn: " `"))
                }
            }
            .filter { $0.first?.components(separatedBy: "`, `").contains(first) == true }
        return found.count == 1 ? found[0] : nil
    }

    /// The text under a heading of the second level: several tables have rows of the same name.
    private func section(_ heading: String, of page: String) throws -> String {
        let start = try #require(page.range(of: "\n## \(heading)\n")).upperBound
        let rest = page[start...]
        return String(rest[..<(rest.range(of: "\n## ")?.lowerBound ?? rest.endIndex)])
    }

    @Test("the table of verbs is that of the code; the expected rows can be pasted")
    func verbs() throws {
        let expected = Verb.allCases.map { "| `\($0.syntax.replacing("|", with: "\\|"))` | \($0.summary) |" }
        #expect(try rows("verb") == expected, "\(expected.joined(separator: "\n"))")
    }

    @Test("the table of scopes has each verb in the rows of its permissions")
    func scopes() throws {
        let documented = try rows("scope")
        let expected: [(String, Permissions)] =
            Scope.allCases.map { ($0.rawValue, Permissions([$0]).subtracting([.anonymous, .authenticated])) }
            + [("any token", .authenticated), ("no token", .anonymous)]
        for (name, permission) in expected {
            let verbs = Verb.allCases.filter { $0.permissions.contains(permission) }.map(\.rawValue)
            #expect(row(name, in: documented)?.last == verbs.joined(separator: "`, `"), "\(name)")
        }
    }

    @Test("every error code is listed with its meaning")
    func codes() throws {
        let documented = try rows("code")
        for code in ReplyError.Code.allCases {
            #expect(row("-" + code.rawValue, in: documented)?.dropFirst() == [code.meaning, code.retryHelps])
        }
    }

    @Test("the table of settings has a row for each declaration, in order")
    func settings() throws {
        let rows = try rows("setting")
        let expected = Settings.all.map { setting in
            let byDefault = setting.defaultText.map { "`\($0)`" } ?? "none"
            return "| `\(setting.name)` | \(byDefault) | \(setting.range) | \(setting.meaning) |"
        }
        for (row, expected) in zip(rows, expected) { #expect(row == expected) }
        #expect(rows.count == expected.count)
    }

    @Test("every field is named, in the order of lines, and whether only USAGE has it")
    func fields() throws {
        let page = try page("docs/reference/fields.md")
        let table = page.prefix(upTo: try #require(page.range(of: "\n## ")).lowerBound)
        let named = table.split(separator: "\n").filter { $0.hasPrefix("| `") }.flatMap { row in
            row.split(separator: "|")[0].matches(of: /`(\w+)`/).map { String($0.1) }
        }
        #expect(named == AnswerField.allCases.map(\.name))
        let sentence = try #require(page.firstMatch(of: /only `USAGE` has ([^.]+)\./)).1
        let documented = sentence.matches(of: /`(\w+)`/).map { String($0.1) }
        #expect(documented == AnswerField.allCases.filter(\.isOnlyOfUsage).map(\.name))
    }

    @Test("every line of INFO is named")
    func info() throws {
        let documented = try rows("name of INFO")
        for name in ServerInfo.names { #expect(row(name, in: documented)?.count == 2, "\(name)") }
    }

    @Test("every reason, state, tier and display is named")
    func names() throws {
        let fields = try page("docs/reference/fields.md")
        let values =
            DenialReason.allCases.map(\.rawValue) + SubscriptionState.allCases.map(\.rawValue)
            + Tier.allCases.map(\.rawValue) + Display.allCases.map(\.rawValue)
        for value in values { #expect(fields.contains("`\(value)`"), "\(value)") }
    }

    @Test("every word is listed with its form for exactly one, and its blanks")
    func words() throws {
        let table = try section("The words", of: page("docs/words.md"))
            .split(separator: "\n").filter { $0.hasPrefix("| ") }.map { String($0) }
        for word in Sentence.allCases {
            let blanks = word.blanks.map { "{\($0.rawValue)}" }.joined(separator: " ")
            let forms = try #require(ShippedWords.english[word])
            #expect(row(word.rawValue, in: table)?[1...3] == [forms.other, forms.one ?? "", blanks], "\(word)")
        }
    }

    @Test("the beginnings that no user's name may have are the options of the line protocol")
    func beginnings() throws {
        let page = try page("docs/user-ids.md")
        let rule = try #require(page.firstMatch(of: /a name must not begin with ([^.]+)\./)).1
        let documented = rule.matches(of: /`(\w+)=`/).map { String($0.1) }
        #expect(documented.sorted() == OptionName.allCases.map(\.rawValue).sorted())
    }

    @Test("every public SQL function and view is named, with its first parameters")
    func sql() throws {
        let documented = try rows("name in SQL")
        let directory = Repository.root.appending(path: "sql/functions/public")
        let files = try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)
        var count = 0
        for file in files where file.pathExtension == "sql" {
            let text = try String(contentsOf: file, encoding: .utf8)
            for match in text.matches(of: /create or replace (?:function|view) public\.(\w+)(?:\(\s*(\w+ \w+))?/) {
                count += 1
                let call = match.1 + (match.2.map { "(" + $0 } ?? "")
                #expect(documented.contains { $0.hasPrefix("| `\(call)") }, "\(call)")
            }
        }
        #expect(count >= 10)
    }

    @Test("no page names a setting that does not exist")
    func noStraySettings() throws {
        let known = Set(Settings.all.map(\.environmentVariable)).union([
            "HEADROOM_BINARY", "HEADROOM_POSTGRES_BIN", "HEADROOM_POSTGRES_USER", "HEADROOM_SOME_NAME",
            "HEADROOM_TARGET", "HEADROOM_TOKEN",
        ])
        let names = ["contributors/architecture", "operations", "running", "monitoring", "database"]
        let pages = try (["README.md"] + names.map { "docs/\($0).md" }).map { try page($0) }
        for page in try parts() + pages {
            for match in page.matches(of: /HEADROOM_[A-Z_]+/) {
                #expect(known.contains(String(match.0)), "\(match.0)")
            }
        }
    }
}
