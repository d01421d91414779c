import JSON
import TestSupport
import Testing
import Usage

@testable import Billing
@testable import StoreEvents

@Suite("What was sold")
struct SaleTests {
    private func sale(_ event: BillingEvent) throws -> BillingEffect.Sale? {
        #expect(event.problem == nil)
        // Stored and read again, as a later reduction does.
        let replayed = try BillingEvent(source: event.source.rawValue, payload: Array(event.payload.jsonText.utf8))
        #expect(replayed == event)
        return try #require(event.effects.first).sale
    }

    @Test("comes from RevenueCat with the store and the price in the buyer's currency")
    func revenueCat() throws {
        for type in ["INITIAL_PURCHASE", "RENEWAL"] {
            let sold = try sale(RevenueCatPayload(type).notification())
            #expect(sold == BillingEffect.Sale(store: "app_store", price: "4.99", currency: "USD"))
        }
        let yen = RevenueCatPayload("RENEWAL", ["price_in_purchased_currency": .integer(1_200), "currency": "JPY"])
        #expect(try sale(yen.notification())?.price == "1200")
        let unknown = RevenueCatPayload("RENEWAL", ["price_in_purchased_currency": .null, "store": "PLAY_STORE"])
        #expect(try sale(unknown.notification()) == BillingEffect.Sale(store: "play_store"))
        // A refund has the negative price.
        let refund = RevenueCatPayload(
            "CANCELLATION",
            ["cancel_reason": "CUSTOMER_SUPPORT", "price_in_purchased_currency": .decimal(-4.99)]
        )
        #expect(try sale(refund.notification()) == BillingEffect.Sale(store: "app_store"))
    }

    @Test("is never renewed if it is a promotion or prepaid", arguments: ["PROMOTIONAL", "PREPAID", "NORMAL"])
    func promotion(period: String) throws {
        let payload = RevenueCatPayload("INITIAL_PURCHASE", ["period_type": .string(period)])
        #expect(try sale(payload.notification())?.renews == (period == "NORMAL" ? nil : false))
    }

    @Test("comes from the App Store in milliunits")
    func appStore() async throws {
        for type in ["SUBSCRIBED", "DID_RENEW"] {
            let sold = try sale(await AppStorePayload(type).notification())
            #expect(sold == BillingEffect.Sale(store: "app_store", price: "4.99", currency: "USD"))
        }
        let bare = AppStorePayload("DID_RENEW").with(transaction: ["price": .null, "currency": .null])
        #expect(try sale(await bare.notification()) == BillingEffect.Sale(store: "app_store"))
        let cancelled = AppStorePayload("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED")
        #expect(try sale(await cancelled.notification()) == BillingEffect.Sale(store: "app_store"))
        let once = BillingEffect.Sale(store: "app_store", price: "4.99", currency: "USD", renews: false)
        #expect(try sale(await AppStorePayload("ONE_TIME_CHARGE").notification()) == once)
    }

    @Test(
        "comes from Stripe in minor units",
        arguments: [("usd", "49.90"), ("jpy", "4990"), ("kwd", "4.990"), ("ugx", "49.9"), ("isk", "49.9")]
    )
    func stripe(currency: String, price: String) throws {
        let expected = BillingEffect.Sale(price: price, currency: currency.uppercased())
        let subscription = StripePayload.subscription("created", "active", ["currency": .string(currency)])
        #expect(try sale(subscription.notification()) == expected)
        func invoice(_ line: [String: JSONValue]) throws -> BillingEffect.Sale? {
            let line = StripePayload.line(StripePayload.end, StripePayload.nextEnd, line)
            let lines: JSONValue = .object(["data": .array([line])])
            return try sale(StripePayload.invoice("paid", at: StripePayload.end, ["lines": lines]).notification())
        }
        let id: JSONValue = .string(StripePayload.price)
        let old: JSONValue = .object(["id": id, "unit_amount": .integer(4_990), "currency": .string(currency)])
        #expect(try invoice(["price": old]) == expected)
        let new: JSONValue = .object(["unit_amount_decimal": "4990", "price_details": .object(["price": id])])
        #expect(try invoice(["price": .null, "pricing": new, "currency": .string(currency)]) == expected)
        let plan: JSONValue = .object(["id": id, "amount": .integer(4_990), "currency": .string(currency)])
        #expect(try invoice(["price": .null, "plan": plan]) == expected)
        #expect(try invoice([:]) == nil)
    }

    @Test(
        "has no price that is negative, too large or without a code of a currency",
        arguments: [(-1, "USD"), (1_000_000_000_000_001, "USD"), (1, nil), (1, "US"), (1, "US1"), (1, "EURO")]
            as [(Int64, String?)]
    )
    func invalid(thousandths: Int64, currency: String?) {
        #expect(Price(thousandths: thousandths, currency: currency) == nil)
        #expect(Price(units: Double(thousandths) / 1_000, currency: currency) == nil)
    }

    @Test(
        "has the decimal places of its currency, and more only if they are needed",
        arguments: [
            (0, "USD", "0.00"), (9_990, "USD", "9.99"), (10_000, "eur", "10.00"), (9_995, "USD", "9.995"),
            (5, "USD", "0.005"), (1_200_000, "JPY", "1200"), (1_200_500, "JPY", "1200.5"), (4_990, "KWD", "4.990"),
            (1_000_000_000_000_000, "USD", "1000000000000.00"),
        ] as [(Int64, String, String)]
    )
    func text(thousandths: Int64, currency: String, text: String) {
        #expect(Price(thousandths: thousandths, currency: currency)?.amount == text)
        #expect(Price(units: Double(thousandths) / 1_000, currency: currency)?.amount == text)
        #expect(Price(thousandths: thousandths, currency: currency)?.currency == currency.uppercased())
    }
}

extension [BillingEffect] {
    /// For tests about access, which a sale does not change.
    var withoutSales: [BillingEffect] {
        map { effect in
            var effect = effect
            effect.sale = nil
            return effect
        }
    }
}
