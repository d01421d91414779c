import JSON
import TestSupport
import Testing
import Usage

@testable import Billing
@testable import StoreEvents

/// Events in the form of Stripe's API since 2025-03-31: items have the periods, and the billing mode is flexible.
@Suite("A Stripe event of the present API")
struct StripeBillingCycleTests {
    private typealias Payload = StripePayload

    private static let soon = at("2026-12-01T17:00:00Z")

    private static func item(
        _ start: Instant = StripePayload.start,
        _ end: Instant = StripePayload.end,
        _ id: String = "si_1",
        price: String = StripePayload.price,
        quantity: Int64 = 1
    ) -> JSONValue {
        .object([
            "id": .string(id), "object": "subscription_item", "quantity": .integer(quantity),
            "current_period_start": .seconds(start), "current_period_end": .seconds(end),
            "price": .object(["id": .string(price), "product": .string(StripePayload.product)]),
        ])
    }

    private static func list(_ elements: JSONValue...) -> JSONValue {
        .object(["object": "list", "data": .array(elements), "has_more": .bool(false)])
    }

    private static let present: [String: JSONValue] = [
        "current_period_start": .null, "current_period_end": .null, "pause_collection": .null, "schedule": .null,
        "pending_update": .null, "billing_mode": .object(["type": "flexible"]), "billing_cycle_anchor_config": .null,
        "billing_cycle_anchor": .seconds(StripePayload.start), "items": list(item()),
    ]

    /// `renewed start..end`, and the same for each further item.
    private static func texts(_ event: BillingEvent) -> [String] {
        let names = [
            StripePayload.start: "start", soon: "soon", StripePayload.end: "end", StripePayload.nextEnd: "next",
        ]
        func name(_ instant: Instant?) -> String { instant.map { names[$0] ?? $0.text } ?? "" }
        return ([event.effects] + event.alternatives).joined().map { effect in
            "\(effect.kind.rawValue) \(name(effect.started))..\(name(effect.expires))"
                + (effect.isUnpaid == true ? " unpaid" : "")
        }
    }

    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var payload: StripePayload
        var effects: [String]

        /// - Parameter previous: nil for a new subscription.
        init(
            _ name: String,
            _ status: String = "active",
            _ changes: [String: JSONValue] = [:],
            previous: [String: JSONValue]?,
            _ effects: String = ""
        ) {
            testDescription = name
            payload = StripePayload.subscription(
                previous == nil ? "created" : "updated",
                status,
                previous: previous,
                present.merging(changes) { $1 }
            )
            payload.event["api_version"] = "2026-06-24.dahlia"
            self.effects = effects.split(separator: ", ").map(String.init)
        }
    }

    private static let trial: [String: JSONValue] = [
        "trial_start": .seconds(Payload.start), "trial_end": .seconds(soon),
    ]
    private static let longerTrial: [String: JSONValue] = [
        "trial_start": .seconds(Payload.start), "trial_end": .seconds(Payload.end),
        "billing_cycle_anchor": .seconds(Payload.end),
    ]
    private static let cancelled: [String: JSONValue] = [
        "cancel_at": .seconds(Payload.end), "cancel_at_period_end": .bool(true), "canceled_at": .seconds(Payload.at),
    ]
    private static let invoiced: [String: JSONValue] = ["latest_invoice": "in_0"]

    private static let paid: [Row] = [
        Row("is bought", previous: nil, "purchased start..end, uncancelled ..end"),
        Row("incomplete", "incomplete", previous: nil),
        Row("incomplete → active", previous: ["status": "incomplete"], "renewed start..end, uncancelled ..end"),
        Row(
            "trial",
            "trialing",
            trial.merging(["items": list(item(Payload.start, soon)), "billing_cycle_anchor": .seconds(soon)]) { $1 },
            previous: nil,
            "purchased start..soon, uncancelled ..soon"
        ),
        Row(
            "trial → paid",
            "active",
            trial.merging(["items": list(item(soon, Payload.nextEnd)), "billing_cycle_anchor": .seconds(soon)]) { $1 },
            previous: ["status": "trialing", "items": list(item(Payload.start, soon)), "latest_invoice": "in_0"],
            "renewed soon..next, uncancelled ..next"
        ),
        Row(
            "the next period",
            "active",
            ["items": list(item(Payload.end, Payload.nextEnd))],
            previous: ["items": list(item()), "latest_invoice": "in_0"],
            "renewed end..next, uncancelled ..next"
        ),
        Row(
            "billing_cycle_anchor now, with proration or without",
            "active",
            ["items": list(item(soon, Payload.nextEnd)), "billing_cycle_anchor": .seconds(soon)],
            previous: [
                "items": list(item()), "billing_cycle_anchor": .seconds(Payload.start), "latest_invoice": "in_0",
            ],
            "renewed soon..next, uncancelled ..next"
        ),
        Row(
            "billing_cycle_anchor_config: the first part of a month",
            "active",
            [
                "items": list(item(Payload.start, soon)), "billing_cycle_anchor": .seconds(soon),
                "billing_cycle_anchor_config": .object(["day_of_month": .integer(1)]),
            ],
            previous: nil,
            "purchased start..soon, uncancelled ..soon"
        ),
        Row(
            "another price with proration, also by a schedule's phase",
            previous: ["items": list(item(price: "price_0")), "plan": .object(["id": "price_0"])],
            "renewed start..end, uncancelled ..end"
        ),
        Row(
            "another price, and the difference invoiced at once",
            previous: ["items": list(item(price: "price_0")), "latest_invoice": "in_0"],
            "renewed start..end, uncancelled ..end"
        ),
        Row(
            "a schedule's phase that begins a period",
            "active",
            ["items": list(item(soon, Payload.nextEnd)), "schedule": "sub_sched_1"],
            previous: ["items": list(item(price: "price_0")), "latest_invoice": "in_0"],
            "renewed soon..next, uncancelled ..next"
        ),
    ]

    private static let unpaid: [Row] =
        [
            ("a schedule is attached", ["schedule": .null]), ("an invoice for usage, or a draft", invoiced),
            ("an update that waits for its payment", ["pending_update": .null, "latest_invoice": "in_0"]),
            ("another quantity", ["items": list(item(quantity: 2)), "quantity": .integer(2)]),
            ("another quantity, invoiced at once", ["items": list(item(quantity: 2)), "latest_invoice": "in_0"]),
            ("flexible billing instead of classic", ["billing_mode": .object(["type": "classic"])]),
        ].map { name, previous in Row(name, previous: previous, "product_changed ..end unpaid, uncancelled ..") }
        + [
            Row(
                "a longer trial",
                "trialing",
                longerTrial,
                previous: [
                    "trial_end": .seconds(soon), "billing_cycle_anchor": .seconds(soon),
                    "items": list(item(Payload.start, soon)),
                ],
                "extended ..end, product_changed start..end unpaid, uncancelled .."
            ),
            Row(
                "a cancellation at the period's end",
                "active",
                cancelled,
                previous: ["cancel_at": .null, "cancel_at_period_end": .bool(false), "canceled_at": .null],
                "product_changed start..end unpaid, cancelled .."
            ),
            Row(
                "a cancellation that is reversed",
                previous: cancelled,
                "product_changed start..end unpaid, uncancelled .."
            ),
            Row(
                "a cancellation on a day, which ends the period",
                "active",
                ["cancel_at": .seconds(soon), "items": list(item(Payload.start, soon))],
                previous: ["cancel_at": .null, "items": list(item())],
                "product_changed start..soon unpaid, cancelled .."
            ),
        ]

    @Test("of a subscription is a payment if a period begins, the price is another, or the status", arguments: paid)
    func payment(row: Row) throws {
        let event = try row.payload.notification()
        #expect(Self.texts(event) == row.effects && event.problem == nil)
        let anchor = event.payload["data"]?["object"]?["billing_cycle_anchor"]
        for effect in event.effects where effect.started != nil {
            #expect(effect.anchor.map { .integer($0.secondsSince1970) } == anchor)
        }
    }

    @Test("of any other change is no payment, and undoes no refund", arguments: unpaid)
    func change(row: Row) throws {
        let event = try row.payload.notification()
        #expect(Self.texts(event) == row.effects && event.problem == nil)
        #expect(try StripeEvent.translate(payload: event.payload) == event)
    }

    @Test("in which an add-on of another interval begins a period alone leaves the plan's period")
    func mixedIntervals() throws {
        func items(_ start: Instant, _ end: Instant) -> JSONValue {
            Self.list(Self.item(), Self.item(start, end, "si_2", price: "price_addon"))
        }
        let event = try Row(
            "mixed intervals",
            "active",
            ["items": items(Self.soon, Payload.nextEnd)],
            previous: ["items": items(Payload.start, Self.soon), "latest_invoice": "in_0"]
        ).payload.notification()
        #expect(
            Self.texts(event) == [
                "renewed soon..next", "uncancelled ..next", "renewed start..end", "uncancelled ..end",
            ]
        )
    }

    // MARK: Invoices

    private static func line(
        _ start: Instant,
        _ end: Instant,
        _ parent: String = "subscription_item_details",
        isProration: Bool = false
    ) -> JSONValue {
        .object([
            "period": .object(["start": .seconds(start), "end": .seconds(end)]), "quantity": .integer(1),
            "parent": .object(["type": .string(parent), parent: .object(["proration": .bool(isProration)])]),
            "pricing": .object([
                "type": "price_details", "unit_amount_decimal": "4990",
                "price_details": .object(["price": .string(Payload.price), "product": .string(Payload.product)]),
            ]),
        ])
    }

    private static let cycle = line(Payload.end, Payload.nextEnd)
    private static let credit = line(soon, Payload.end, isProration: true)

    @Test(
        "of a paid invoice is a payment for each line of the period that it begins, and for no other",
        arguments: [
            ("subscription_cycle", [cycle], ["renewed end..next"]),
            ("subscription_cycle", [credit, cycle, credit], ["renewed end..next"]),
            ("subscription_cycle", [line(soon, Payload.end, "invoice_item_details"), cycle], ["renewed end..next"]),
            // Usage is charged for the period that has ended.
            ("subscription_cycle", [line(Payload.start, Payload.end), cycle], ["renewed end..next"]),
            ("subscription_cycle", [cycle, cycle], ["renewed end..next", "renewed end..next"]),
            ("subscription_cycle", [credit], nil), ("subscription_update", [credit, credit], []),
            ("subscription_update", [cycle], []), ("subscription_create", [cycle], []),
            ("subscription_threshold", [cycle], []), ("quote_accept", [cycle], []), ("manual", [cycle], []),
            ("a_reason_to_come", [cycle], []),
        ] as [(String, [JSONValue], [String]?)]
    )
    func invoice(reason: String, lines: [JSONValue], effects: [String]?) throws {
        let details: JSONValue = .object(["subscription": .string(Payload.subscription), "metadata": .object([:])])
        var payload = Payload.invoice(
            "paid",
            at: Payload.end.advanced(bySeconds: 3_600),
            [
                "billing_reason": .string(reason), "subscription": .null, "subscription_details": .null,
                "parent": .object(["type": "subscription_details", "subscription_details": details]),
                "lines": .object(["data": .array(lines)]),
            ]
        )
        payload.event["api_version"] = "2026-06-24.dahlia"
        let event = try payload.notification()
        #expect(Self.texts(event) == effects ?? [])
        #expect((event.problem == nil) == (effects != nil))
    }
}
