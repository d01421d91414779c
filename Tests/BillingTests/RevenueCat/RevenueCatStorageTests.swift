import JSON
import TestSupport
import Testing
import Usage

@testable import Billing
@testable import StoreEvents

@Suite("The stored payload of a RevenueCat event")
struct RevenueCatStorageTests {
    @Test("has no name, address or country, no price in another currency, and no id that is not a UUID")
    func personalData() throws {
        let payload = RevenueCatPayload(
            "INITIAL_PURCHASE",
            [
                "app_user_id": .string("ann@example.com"), "some_field_to_come": .string("Ann Example"),
                "price": .decimal(5.55),
            ]
        )
        let stored = try RevenueCatEvent.sanitized(body: payload.body).jsonText
        for text in ["@", "Ann", "attributes", "5.55", "\"US\"", "RCAnonymousID", "percentage", "to_come"] {
            #expect(!stored.contains(text), "\(text)")
        }
        for text in ["\"sha256:", "\"123456789012345\"", "com.example.premium.monthly", "1.0"] {
            #expect(stored.contains(text), "\(text)")
        }
    }

    @Test("has the same translation as the original")
    func replay() throws {
        for type in ["INITIAL_PURCHASE", "CANCELLATION", "BILLING_ISSUE", "TRANSFER", "TEST"] {
            let first = try RevenueCatPayload(type).notification()
            let again = try RevenueCatEvent.translate(payload: Array(first.payload.jsonText.utf8))
            #expect(again == first)
        }
    }

    @Test(
        "a field of a wrong format is an error that names the field and not its value",
        arguments: [
            ("event_timestamp_ms", .string("2026-11-21"), "whole number"), ("event_timestamp_ms", .null, "missing"),
            ("event_timestamp_ms", .decimal(0.5), "whole number"), ("event_timestamp_ms", .integer(-1), "milliseconds"),
            ("expiration_at_ms", .integer(.max), "milliseconds"), ("expiration_at_ms", .bool(true), "whole number"),
            ("id", .integer(7), "text"), ("id", .string(""), "missing"), ("id", .null, "missing"),
            ("id", .string(String(repeating: "x", count: 256)), "1 to 255"), ("type", .array([]), "text"),
            ("type", .string("REN\u{0}EWAL"), "control"), ("app_user_id", .integer(17), "text"),
            ("aliases", .string("secret"), "array"), ("aliases", .array([.integer(1)]), "text"),
            ("is_trial_conversion", .string("true"), "true or false"), ("product_id", .object([:]), "text"),
            ("cancel_reason", .string("secret\u{7F}"), "control"),
        ] as [(String, JSONValue, String)]
    )
    func wrongForms(name: String, value: JSONValue, what: String) throws {
        let payload = RevenueCatPayload("RENEWAL", [name: value])
        do {
            _ = try RevenueCatEvent.sanitized(body: payload.body)
            Issue.record("\(name) was taken")
        } catch {
            #expect(error.kind == .malformed)
            #expect(error.description.contains("event.\(name)"))
            #expect(error.description.contains(what))
            #expect(!error.description.contains("secret"))
        }
    }

    @Test("an informative field of a wrong format is dropped")
    func informativeFields() throws {
        let body = #"""
            {"api_version":2,"event":{"id":"a","type":"TEST","event_timestamp_ms":1767225600000,"store":7,"renewal_number":"x",
            "price_in_purchased_currency":"4.99","currency":5,"app_id":["y"],"is_family_share":"no","aliases":["", "b"]}}
            """#
        let payload = try RevenueCatEvent.sanitized(body: Array(body.utf8))
        let stored = try #require(payload["event"])
        for name in ["store", "renewal_number", "app_id", "is_family_share", "price_in_purchased_currency", "currency"]
        { #expect(stored[name] == nil) }
        #expect(payload["api_version"] == nil)
        #expect(try RevenueCatEvent.translate(payload: payload).identities.count == 1)
    }

    @Test(
        "a body that is no event is an error",
        arguments: [
            "", "[]", "\"event\"", "{}", #"{"event":null}"#, #"{"event":[]}"#, #"{"event":"x"}"#, #"{"event":{}}"#,
        ]
    )
    func wrongBodies(text: String) {
        #expect(throws: BillingError.self) { try RevenueCatEvent.sanitized(body: Array(text.utf8)) }
    }

    @Test("a cut or changed body is an error, or its payload has a stable translation")
    func mutations() throws {
        let seed = SeededGenerator.newSeed()
        print("seed \(seed)")
        var random = SeededGenerator(seed: seed)
        for type in ["INITIAL_PURCHASE", "CANCELLATION", "TEMPORARY_ENTITLEMENT_GRANT", "TRANSFER"] {
            let body = RevenueCatPayload(type, ["transferred_from": .array(["a"]), "transferred_to": .array(["b"])])
                .body
            for _ in 0..<1_000 {
                var changed = Array(body.prefix(Int.random(in: body.count - 20...body.count + 80, using: &random)))
                for _ in 0..<Int.random(in: 1...4, using: &random) {
                    changed[Int.random(in: 0..<changed.count, using: &random)] = UInt8.random(
                        in: 0...255,
                        using: &random
                    )
                }
                guard let stored = try? RevenueCatEvent.sanitized(body: changed) else { continue }
                let notification = try RevenueCatEvent.translate(payload: Array(stored.jsonText.utf8))
                #expect(notification.effects.isEmpty || notification.problem == nil)
                #expect(!"\(notification)".contains("example.com"))
            }
        }
    }

    @Test("has at most 100 aliases")
    func manyAliases() throws {
        let aliases = (0..<5_000).map { JSONValue.string("customer \($0)") }
        let notification = try RevenueCatPayload("RENEWAL", ["aliases": .array(aliases)]).notification()
        #expect(notification.identities.count == 102)
    }
}

extension JSONValue: ExpressibleByStringLiteral {
    public init(stringLiteral value: String) { self = .string(value) }
}
