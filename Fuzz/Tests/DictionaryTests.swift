import Testing

@testable import LineProtocol

@Suite("The fuzzers' dictionary")
struct DictionaryTests {
    @Test("It has every verb and every option")
    func words() throws {
        let lines = Set(try Corpus.dictionaryLines())
        for verb in Verb.allCases { #expect(lines.contains("\"\(verb.rawValue)\""), "\(verb)") }
        for option in OptionName.allCases { #expect(lines.contains("\"\(option.rawValue)=\""), "\(option)") }
    }
}
