import Logging
import Synchronization
import Testing

@testable import ServiceCore

@Suite("A log line")
struct LogfmtHandlerTests {
    private final class Lines: Sendable {
        private let written = Mutex<[String]>([])
        var all: [String] { written.withLock { $0 } }
        func append(_ line: String) { written.withLock { $0.append(line) } }
    }

    private func log(_ body: (inout Logger) -> Void) -> [String] {
        let lines = Lines()
        var logger = Logger(label: "test") { LogfmtHandler(label: $0, write: { lines.append($0) }) }
        body(&logger)
        return lines.all
    }

    @Test(
        "leaves plain values unchanged and quotes all others",
        arguments: [
            ("plain", "plain"), ("127.0.0.1:6747", "127.0.0.1:6747"), ("", "\"\""), ("two words", "\"two words\""),
            ("a=b", "\"a=b\""), ("say \"no\"", #""say \"no\"""#), (#"back\slash"#, #""back\\slash""#),
            ("Größe", "\"Größe\""), ("ok — 👍", "\"ok — 👍\""),
        ]
    )
    func quoting(value: String, expected: String) { #expect(LogfmtHandler.quoted(value) == expected) }

    @Test(
        "escapes characters that could end the line, move the cursor or change the direction of text",
        arguments: [
            ("\n", #"\n"#), ("\r", #"\u{d}"#), ("\r\n", #"\u{d}\n"#), ("\t", #"\u{9}"#), ("\0", #"\u{0}"#),
            ("\u{1B}[31m", #"\u{1b}[31m"#), ("\u{7F}", #"\u{7f}"#), ("\u{85}", #"\u{85}"#), ("\u{9B}", #"\u{9b}"#),
            ("\u{2028}", #"\u{2028}"#), ("\u{2029}", #"\u{2029}"#), ("\u{202E}", #"\u{202e}"#),
            ("\u{FEFF}", #"\u{feff}"#), ("\u{200B}", #"\u{200b}"#),
        ]
    )
    func escaping(value: String, expected: String) { #expect(LogfmtHandler.quoted(value) == "\"\(expected)\"") }

    @Test("has no control character, whatever is logged")
    func controlCharacters() {
        for value in (0...0x2FFF).compactMap(Unicode.Scalar.init) {
            let hasControlCharacter = LogfmtHandler.quoted("a\(Character(value))b").unicodeScalars.contains {
                $0.properties.generalCategory == .control || $0.value == 0x2028 || $0.value == 0x2029
            }
            #expect(!hasControlCharacter, "U+\(String(value.value, radix: 16))")
        }
    }

    @Test("is one line: time, level, message, and the metadata sorted by key")
    func line() {
        let lines = log { logger in
            logger[metadataKey: "lane"] = "1"
            logger[metadataKey: "kept"] = "logger's"
            logger.notice("came back", metadata: ["away": "1.5 s", "kept": "own\nline"])
        }
        #expect(lines.count == 1)
        let line = lines.first ?? ""
        // The call's value for "kept" replaces the logger's.
        #expect(line.hasPrefix("time="))
        #expect(line.hasSuffix(#" level=notice msg="came back" away="1.5 s" kept="own\nline" lane=1"# + "\n"))
        #expect(line.count { $0.isNewline } == 1)
    }

    @Test("is not written below the logger's level")
    func level() {
        let lines = log { logger in
            logger.debug("no")
            logger.logLevel = .debug
            logger.debug("yes")
        }
        #expect(lines.count == 1)
        #expect(lines.first?.contains("level=debug msg=yes") == true)
    }
}
