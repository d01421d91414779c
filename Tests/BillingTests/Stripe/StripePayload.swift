import Billing
import JSON
import StoreEvents
import TestSupport
import Usage

/// A Stripe event with all of its fields, also unused ones.
struct StripePayload {
    static let user = "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11"
    static let subscription = "sub_1MowQVLkdIwHu7ixeRlqHVzs"
    static let price = "price_1MowQULkdIwHu7ixraBm864M"
    static let product = "prod_Na6dGcTsmU0I4R"
    static let start = TestSupport.at("2026-11-21T17:00:00Z")
    static let end = TestSupport.at("2026-12-21T17:00:00Z")
    /// The default instant of an event, within the period.
    static let at = TestSupport.at("2026-11-28T17:00:00Z")

    var event: [String: JSONValue]

    private init(_ type: String, at: Instant, object: [String: JSONValue], previous: [String: JSONValue]? = nil) {
        var data: [String: JSONValue] = ["object": .object(object)]
        if let previous { data["previous_attributes"] = .object(previous) }
        event = [
            "id": .string("evt_1NG8Du2eZvKYlo2CUI79vXWy"), "object": .string("event"), "type": .string(type),
            "created": .integer(at.secondsSince1970), "livemode": .bool(true), "api_version": .string("2024-06-20"),
            "pending_webhooks": .integer(1), "data": .object(data),
            "request": .object(["id": .string("req_1"), "idempotency_key": .string("ann@example.com")]),
        ]
    }

    /// An event of a subscription bought a week ago.
    static func subscription(
        _ type: String,
        _ status: String,
        at: Instant = StripePayload.at,
        previous: [String: JSONValue]? = nil,
        _ changes: [String: JSONValue] = [:]
    ) -> StripePayload {
        let object: [String: JSONValue] = [
            "id": .string(subscription), "object": .string("subscription"), "customer": .string("cus_Na6dX7aXxi11N4"),
            "status": .string(status), "start_date": .integer(start.secondsSince1970),
            "current_period_start": .integer(start.secondsSince1970),
            "current_period_end": .integer(end.secondsSince1970), "cancel_at": .null,
            "cancel_at_period_end": .bool(false), "canceled_at": .null, "ended_at": .null, "trial_start": .null,
            "trial_end": .null, "currency": .string("usd"), "default_payment_method": .string("pm_1"),
            "description": .string("Ann Example's"), "latest_invoice": .string("in_1MowQWLkdIwHu7ixuzkSPfKd"),
            "metadata": .object(["user_id": .string(user.uppercased()), "email": .string("ann@example.com")]),
            "items": .object([
                "object": .string("list"),
                "data": .array([
                    .object([
                        "id": .string("si_Na6dzxczY5fwHx"), "quantity": .integer(1),
                        "price": .object([
                            "id": .string(price), "product": .string(product),
                            "unit_amount": .integer(4_990), "nickname": .string("for Ann"),
                        ]),
                    ])
                ]),
            ]),
        ]
        return StripePayload(
            "customer.subscription.\(type)",
            at: at,
            object: object.merging(changes) { $1 },
            previous: previous
        )
    }

    static func line(_ start: Instant, _ end: Instant, _ changes: [String: JSONValue] = [:]) -> JSONValue {
        let line: [String: JSONValue] = [
            "id": .string("il_1"), "type": .string("subscription"), "proration": .bool(false),
            "amount": .integer(4_990), "description": .string("1 × Premium for Ann"),
            "period": .object(["start": .integer(start.secondsSince1970), "end": .integer(end.secondsSince1970)]),
            "price": .object(["id": .string(price), "product": .string(product)]),
        ]
        return .object(line.merging(changes) { $1 }.filter { $0.value != .null })
    }

    /// The invoice of the second period.
    static func invoice(_ type: String, at: Instant, _ changes: [String: JSONValue] = [:]) -> StripePayload {
        let object: [String: JSONValue] = [
            "id": .string("in_1MtHbELkdIwHu7ixl4OzzPMv"), "object": .string("invoice"),
            "customer": .string("cus_Na6dX7aXxi11N4"), "customer_email": .string("ann@example.com"),
            "customer_name": .string("Ann Example"), "amount_due": .integer(4_990), "attempt_count": .integer(1),
            "billing_reason": .string("subscription_cycle"), "subscription": .string(subscription),
            "subscription_details": .object(["metadata": .object(["user_id": .string(user)])]),
            "lines": .object(["data": .array([line(end, nextEnd)])]),
        ]
        return StripePayload(
            "invoice.\(type)",
            at: at,
            object: object.merging(changes) { $1 }.filter { $0.value != .null }
        )
    }

    static let nextEnd = TestSupport.at("2027-01-21T17:00:00Z")

    static func charge(_ changes: [String: JSONValue]) -> StripePayload {
        let object: [String: JSONValue] = [
            "id": .string("ch_3MmlLrLkdIwHu7ix0snN0B15"), "object": .string("charge"),
            "customer": .string("cus_Na6dX7aXxi11N4"), "refunded": .bool(true), "amount_refunded": .integer(4_990),
            "receipt_email": .string("ann@example.com"), "payment_intent": .string("pi_1"),
            "billing_details": .object(["name": .string("Ann Example")]),
        ]
        return StripePayload("charge.refunded", at: at, object: object.merging(changes) { $1 })
    }

    static func checkout(_ changes: [String: JSONValue] = [:]) -> StripePayload {
        let object: [String: JSONValue] = [
            "id": .string("cs_test_a11YYufWQzNY63zpQ6QSNRQhkUpVph4WRmzW0zWJO2znZKdVujZ0N0S22u"),
            "object": .string("checkout.session"), "customer": .string("cus_Na6dX7aXxi11N4"),
            "client_reference_id": .string(user.uppercased()), "mode": .string("subscription"),
            "subscription": .string(subscription), "metadata": .object([:]),
            "customer_details": .object(["email": .string("ann@example.com"), "name": .string("Ann Example")]),
        ]
        return StripePayload("checkout.session.completed", at: at, object: object.merging(changes) { $1 })
    }

    static func other(_ type: String) -> StripePayload {
        StripePayload(
            type,
            at: at,
            object: ["id": .string("ann"), "object": .string("thing"), "email": .string("ann@")]
        )
    }

    var body: [UInt8] { Array(JSONValue.object(event).jsonText.utf8) }

    /// Translates the stored payload.
    func notification(refundRevokes: Bool = true) throws(BillingError) -> BillingEvent {
        try StripeEvent.translate(payload: try StripeEvent.sanitized(body: body, refundRevokes: refundRevokes))
    }
}

extension JSONValue {
    static func seconds(_ instant: Instant) -> JSONValue { .integer(instant.secondsSince1970) }
}
