import Billing
import Foundation
import TestSupport
import Testing
import Usage

@Suite("The effects of a billing event")
struct BillingEffectTests {
    @Test("are encoded with the names that the database reads, without absent fields")
    func json() throws {
        let at = TestSupport.at("2026-11-21T17:00:00.12Z")
        var effect = BillingEffect(
            .gracePeriod,
            transaction: "T1",
            product: "p",
            period: .intro,
            nextProduct: "q",
            started: at,
            expires: Instant("2026-12-21T17:00:00Z"),
            graceUntil: Instant("2026-12-22T17:00:00.000001Z"),
            quantity: 2
        )
        effect.identities = ["a"]
        let effects = [effect, .transferred(from: ["a"], to: ["b"]), .merged(["a", "b"])]
        let expected = """
            [{"expires":"2026-12-21T17:00:00Z","grace_until":"2026-12-22T17:00:00.000001Z","identities":["a"],\
            "kind":"grace_period","next_product":"q","period":"intro","product":"p","quantity":2,\
            "started":"2026-11-21T17:00:00.120Z","transaction":"T1"},\
            {"from":["a"],"kind":"transferred","to":["b"]},{"identities":["a","b"],"kind":"merged"}]
            """
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        #expect(String(decoding: try encoder.encode(effects), as: UTF8.self) == expected)
        #expect(try JSONDecoder().decode([BillingEffect].self, from: Data(expected.utf8)) == effects)
    }

    @Test(
        "have instants with as many digits as needed",
        arguments: [
            ("2026-11-24T09:30:00Z", "2026-11-24T09:30:00Z"), ("2026-11-24T09:30:00.001Z", "2026-11-24T09:30:00.001Z"),
            ("2026-11-24T09:30:00.1Z", "2026-11-24T09:30:00.100Z"),
            ("2026-11-24T09:30:00.000020Z", "2026-11-24T09:30:00.000020Z"),
        ]
    )
    func instants(text: String, written: String) throws { #expect(try #require(Instant(text)).preciseText == written) }
}
