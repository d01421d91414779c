import JSON
import TestSupport
import Testing
import Usage

@testable import Billing
@testable import StoreEvents

@Suite("The stored payload of a Stripe event")
struct StripeStorageTests {
    private typealias Payload = StripePayload
    /// printf %s cus_Na6dX7aXxi11N4 | sha256sum
    private static let customer = "sha256:ae7e8e035b830d1a4ad359a55244aa9826e22f3289b4749bb7deecedf101146f"

    private static let payloads: [StripePayload] = [
        .subscription("created", "active"),
        .subscription("updated", "active", previous: ["metadata": .object(["email": .string("ann@example.com")])]),
        .invoice("paid", at: Payload.end), .invoice("payment_failed", at: Payload.end), .charge([:]), .checkout(),
        .other("customer.created"),
    ]

    @Test("has no name, address, total, card or customer id", arguments: payloads)
    func personalData(payload: StripePayload) throws {
        let stored = try StripeEvent.sanitized(body: payload.body, refundRevokes: true).jsonText
        for text in ["@", "Ann", "ann", "cus_", "pm_1", "req_", "amount_", "nickname", "description"] {
            #expect(!stored.contains(text), "\(text)")
        }
    }

    @Test("has the same translation as the original", arguments: payloads)
    func replay(payload: StripePayload) throws {
        let first = try payload.notification()
        #expect(try StripeEvent.translate(payload: Array(first.payload.jsonText.utf8)) == first)
    }

    @Test("has the user of the metadata, and the digest of the customer")
    func identities() throws {
        let both = [Payload.user, Self.customer]
        #expect(try Payload.subscription("created", "active").notification().identities == both)
        #expect(try Payload.invoice("paid", at: Payload.end).notification().identities == both)
        #expect(try Payload.charge([:]).notification().identities == [Self.customer])
        let expanded: JSONValue = .object(["id": .string("cus_Na6dX7aXxi11N4"), "email": .string("ann@example.com")])
        let payload = Payload.subscription("created", "active", ["customer": expanded])
        #expect(try payload.notification().identities == both)
    }

    @Test("has only the customer if the metadata has no UUID")
    func unknownUser() throws {
        for metadata: [String: JSONValue] in [[:], ["user_id": .string("ann@example.com")], ["user_id": .string("")]] {
            let payload = Payload.subscription("created", "active", ["metadata": .object(metadata)])
            let notification = try payload.notification()
            #expect(notification.identities == [Self.customer])
            #expect(!notification.payload.jsonText.contains("ann@"))
        }
    }

    @Test("links customer and user by a checkout's client_reference_id, or its metadata")
    func checkout() throws {
        let both = [Payload.user, Self.customer]
        #expect(try Payload.checkout().notification().identities == both)
        let metadata: JSONValue = .object(["user_id": .string(Payload.user)])
        let byMetadata = Payload.checkout(["client_reference_id": .null, "metadata": metadata])
        #expect(try byMetadata.notification().identities == both)
        let anonymous = Payload.checkout(["client_reference_id": .string("ann@example.com")])
        #expect(try anonymous.notification().identities == [Self.customer])
        #expect(try Payload.checkout(["customer": .null]).notification().identities == [Payload.user])
    }

    @Test("has the environment, live or test mode")
    func environments() throws {
        var payload = Payload.subscription("created", "active")
        payload.event["livemode"] = .bool(false)
        #expect(try payload.notification().environment == .sandbox)
    }

    @Test(
        "a field of a wrong format is an error that names the field and not its value",
        arguments: [
            ("created", .string("s3cret"), "whole number"), ("created", .null, "missing"),
            ("created", .integer(-1), "seconds"), ("created", .integer(.max), "seconds"),
            ("id", .integer(7), "text"), ("id", .null, "missing"), ("type", .string("s3\u{0}cret"), "control"),
            ("type", .null, "missing"), ("livemode", .string("s3cret"), "true or false"),
            ("livemode", .null, "missing"),
            ("data", .null, "missing"), ("data", .object([:]), "missing"), ("data", .array([]), "object"),
        ] as [(String, JSONValue, String)]
    )
    func malformed(name: String, value: JSONValue, text: String) {
        var payload = Payload.subscription("created", "active")
        payload.event[name] = value
        let error = #expect(throws: BillingError.self) { try payload.notification() }
        #expect(error?.kind == .malformed)
        #expect(error?.description.contains(name) == true && error?.description.contains(text) == true)
        #expect(error?.description.contains("s3cret") == false)
    }

    @Test("a subscription field of a wrong format is an error, unless it is informative")
    func malformedObjects() throws {
        for (name, value): (String, JSONValue) in [
            ("current_period_end", .string("soon")), ("items", .array([])), ("status", .integer(1)),
            ("cancel_at_period_end", .string("no")), ("customer", .integer(7)), ("metadata", .string("x")),
        ] {
            let error = #expect(throws: BillingError.self, "\(name)") {
                try Payload.subscription("created", "active", [name: value]).notification()
            }
            #expect(error?.description.contains("data.object.\(name)") == true)
        }
        let payload = Payload.subscription("created", "active", ["canceled_at": .string("soon")])
        #expect(try payload.notification().effects.map(\.kind) == [.purchased, .uncancelled])
    }

    @Test("a long type or status is cut at 64 characters, and has no effect")
    func longWords() throws {
        let (long, cut) = (String(repeating: "a", count: 65), String(repeating: "a", count: 64))
        let type = try Payload.other(long).notification()
        #expect(type.type == cut && type.effects.isEmpty && type.problem == nil)
        let status = try Payload.subscription("updated", long).notification()
        #expect(status.type == "customer.subscription.updated: \(cut)" && status.effects.isEmpty)
    }

    @Test("an event of a type without effects is accepted whatever its fields are")
    func unforeseenFields() throws {
        let object: [String: JSONValue] = [
            "items": .array([]), "customer": .array([]), "metadata": "x", "latest_invoice": .integer(1),
            "current_period_end": "soon",
        ]
        let event = try Payload.subscription("to_come", "active", object).notification()
        #expect(event.effects.isEmpty && event.problem == nil && event.identities.isEmpty)
        var thin = Payload.other("a.type.to.come")
        for data: JSONValue in [.null, "x", .object(["object": .array([])])] {
            thin.event["data"] = data
            #expect(try thin.notification().effects.isEmpty)
        }
    }

    @Test("a field that is an empty text is absent")
    func emptyTexts() throws {
        let event = try Payload.subscription("updated", "active", ["customer": ""]).notification()
        #expect(event.effects.map(\.kind) == [.renewed, .uncancelled] && event.problem == nil)
        let bare = try Payload.subscription("updated", "active", ["id": ""]).notification()
        #expect(bare.problem == "customer.subscription.updated without data.object.id")
    }
}
