import JSON
import TestSupport
import Testing
import Usage

@testable import Billing
@testable import StoreEvents

@Suite("A Stripe event")
struct StripeEventTests {
    private typealias Payload = StripePayload

    private static func paid(
        _ kind: BillingEffect.Kind,
        _ period: BillingEffect.Period = .normal,
        started: Instant? = Payload.start,
        until: Instant = Payload.end
    ) -> BillingEffect {
        var effect = plain(kind, period, until: until)
        effect.started = started
        return effect
    }

    private static func unpaid(
        _ kind: BillingEffect.Kind,
        _ period: BillingEffect.Period = .normal,
        until: Instant
    ) -> BillingEffect {
        var effect = paid(kind, period, until: until)
        effect.isUnpaid = true
        return effect
    }

    private static func plain(
        _ kind: BillingEffect.Kind,
        _ period: BillingEffect.Period = .normal,
        until: Instant? = Payload.end,
        grace: Instant? = nil
    ) -> BillingEffect {
        var effect = BillingEffect(
            kind,
            transaction: Payload.subscription,
            product: Payload.price,
            period: period,
            expires: until,
            graceUntil: grace
        )
        effect.alternateProduct = Payload.product
        return effect
    }

    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var payload: StripePayload
        var effects: [BillingEffect]

        init(_ name: String, _ payload: StripePayload, _ effects: BillingEffect...) {
            testDescription = name
            self.payload = payload
            self.effects = effects
        }
    }

    private static let soon = at("2026-12-01T17:00:00Z")
    private static let trial: [String: JSONValue] = [
        "trial_start": .seconds(Payload.start), "trial_end": .seconds(soon), "current_period_end": .seconds(soon),
    ]
    private static let cancelling: [String: JSONValue] = ["cancel_at_period_end": .bool(true)]
    private static let uncancelled: [String: JSONValue] = ["cancel_at_period_end": .bool(true), "canceled_at": .null]

    private static let paused: [String: JSONValue] = [
        "pause_collection": .object(["behavior": .string("void"), "resumes_at": .null])
    ]
    private static func unextended(from start: Instant? = nil, until end: Instant = Payload.end) -> BillingEffect {
        var effect = plain(.productChanged, until: end)
        effect.started = start
        effect.isUnpaid = true
        return effect
    }

    private static let running: [Row] = [
        Row("created, active", .subscription("created", "active"), paid(.purchased), plain(.uncancelled)),
        Row(
            "created, trialing",
            .subscription("created", "trialing", trial),
            paid(.purchased, .trial, until: soon),
            plain(.uncancelled, .trial, until: soon)
        ),
        Row(
            "updated, trialing and cancelled",
            .subscription("updated", "trialing", trial.merging(cancelling) { $1 }),
            paid(.renewed, .trial, until: soon),
            plain(.cancelled, .trial, until: soon)
        ),
        Row("updated, active", .subscription("updated", "active"), paid(.renewed), plain(.uncancelled)),
        Row("resumed, active", .subscription("resumed", "active"), paid(.renewed), plain(.uncancelled)),
        Row(
            "updated, active until the period's end",
            .subscription("updated", "active", cancelling),
            paid(.renewed),
            plain(.cancelled)
        ),
        Row(
            "updated, active until a day",
            .subscription("updated", "active", ["cancel_at": .seconds(soon)]),
            paid(.renewed, until: soon),
            plain(.cancelled, until: soon)
        ),
        Row(
            "updated, cancelled without a payment: a refund stays",
            .subscription("updated", "active", previous: ["cancel_at_period_end": .bool(false)], cancelling),
            unextended(),
            plain(.cancelled, until: nil)
        ),
        Row(
            "updated, a cancellation is reversed",
            .subscription("updated", "active", previous: uncancelled),
            unextended(),
            plain(.uncancelled, until: nil)
        ),
        Row(
            "updated, the day of a cancellation is taken back",
            .subscription("updated", "active", previous: ["cancel_at": .seconds(soon)]),
            unextended(from: Payload.start),
            plain(.uncancelled, until: nil)
        ),
        Row(
            "updated, active by a payment",
            .subscription("updated", "active", previous: ["status": .string("past_due"), "metadata": .object([:])]),
            paid(.renewed),
            plain(.uncancelled)
        ),
        Row(
            "updated, the collection is paused: the paid time stays, and a refund",
            .subscription("updated", "active", previous: ["pause_collection": .null], paused),
            unextended(),
            plain(.cancelled, until: nil)
        ),
        Row(
            "updated, the next period of a paused collection",
            .subscription("updated", "active", previous: ["current_period_start": .integer(1)], paused),
            unextended(until: Payload.start),
            plain(.cancelled, until: nil)
        ),
        Row(
            "updated, the pause is over",
            .subscription("updated", "active", previous: ["pause_collection": paused["pause_collection"] ?? .null]),
            unextended(),
            plain(.uncancelled, until: nil)
        ),
        Row(
            "updated, another quantity",
            .subscription("updated", "active", previous: ["quantity": .integer(2)]),
            unextended(),
            plain(.uncancelled, until: nil)
        ),
    ]

    private static func invoiceWithAttempt(_ instant: Instant) -> [String: JSONValue] {
        ["latest_invoice": .object(["id": .string("in_1"), "next_payment_attempt": .seconds(instant)])]
    }

    private static let ending: [Row] = [
        Row("updated, past due", .subscription("updated", "past_due"), plain(.gracePeriod)),
        Row(
            "updated, past due with the invoice, in the unpaid period",
            .subscription(
                "updated",
                "past_due",
                at: Payload.start.advanced(bySeconds: 3_600),
                invoiceWithAttempt(soon)
            ),
            unpaid(.renewed, until: Payload.start),
            plain(.gracePeriod, until: nil, grace: soon)
        ),
        Row(
            "updated, past due with the invoice, after the period",
            .subscription("updated", "past_due", at: Payload.end, invoiceWithAttempt(Payload.nextEnd)),
            unpaid(.renewed, until: Payload.end),
            plain(.gracePeriod, until: nil, grace: Payload.nextEnd)
        ),
        Row(
            "updated, unpaid",
            .subscription("updated", "unpaid"),
            unpaid(.renewed, until: Payload.start),
            plain(.billingRetry, until: nil, grace: Payload.at)
        ),
        Row("created, incomplete", .subscription("created", "incomplete")),
        Row("updated, incomplete_expired", .subscription("updated", "incomplete_expired")),
        Row("updated, a status to come", .subscription("updated", "hibernating")),
        Row(
            "updated, paused",
            .subscription("updated", "paused"),
            unpaid(.renewed, until: Payload.at),
            plain(.expired, until: Payload.at)
        ),
        Row(
            "paused",
            .subscription("paused", "paused"),
            unpaid(.renewed, until: Payload.at),
            plain(.expired, until: Payload.at)
        ),
        Row(
            "deleted",
            .subscription("deleted", "canceled", at: soon, ["ended_at": .seconds(Payload.at)]),
            unpaid(.renewed, until: Payload.at),
            plain(.cancelled, until: nil),
            plain(.expired, until: Payload.at)
        ),
        Row(
            "updated, canceled, without an end",
            .subscription("updated", "canceled"),
            unpaid(.renewed, until: Payload.at),
            plain(.cancelled, until: nil),
            plain(.expired, until: Payload.at)
        ),
        Row(
            "deleted within the trial",
            .subscription("deleted", "canceled", trial.merging(["ended_at": .seconds(Payload.at)]) { $1 }),
            unpaid(.renewed, .trial, until: Payload.at),
            plain(.cancelled, until: nil),
            plain(.expired, .trial, until: Payload.at)
        ),
        Row("trial_will_end", .subscription("trial_will_end", "trialing", trial)),
    ]

    private static let hourLater = Payload.end.advanced(bySeconds: 3_600)
    private static var cut: BillingEffect {
        var effect = unpaid(.renewed, until: Payload.end)
        effect.started = Payload.end
        return effect
    }
    private static func issue(_ grace: Instant? = nil) -> BillingEffect {
        BillingEffect(.gracePeriod, transaction: Payload.subscription, graceUntil: grace)
    }
    private static let newer: [String: JSONValue] = [
        "subscription": .null, "subscription_details": .null,
        "parent": .object([
            "type": .string("subscription_details"),
            "subscription_details": .object([
                "subscription": .string(Payload.subscription), "metadata": .object(["user_id": .string(Payload.user)]),
            ]),
        ]),
        "lines": .object([
            "data": .array([
                Payload.line(
                    Payload.end,
                    Payload.nextEnd,
                    [
                        "type": .null, "proration": .null, "price": .null,
                        "pricing": .object([
                            "price_details": .object([
                                "price": .string(Payload.price), "product": .string(Payload.product),
                            ])
                        ]),
                        "parent": .object([
                            "type": .string("subscription_item_details"),
                            "subscription_item_details": .object(["proration": .bool(false)]),
                        ]),
                    ]
                )
            ])
        ]),
    ]
    private static let prorated: [String: JSONValue] = [
        "lines": .object(["data": .array([Payload.line(soon, Payload.end, ["proration": .bool(true)])])])
    ]

    private static let invoices: [Row] = [
        Row(
            "invoice.paid",
            .invoice("paid", at: hourLater),
            paid(.renewed, started: Payload.end, until: Payload.nextEnd)
        ),
        Row(
            "invoice.paid of a newer API",
            .invoice("paid", at: hourLater, newer),
            paid(.renewed, started: Payload.end, until: Payload.nextEnd)
        ),
        Row(
            "invoice.paid of a first period",
            .invoice("paid", at: soon, ["billing_reason": .string("subscription_create")])
        ),
        Row(
            "invoice.paid of an upgrade",
            .invoice("paid", at: soon, ["billing_reason": .string("subscription_update")])
        ),
        Row("invoice.paid of a period that is over", .invoice("paid", at: Payload.nextEnd)),
        Row("invoice.paid of no subscription", .invoice("paid", at: soon, ["subscription": .null])),
        Row(
            "invoice.payment_failed",
            .invoice("payment_failed", at: hourLater, ["next_payment_attempt": .seconds(Payload.nextEnd)]),
            cut,
            issue(Payload.nextEnd)
        ),
        Row(
            "invoice.payment_failed of a newer API, for the last time",
            .invoice("payment_failed", at: hourLater, newer.merging(["next_payment_attempt": .null]) { $1 }),
            cut,
            issue()
        ),
        Row(
            "invoice.payment_failed without a line of a period",
            .invoice("payment_failed", at: soon, prorated),
            issue()
        ),
        Row(
            "invoice.payment_failed of a first period",
            .invoice("payment_failed", at: soon, ["billing_reason": .string("subscription_create")])
        ),
    ]

    private static let revoked = BillingEffect(.revoked, transaction: Payload.subscription)
    private static let refundedSale = BillingEffect(.revoked, transaction: "pi_1", quantity: 1)
    private static let refunds: [Row] = [
        Row(
            "charge.refunded with its invoice",
            .charge(["invoice": .object(["id": .string("in_1"), "subscription": .string(Payload.subscription)])]),
            revoked
        ),
        Row(
            "charge.refunded with its invoice of a newer API",
            .charge(["invoice": .object(["parent": newer["parent"] ?? .null])]),
            revoked
        ),
        Row(
            "charge.refunded with the subscription in its metadata",
            .charge(["metadata": .object(["subscription_id": .string(Payload.subscription)])]),
            revoked
        ),
        Row("charge.refunded of no invoice", .charge(["invoice": .null]), refundedSale),
        Row(
            "charge.refunded of an invoice of no subscription",
            .charge(["invoice": .object(["id": .string("in_1")])]),
            refundedSale
        ),
        Row(
            "charge.refunded of a newer API, with the product in its metadata",
            .charge(["metadata": .object(["headroom_product": .string("pack")])]),
            refundedSale
        ),
        Row("charge.refunded of no invoice and no payment", .charge(["invoice": .null, "payment_intent": .null])),
        Row("charge.refunded in part", .charge(["invoice": .string("in_1"), "refunded": .bool(false)])),
    ]

    private static let acknowledged: [Row] =
        [Row("checkout.session.completed", .checkout())]
        + ["customer.created", "invoice.created", "charge.succeeded", "a_type.to_come"].map { Row($0, .other($0)) }

    @Test("has the effects in the table", arguments: running + ending + invoices + refunds + acknowledged)
    func table(row: Row) throws {
        let notification = try row.payload.notification()
        #expect(notification.effects.withoutSales == row.effects)
        #expect(notification.problem == nil)
        #expect(notification.source == .stripe)
        #expect(notification.id == "evt_1NG8Du2eZvKYlo2CUI79vXWy")
        #expect(notification.environment == .production)
    }

    @Test("has the product if the price has no id")
    func products() throws {
        let items: JSONValue = .object(["data": .array([.object(["plan": .object(["product": .string("prod_1")])])])])
        let notification = try Payload.subscription("updated", "active", ["items": items]).notification()
        #expect(notification.effects.map(\.product) == ["prod_1", "prod_1"])
    }

    @Test("a refund has the effect of the setting at its arrival, also when it is replayed under another")
    func refundSetting() throws {
        let charge = Payload.charge(["invoice": .object(["subscription": .string(Payload.subscription)])])
        let notification = try charge.notification(refundRevokes: false)
        #expect(notification.effects.isEmpty && notification.problem == nil)
        #expect(try StripeEvent.translate(payload: notification.payload) == notification)
    }

    @Test(
        "a refund without a subscription is stored, with a problem that says what to do",
        arguments: [["invoice": .string("in_1")], [:]] as [[String: JSONValue]]
    )
    func unknownRefund(changes: [String: JSONValue]) throws {
        let notification = try Payload.charge(changes).notification()
        #expect(notification.effects.isEmpty)
        #expect(notification.problem?.contains("cancel that in Stripe") == true)
        #expect((notification.problem?.count ?? 0) < 500)
    }

    @Test(
        "without a required field is stored, with the missing field as its problem",
        arguments: [
            (
                .subscription("updated", "active", ["current_period_end": .null]),
                "customer.subscription.updated without current_period_end"
            ),
            (
                .subscription("created", "active", ["items": .object(["data": .array([])])]),
                "customer.subscription.created without items.data.price.id"
            ),
            (
                .invoice("paid", at: soon, ["lines": .object(["data": .array([])])]),
                "invoice.paid without lines.data.period"
            ),
        ] as [(StripePayload, String)]
    )
    func missing(payload: StripePayload, problem: String) throws {
        let notification = try payload.notification()
        #expect(notification.problem == problem)
        #expect(notification.effects.isEmpty)
    }

    @Test("has a type made of type and the subscription's status")
    func types() throws {
        let notification = try Payload.subscription("updated", "past_due").notification()
        #expect(notification.type == "customer.subscription.updated: past_due")
        #expect(notification.typeClass == "customer.subscription.updated")
        #expect(try Payload.other("a_type.to_come").notification().typeClass == "other")
    }

    @Test("is ordered by its second, then by its period's end, then by its type")
    func order() throws {
        let later: [String: JSONValue] = ["current_period_end": .seconds(Payload.nextEnd)]
        let payloads = [
            Payload.checkout(), .subscription("created", "active"), .subscription("updated", "past_due"),
            .subscription("deleted", "canceled"), .subscription("created", "active", later),
            .subscription("updated", "active", at: Payload.at.advanced(bySeconds: 1)),
        ]
        let instants = try payloads.map { try $0.notification().at }
        for (earlier, later) in zip(instants, instants.dropFirst()) { #expect(earlier < later) }
        #expect(instants[0] == Payload.at)
        #expect(instants[4].secondsSince1970 == Payload.at.secondsSince1970)
        // 23 days of 24 hours, and the rank of created.
        #expect(instants[1].microsecondsSince1970 == Payload.at.microsecondsSince1970 + 16 * 23 * 24 + 1)
        let never = at("9999-12-31T00:00:00Z")
        let last = StripeEventOrder.instant(of: "customer.subscription.deleted", created: Payload.at, periodEnd: never)
        #expect(last.secondsSince1970 == Payload.at.secondsSince1970)
        let past = StripeEventOrder.instant(of: "charge.refunded", created: Payload.at, periodEnd: Payload.start)
        #expect(past == Payload.at)
    }
}
