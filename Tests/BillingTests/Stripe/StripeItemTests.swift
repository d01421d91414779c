import JSON
import TestSupport
import Testing
import Usage

@testable import Billing
@testable import StoreEvents

@Suite("A Stripe event of several items")
struct StripeItemTests {
    private typealias Payload = StripePayload

    private let soon = at("2026-12-01T17:00:00Z")
    private let hourLater = Payload.end.advanced(bySeconds: 3_600)

    @Test("has the period of its items if the subscription has none, of several the last")
    func items() throws {
        func item(_ end: Instant) -> JSONValue {
            .object([
                "current_period_start": .seconds(Payload.start), "current_period_end": .seconds(end),
                "price": .object(["id": .string(Payload.price), "product": .string(Payload.product)]),
            ])
        }
        let changes: [String: JSONValue] = [
            "current_period_start": .null, "current_period_end": .null,
            "items": .object(["data": .array([item(soon), item(Payload.end)])]),
        ]
        let notification = try Payload.subscription("updated", "active", changes).notification()
        let choices = [notification.effects] + notification.alternatives
        #expect(choices.map { $0.map(\.kind) } == [[.renewed, .uncancelled], [.renewed, .uncancelled]])
        #expect(choices.map { $0.map(\.expires) } == [[Payload.end, Payload.end], [soon, soon]])
        #expect(notification.products.count == 8)
    }

    @Test("has the effects for each line of an invoice, the one whose period ends last first")
    func lines() throws {
        let lines = [Payload.line(Payload.end, hourLater), Payload.line(Payload.end, Payload.nextEnd)]
        let changes: [String: JSONValue] = ["lines": .object(["data": .array(lines)])]
        let paid = try Payload.invoice("paid", at: Payload.end, changes).notification()
        #expect(([paid.effects] + paid.alternatives).map { $0[0].expires } == [Payload.nextEnd, hourLater])
        let failed = try Payload.invoice("payment_failed", at: hourLater, changes).notification()
        #expect(([failed.effects] + failed.alternatives).map { $0[0].expires } == [Payload.end, hourLater])
        #expect(failed.alternatives.allSatisfy { $0.count == 2 })
    }

    @Test(
        "of a sale has the name of the payment that its invoice has too",
        arguments: [("2024-06-20", "pi_1"), ("2025-03-31.basil", "in_1")]
    )
    func sale(version: String, payment: String) throws {
        var session = Payload.checkout([
            "mode": "payment", "payment_status": "paid", "payment_intent": "pi_1", "invoice": "in_1",
            "metadata": .object(["headroom_product": "pack"]),
        ])
        session.event["api_version"] = .string(version)
        var invoice = Payload.invoice(
            "paid",
            at: soon,
            [
                "id": "in_1", "billing_reason": "manual", "subscription": .null, "subscription_details": .null,
                "payment_intent": version < "2025" ? "pi_1" : .null,
                "lines": .object(["data": .array([Payload.line(soon, soon, ["quantity": .integer(3)])])]),
            ]
        )
        invoice.event["api_version"] = .string(version)
        let (sold, invoiced) = (try session.notification().effects, try invoice.notification().effects)
        #expect(sold.map(\.transaction) == [payment] && invoiced.map(\.transaction) == [payment])
        #expect(sold.map(\.product) == ["pack"] && sold.map(\.kind) == [.granted])
        #expect(invoiced.map(\.product) == [Payload.price] && invoiced.map(\.quantity) == [3])
        #expect(invoiced.map(\.alternateProduct) == [Payload.product])
    }

    @Test(
        "of a session that is not paid, or for a subscription, sells nothing",
        arguments: [["payment_status": "unpaid"], ["mode": "subscription"], ["metadata": .null]]
            as [[String: JSONValue]]
    )
    func noSale(changes: [String: JSONValue]) throws {
        let sold: [String: JSONValue] = [
            "mode": "payment", "payment_status": "paid", "metadata": .object(["headroom_product": "pack"]),
        ]
        #expect(try Payload.checkout(sold.merging(changes) { $1 }).notification().effects.isEmpty)
    }

    @Test("of a newer API tells from its items that a new period began", arguments: [true, false])
    func newPeriod(isNew: Bool) throws {
        func items(_ start: Instant) -> JSONValue {
            let item: [String: JSONValue] = [
                "id": "si_1", "current_period_start": .seconds(start), "current_period_end": .seconds(Payload.nextEnd),
                "price": .object(["id": .string(Payload.price)]),
            ]
            return .object(["data": .array([.object(item)])])
        }
        let changes: [String: JSONValue] = [
            "pause_collection": .object([:]), "current_period_end": .null, "items": items(Payload.end),
        ]
        let before = items(isNew ? Payload.start : Payload.end)
        let paused = try Payload.subscription("updated", "active", previous: ["items": before], changes).notification()
        #expect(paused.effects.first?.expires == (isNew ? Payload.end : Payload.nextEnd))
        #expect(try StripeEvent.translate(payload: paused.payload) == paused)
    }
}
