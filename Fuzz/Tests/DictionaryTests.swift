import Testing

@testable import Billing
@testable import StoreEvents

@Suite("The fuzzers' dictionaries")
struct DictionaryTests {
    @Test("The billing dictionary has every type of the stores' events and every kind of effect")
    func billingWords() throws {
        let lines = Set(try Corpus.lines(of: "dictionary-billing.txt"))
        for type in Stores.all.flatMap({ $0.eventTypes }) { #expect(lines.contains("\"\(type)\""), "\(type)") }
        for kind in BillingEffect.Kind.allCases { #expect(lines.contains("\"\(kind.rawValue)\""), "\(kind)") }
    }

    @Test("The billing dictionary has every field of a direct event")
    func fields() throws {
        let lines = Set(try Corpus.lines(of: "dictionary-billing.txt"))
        for name in DirectEvent.fields { #expect(lines.contains("\"\\\"\(name)\\\":\""), "\(name)") }
    }
}
