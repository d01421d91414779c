import ArgumentParser
import Foundation
import HeadroomClient
import TestSupport
import Testing

@testable import chat_backend

@Suite("Settings of the chat")
struct ConfigurationTests {
    private func configuration(
        _ arguments: [String] = [],
        _ environment: [String: String] = [:]
    ) throws -> ChatConfiguration {
        try ChatConfiguration(ChatOptions.parse(arguments), environment: environment)
    }

    @Test("Without any it listens on this machine, asks the service there and answers by itself")
    func defaults() throws {
        let configuration = try configuration()
        #expect("\(configuration.listen)" == "127.0.0.1:8080")
        #expect(configuration.headroom.map(\.description) == ["127.0.0.1:6747"])
        #expect(configuration.whenUnreachable == .allow && configuration.holdTTL == .seconds(360))
        #expect(configuration.credentials == nil && configuration.store == nil && configuration.people.isEmpty)
        guard case .builtIn(pace: .milliseconds(40)) = configuration.model else {
            Issue.record("not the built-in model")
            return
        }
    }

    @Test("A flag wins over the environment, which wins over the default; what is empty is not there")
    func order() throws {
        let environment = [
            "CHAT_LISTEN": "0.0.0.0:0", "CHAT_HOLD_TTL": "30", "CHAT_HEADROOM": "a:1, b:2", "CHAT_PACE_MS": "",
            "CHAT_HOST": "chat.example",
        ]
        let read = try configuration([], environment)
        #expect("\(read.listen)" == "0.0.0.0:0" && read.holdTTL == .seconds(30))
        #expect(read.headroom.map(\.description) == ["a:1", "b:2"])
        #expect(read.hosts == ["chat.example", "0.0.0.0"])
        let flagged = try configuration(["--hold-ttl", "9", "--headroom", "c:3"], environment)
        #expect(flagged.holdTTL == .seconds(9) && flagged.headroom.map(\.description) == ["c:3"])
    }

    @Test("Where nothing is said, a message is held for longer than it takes to be answered and counted")
    func holdOutlastsAnswer() throws {
        let configuration = try configuration(["--model", "https://api.example/v1", "--model-name", "small"])
        guard case .openAI(let settings) = configuration.model else {
            Issue.record("not a model by its URL")
            return
        }
        let patience = configuration.patience
        #expect(configuration.holdTTL > settings.whole + patience.answer * 2 + patience.reading)
    }

    @Test("Secrets come from the environment and from files")
    func secrets() throws {
        #expect(try configuration([], ["HEADROOM_TOKEN": "headroom_x"]).credentials != nil)
        let store = try configuration(
            ["--webhook", "http://127.0.0.1:1/webhooks/revenuecat"],
            ["CHAT_WEBHOOK_AUTHORIZATION": "Bearer x"]
        ).store
        #expect(store?.authorization == "Bearer x")
        let model = try configuration(
            ["--model", "https://api.example/v1", "--model-name", "small"],
            ["CHAT_MODEL_KEY": "key"]
        ).model
        guard case .openAI(let settings) = model else {
            Issue.record("not a model by its URL")
            return
        }
        #expect(settings.key == "key" && settings.name == "small")
    }

    @Test(
        "What makes no sense is refused by its name",
        arguments: [
            (["--listen", "here"], "--listen"), (["--listen", "127.0.0.1:99999"], "--listen"),
            (["--headroom", ":1"], "--headroom"), (["--headroom-token-file", "/nonexistent"], "--headroom-token-file"),
            (["--webhook", "ftp://x"], "CHAT_WEBHOOK_AUTHORIZATION"),
            (["--when-unreachable", "maybe"], "--when-unreachable"),
            (["--people", "/nonexistent"], "--people"), (["--model", "gpt"], "--model-name"),
            (["--model", "gpt", "--model-name", "x"], "--model"), (["--pace-ms", "5001"], "--pace-ms"),
            (["--hold-ttl", "0"], "--hold-ttl"), (["--log-level", "loud"], "--log-level"),
        ]
    )
    func refused(arguments: [String], name: String) throws {
        let error = #expect(throws: ValidationError.self) { try configuration(arguments) }
        #expect(error?.message.contains(name) == true)
    }

    @Test(
        "People are read from a file, each once and with a name",
        arguments: [
            (#"[{"user": "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11", "name": "Ann", "about": "new"}]"#, true),
            (#"[{"user": "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11", "name": "Ann"}]"#, true), ("[]", true), ("{}", false),
            ("", false), (#"[{"user": "ann", "name": "Ann"}]"#, false),
            (#"[{"user": "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11", "name": ""}]"#, false),
            (
                #"""
                [{"user": "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11", "name": "Ann"},
                 {"user": "7F1C0A52-3A51-4A7E-9D55-0B6A3F1F7C11", "name": "Bob"}]
                """#, false
            ),
        ]
    )
    func people(text: String, isTaken: Bool) throws {
        let directory = try TemporaryDirectory()
        let file = directory.path + "/people.json"
        try text.write(toFile: file, atomically: true, encoding: .utf8)
        if isTaken {
            _ = try configuration(["--people", file])
        } else {
            #expect(throws: ValidationError.self) { try configuration(["--people", file]) }
        }
    }

    @Test(
        "An address to listen on names its port",
        arguments: ["127.0.0.1:0", "[::1]:8080", "0.0.0.0:65535", "chat:80"]
    )
    func addresses(text: String) throws {
        #expect("\(try configuration(["--listen", text]).listen)" == text)
    }

    @Test("The example imports the library, and nothing else of this repository")
    func imports() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let own = try FileManager.default.contentsOfDirectory(atPath: root.appending(path: "Sources").path)
        #expect(own.contains("HeadroomClient") && own.contains("Usage"))
        let example = root.appending(path: "Examples/ChatBackend").path
        let files = FileManager.default.enumerator(atPath: example)?.compactMap { $0 as? String } ?? []
        var imported: Set<String> = []
        for file in files where file.hasSuffix(".swift") {
            let text = try String(contentsOfFile: "\(example)/\(file)", encoding: .utf8)
            for match in text.matches(of: /import (?:\w+ )?(\w+)/) { imported.insert(String(match.1)) }
        }
        #expect(imported.intersection(own) == ["HeadroomClient"])
    }

    @Test("Each setting stands in the example's README with its default, and nothing else does")
    func documented() throws {
        let page = try String(
            contentsOf: URL(filePath: #filePath)
                .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
                .deletingLastPathComponent().appending(path: "Examples/ChatBackend/README.md"),
            encoding: .utf8
        )
        let documented = page.matches(of: /\| `(--[a-z-]+)/).map { String($0.1) }
        let help = ChatBackend.helpMessage(columns: 1_000)
        let flags = help.matches(of: /(--[a-z-]+) </).map { String($0.1) }
        #expect(Set(documented) == Set(flags) && !flags.isEmpty)
        for match in help.matches(of: /(--[a-z-]+) <[^\n]*\(default: ([^)\n]*)\)\n/) {
            let row = try #require(page.split(separator: "\n").first { $0.hasPrefix("| `\(match.1)") })
            #expect(row.contains("| `\(match.2)` |") || row.contains("| \(match.2) |"), "\(match.1) is \(match.2)")
        }
    }
}
