import Billing
import Usage

/// An item of a subscription: a price, and the period that is paid for it.
struct StripeItem {
    /// The id of the price, or of its product if there is no price. Nil if the item has neither.
    private(set) var product: String?
    /// The price's product, by which the price may be mapped too.
    private(set) var priceProduct: String?
    let price: Price?
    /// Of the period. In newer versions of the API each item has one, in older ones the subscription.
    let start: Instant?
    let end: Instant?

    /// The items with a price, the one whose period ends last first. If none has a price, one item without it.
    static func all(of subscription: PayloadFields) throws(BillingError) -> [StripeItem] {
        var items: [StripeItem] = []
        for fields in try subscription.object("items")?.objects("data") ?? [] {
            let item = try StripeItem(fields, of: subscription)
            if item.product != nil { items.append(item) }
        }
        guard !items.isEmpty else { return [try StripeItem(nil, of: subscription)] }
        func order(_ item: StripeItem) -> Int64 { item.end?.secondsSince1970 ?? 0 }
        return items.sorted { order($0) > order($1) }
    }

    private init(_ item: PayloadFields?, of subscription: PayloadFields) throws(BillingError) {
        let dated = item?.has("current_period_end") == true ? item : subscription
        start = try dated?.seconds("current_period_start")
        end = try dated?.seconds("current_period_end")
        price = try Price(ofStripe: item, currency: subscription.text("currency"))
        for name in ["price", "plan"] {
            guard let price = try item?.object(name) else { continue }
            let productOfPrice = try price.text("product")
            if priceProduct == nil { priceProduct = productOfPrice }
            if product == nil { product = try price.text("id") }
            if product == nil { product = productOfPrice }
        }
    }
}
