import Testing

@testable import Billing
@testable import LineProtocol

@Suite("The fuzzers' dictionaries")
struct DictionaryTests {
    @Test("The protocol's dictionary has every verb and every option")
    func protocolWords() throws {
        let lines = Set(try Corpus.lines(of: "dictionary.txt"))
        for verb in Verb.allCases { #expect(lines.contains("\"\(verb.rawValue)\""), "\(verb)") }
        for option in OptionName.allCases { #expect(lines.contains("\"\(option.rawValue)=\""), "\(option)") }
    }

    @Test("That of billing has every type of the stores' events and every kind of effect")
    func billingWords() throws {
        let lines = Set(try Corpus.lines(of: "dictionary-billing.txt"))
        for type in Stores.all.flatMap({ $0.eventTypes }) { #expect(lines.contains("\"\(type)\""), "\(type)") }
        for kind in BillingEffect.Kind.allCases { #expect(lines.contains("\"\(kind.rawValue)\""), "\(kind)") }
    }

    @Test("That of billing has every field of a direct event")
    func fields() throws {
        let lines = Set(try Corpus.lines(of: "dictionary-billing.txt"))
        for name in DirectEvent.fields { #expect(lines.contains("\"\\\"\(name)\\\":\""), "\(name)") }
    }
}
