import Billing
import JSON
import StoreEvents
import TestSupport
import Usage

/// RevenueCat's documented sample event, with changes by tests.
struct RevenueCatPayload {
    static let user = "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11"
    static let at = TestSupport.at("2026-11-21T17:00:00.123Z")
    static let purchased = TestSupport.at("2026-11-21T16:59:58Z")
    static let expires = TestSupport.at("2026-12-21T16:59:58Z")

    var event: [String: JSONValue] = [
        "event_timestamp_ms": .integer(at.milliseconds), "product_id": .string("com.example.premium.monthly"),
        "period_type": .string("NORMAL"), "purchased_at_ms": .integer(purchased.milliseconds),
        "expiration_at_ms": .integer(expires.milliseconds), "environment": .string("PRODUCTION"),
        "entitlement_id": .null, "entitlement_ids": .array([.string("pro")]), "presented_offering_id": .null,
        "transaction_id": .string("123456789012346"), "original_transaction_id": .string("123456789012345"),
        "is_family_share": .bool(false), "country_code": .string("US"),
        "app_user_id": .string(user.uppercased()),
        "aliases": .array([.string("$RCAnonymousID:8069238d6049ce87cc529853916d624c")]),
        "original_app_user_id": .string("$RCAnonymousID:87c6049c58069238dce29853916d624c"),
        "currency": .string("USD"), "price": .decimal(4.99), "price_in_purchased_currency": .decimal(4.99),
        "subscriber_attributes": .object([
            "$email": .object([
                "updated_at_ms": .integer(1_662_955_084_635), "value": .string("first.last@example.com"),
            ])
        ]),
        "store": .string("APP_STORE"), "takehome_percentage": .decimal(0.7), "offer_code": .null,
        "id": .string("12345678-1234-1234-1234-123456789012"), "app_id": .string("1234567890"),
    ]

    init(_ type: String, _ changes: [String: JSONValue] = [:], without names: String...) {
        event["type"] = .string(type)
        event.merge(changes) { $1 }
        for name in names { event[name] = nil }
    }

    var body: [UInt8] {
        Array(JSONValue.object(["api_version": .string("1.0"), "event": .object(event)]).jsonText.utf8)
    }

    /// Translates the stored payload.
    func notification() throws(BillingError) -> BillingEvent {
        try RevenueCatEvent.translate(payload: try RevenueCatEvent.sanitized(body: body))
    }
}

extension Instant {
    var milliseconds: Int64 { microsecondsSince1970 / 1_000 }
}
