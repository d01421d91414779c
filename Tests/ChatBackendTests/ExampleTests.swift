import Foundation
import HeadroomClient
import TestSupport
import Testing

@testable import chat_backend

@Suite("The example as a program", .timeLimit(.minutes(10)))
struct ExampleTests {
    private static let root = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    @Test("The example imports HeadroomClient and no other module of this package")
    func imports() throws {
        let own = try FileManager.default.contentsOfDirectory(atPath: Self.root.appending(path: "Sources").path)
        #expect(own.contains("HeadroomClient") && own.contains("Usage"))
        let example = Self.root.appending(path: "Examples/ChatBackend").path
        var imported: Set<String> = []
        for file in try FileManager.default.contentsOfDirectory(atPath: example) where file.hasSuffix(".swift") {
            let text = try String(contentsOfFile: "\(example)/\(file)", encoding: .utf8)
            for match in text.matches(of: /import (?:\w+ )?(\w+)/) { imported.insert(String(match.1)) }
        }
        #expect(imported.intersection(own) == ["HeadroomClient"])
    }

    @Test("The README has every flag with its default, and no other")
    func documented() throws {
        let readme = Self.root.appending(path: "Examples/ChatBackend/README.md")
        let page = try String(contentsOf: readme, encoding: .utf8)
        let documented = page.matches(of: /\| `(--[a-z-]+)/).map { String($0.1) }
        let help = ChatBackend.helpMessage(columns: 1_000)
        let flags = help.matches(of: /(--[a-z-]+) </).map { String($0.1) }
        #expect(Set(documented) == Set(flags) && !flags.isEmpty)
        for match in help.matches(of: /(--[a-z-]+) <[^\n]*default: ([^;)\n]*)[;)]/) {
            let row = try #require(page.split(separator: "\n").first { $0.hasPrefix("| `\(match.1)") })
            #expect(row.contains("| `\(match.2)` |"), "\(match.1) is \(match.2)")
        }
    }

    @Test("The pages and their files open, and a user's name is not markup")
    func pages() async throws {
        let service = try await ServiceProcess.start()
        let directory = try TemporaryDirectory()
        let file = directory.path + "/people.json"
        let user = UserID.random
        try #"[{"user": "\#(user)", "name": "<b>Ann</b>", "about": "\"quoted\" & more"}]"#
            .write(toFile: file, atomically: true, encoding: .utf8)
        try await RunningChat.with(service, "--people", file) { chat in
            let first = try await chat.get("/")
            let text = String(buffer: try await first.body.collect(upTo: 100_000))
            #expect(text.contains("href=\"/chat/\(user)\"") && text.contains("&lt;b>Ann&lt;/b>"))
            #expect(text.contains("&quot;quoted&quot; &amp; more") && text.contains("A new user"))
            #expect(try await chat.page(user).text("name") == "<b>Ann</b>")
            for path in ["/chat/\(user)", "/assets/main.js", "/assets/style.css", "/assets/icon.svg"] {
                #expect(try await chat.get(path).status == .ok, "\(path)")
            }
            for path in ["/nowhere", "/chat/ann"] { #expect(try await chat.get(path).status == .notFound, "\(path)") }
            #expect(try await chat.get("/assets/../ChatBackend.swift").status == .badRequest)
        }
    }

    @Test("A file of users with an error is refused", arguments: ["", "{}", #"[{"user": "ann", "name": "Ann"}]"#])
    func people(text: String) throws {
        let directory = try TemporaryDirectory()
        let file = directory.path + "/people.json"
        try text.write(toFile: file, atomically: true, encoding: .utf8)
        #expect(throws: (any Error).self) { try Person.read(file: file) }
    }
}
