import Foundation
import Testing
import Usage

@testable import Billing
@testable import StoreEvents

@Suite("A direct event")
struct DirectEventTests {
    private static let user = "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11"

    /// A valid event. Fields are replaced by JSON texts, and removed by empty ones.
    private func body(_ changes: [String: String] = [:]) -> [UInt8] {
        var fields = [
            "source": "\"chargebee\"", "id": "\"ev_1\"", "at": "\"2026-11-05T09:30:00Z\"", "kind": "\"purchased\"",
            "user": "\"\(DirectEventTests.user)\"", "transaction": "\"sub_42\"", "plan": "\"paid\"",
            "expires": "\"2026-12-05T09:30:00Z\"",
        ]
        fields.merge(changes) { $1 }
        let members = fields.sorted { $0.key < $1.key }.filter { !$0.value.isEmpty }
            .map { "\"\($0.key)\": \($0.value)" }
        return Array("{\(members.joined(separator: ", "))}".utf8)
    }

    @Test("names its user, its subscription and its plan")
    func good() throws {
        let event = try DirectEvent.parse(body: body(["anchor": "9", "environment": "\"production\""]))
        #expect(event.source.rawValue == "chargebee" && event.id == "ev_1")
        #expect(event.at == Instant("2026-11-05T09:30:00Z"))
        #expect(event.identities == [DirectEventTests.user])
        #expect(event.type == "purchased" && event.environment == .production)
        let effect = try #require(event.effects.first)
        #expect(event.effects.count == 1)
        #expect(effect.kind == .purchased && effect.transaction == "sub_42" && effect.plan == "paid")
        #expect(effect.expires == Instant("2026-12-05T09:30:00Z") && effect.anchorDay == 9)
    }

    @Test("has a price, as a text or a number", arguments: ["\"9.99\"", "9.99", "\"9.990\""])
    func price(json: String) throws {
        let event = try DirectEvent.parse(body: body(["price": json, "currency": "\"USD\""]))
        #expect(event.effects.first?.sale == BillingEffect.Sale(price: "9.99", currency: "USD"))
    }

    @Test("without a user belongs to the owner of its transaction")
    func withoutUser() throws {
        let event = try DirectEvent.parse(body: body(["user": "", "kind": "\"revoked\"", "plan": "", "expires": ""]))
        #expect(event.identities.isEmpty)
        #expect(event.customerNames == ["chargebee:transaction:sub_42"])
    }

    @Test("transfers the subscriptions of users to another user")
    func transfer() throws {
        let other = "00000000-0000-4000-8000-000000000002"
        let event = try DirectEvent.parse(
            body: body([
                "kind": "\"transferred\"", "from": "[\"\(DirectEventTests.user)\"]", "to": "[\"\(other)\"]", "user": "",
                "transaction": "", "plan": "", "expires": "",
            ])
        )
        #expect(event.effects == [.transferred(from: [DirectEventTests.user], to: [other])])
        #expect(event.users.map(\.description) == [other, DirectEventTests.user].sorted())
    }

    /// More users than an event may have.
    private static let many = "[" + Array(repeating: "\"\(user)\"", count: 101).joined(separator: ", ") + "]"

    private static let long = "\"\(String(repeating: "x", count: 65))\""

    /// The changed fields, and the field that the error names.
    private static let errors: [([String: String], String)] = [
        (["source": ""], "source"), (["source": "\"Chargebee\""], "source"), (["source": "\"stripe\""], "webhook"),
        (["source": "\"user\""], "source"), (["source": "5"], "source"), (["id": ""], "id"),
        (["id": "\"a\\u0000\""], "id"), (["at": ""], "at"),
        (["at": "\"yesterday\""], "at"), (["at": "\"2026-02-30\""], "at"), (["kind": ""], "kind"),
        (["kind": "\"bought\""], "kind"), (["kind": long], "kind"), (["environment": long], "environment"),
        (["id": "\"\""], "id"), (["kind": "\"merged\""], "kind"), (["kind": "\"linked\""], "kind"),
        (["user": "\"ann@example.com\""], "user"),
        (["transaction": ""], "transaction"), (["plan": ""], "plan"), (["plan": "\"Not a plan\""], "plan"),
        (["anchor": "32"], "anchor"), (["anchor": "0"], "anchor"),
        (["expires": "\"2026-11-01\"", "started": "\"2026-11-02\""], "expires"),
        (["kind": "\"renewed\"", "expires": ""], "expires"), (["kind": "\"extended\"", "expires": ""], "expires"),
        (["grace_until": "\"2026-12-09\""], "grace_until"), (["next_plan": "\"pro\""], "next_plan"),
        (["messages": "5"], "messages"), (["kind": "\"granted\"", "plan": "", "expires": ""], "messages"),
        (["kind": "\"granted\"", "messages": "1000001"], "messages"), (["kind": "\"transferred\""], "from"),
        (["kind": "\"transferred\"", "from": "[\"x\"]", "to": "[\"x\"]"], "from"), (["amount": "5"], "amount"),
        (["from": "[\"\(user)\"]"], "from"),
        (["kind": "\"transferred\"", "from": "[\"\(user)\"]", "to": "[\"\(user)\"]"], "expires"),
        (["kind": "\"transferred\"", "from": many, "to": "[\"\(user)\"]"], "100"),
        (["grace_until": "\"2026-12-09\"", "kind": "\"billing_retry\"", "plan": ""], "grace_until"),
        (["price": "\"9.99\""], "currency"), (["currency": "\"USD\""], "price"),
        (["price": "\"9,99\"", "currency": "\"USD\""], "price"),
        (["price": "\"1e3\"", "currency": "\"USD\""], "price"),
        (["price": "-1", "currency": "\"USD\""], "price"), (["price": "true", "currency": "\"USD\""], "price"),
        (["price": "9.99", "currency": "\"dollars\""], "currency"),
        (["price": "9.99", "currency": "\"USD\"", "kind": "\"cancelled\""], "price"),
    ]

    @Test("can be parsed again after one of its users was forgotten")
    func forgotten() throws {
        let name = "forgotten:" + String(repeating: "0a", count: 32)
        let event = try DirectEvent.parse(body: body(["user": "\"\(name)\""]))
        #expect(event.identities == [name] && event.users.isEmpty)
    }

    @Test("a field that is an empty text is absent")
    func emptyTexts() throws {
        let event = try DirectEvent.parse(
            body: body(["user": "\"\"", "environment": "\"\"", "next_plan": "\"\"", "product": "\"\""])
        )
        #expect(event.identities.isEmpty && event.environment == nil && event.effects.first?.nextPlan == nil)
    }

    @Test("a malformed field is an error that names it", arguments: errors)
    func malformed(changes: [String: String], name: String) throws {
        let error = #expect(throws: BillingError.self) { try DirectEvent.parse(body: body(changes)) }
        #expect(error?.kind == .malformed)
        #expect(error?.description.contains(name) == true, "\(error?.description ?? "")")
    }

    @Test("an unknown field is an error with its name, shortened and without control characters")
    func unknownField() {
        for name in ["a\\u0085mount", "a\u{9B}mount", "a\\u001bmount", "a\\u0000\u{7F}mount"] {
            let error = #expect(throws: BillingError.self) { try DirectEvent.parse(body: body([name: "1"])) }
            #expect(error?.description.contains("no field 'amount';") == true, "\(error?.description ?? "")")
        }
        let long = String(repeating: "a", count: 1_000)
        let error = #expect(throws: BillingError.self) { try DirectEvent.parse(body: body([long: "1"])) }
        #expect(error?.description.contains("no field '\(long.prefix(64))';") == true)
    }

    @Test("a body that is no JSON object is an error")
    func noObject() {
        for text in ["", "[]", "5", "{", "null"] {
            #expect(throws: BillingError.self, "\(text)") { try DirectEvent.parse(body: Array(text.utf8)) }
        }
    }
}
