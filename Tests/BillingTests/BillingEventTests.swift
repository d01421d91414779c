import Billing
import Foundation
import TestSupport
import Testing
import Usage

@Suite("A store notification")
struct BillingEventTests {
    @Test("is written with the names that the database reads, without what is absent")
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
        let notification = BillingEvent(
            source: .appstore,
            id: "E1",
            type: "DID_RENEW",
            at: at,
            environment: .sandbox,
            identities: ["u"],
            effects: [effect, .transferred(from: ["a"], to: ["b"]), .merged(["a", "b"])],
            payload: .object(["a/b": .array([.integer(1), .null, .bool(true), .string("é\"")])]),
            problem: "why"
        )
        let expected = """
            {"at":"2026-11-21T17:00:00.120Z","effects":[{"expires":"2026-12-21T17:00:00Z",\
            "grace_until":"2026-12-22T17:00:00.000001Z","identities":["a"],"kind":"grace_period","next_product":"q",\
            "period":"intro","product":"p","quantity":2,"started":"2026-11-21T17:00:00.120Z","transaction":"T1"},\
            {"from":["a"],"kind":"transferred","to":["b"]},{"identities":["a","b"],"kind":"merged"}],\
            "environment":"sandbox","id":"E1","identities":["u"],"payload":{"a/b":[1,null,true,"é\\""]},\
            "problem":"why","source":"appstore","type":"DID_RENEW"}
            """
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        #expect(String(decoding: try encoder.encode(notification), as: UTF8.self) == expected)
        #expect(try JSONDecoder().decode(BillingEvent.self, from: Data(expected.utf8)) == notification)
    }

    @Test(
        "has instants with as many digits as they need",
        arguments: [
            ("2026-11-24T09:30:00Z", "2026-11-24T09:30:00Z"), ("2026-11-24T09:30:00.001Z", "2026-11-24T09:30:00.001Z"),
            ("2026-11-24T09:30:00.1Z", "2026-11-24T09:30:00.100Z"),
            ("2026-11-24T09:30:00.000020Z", "2026-11-24T09:30:00.000020Z"),
        ]
    )
    func instants(text: String, written: String) throws {
        #expect(try #require(Instant(text)).preciseText == written)
    }
}
