import Foundation
import Testing

@testable import LineProtocol

@Suite("The fuzzers' dictionary")
struct DictionaryTests {
    @Test("It has every verb and every option")
    func words() throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "dictionary.txt")
        let lines = Set(try String(contentsOf: file, encoding: .utf8).split(separator: "\n"))
        for verb in Verb.allCases { #expect(lines.contains("\"\(verb.rawValue)\""), "\(verb)") }
        for option in OptionName.allCases { #expect(lines.contains("\"\(option.rawValue)=\""), "\(option)") }
    }
}
