import Billing
import JSON
import Usage

/// An item of a subscription: a price, and the period that is paid for it.
struct StripeItem {
    /// The id of the price, or of its product if there is no price; nil if the item has neither.
    private(set) var product: String?
    /// The price's product, by which the price may be mapped too.
    private(set) var priceProduct: String?
    let price: Price?
    /// The start of the period. In newer versions of the API each item has one, in older ones the subscription.
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

/// What an update changed in the items of a subscription. Of an array that changed, Stripe's `previous_attributes` has
/// all elements as they were.
struct StripeItemChange {
    /// Whether every item begins another period; an add-on with another interval does so alone. In older versions of
    /// the API the subscription has the period, and `previous_attributes` its start.
    let isNewPeriod: Bool
    /// Whether the prices and the starts of the periods are as they were; the quantity, the metadata or the end may
    /// differ.
    let isOfQuantityOnly: Bool

    private struct Item {
        var price: String?
        var start: Instant?
    }

    init(_ previous: JSONValue?, _ object: PayloadFields) {
        let before = StripeItemChange.items(try? PayloadFields(previous, path: "data.previous_attributes"))
        let now = StripeItemChange.items(object)
        let starts = before.compactMapValues(\.start)
        isNewPeriod = !starts.isEmpty && starts.allSatisfy { id, start in now[id]?.start.map { $0 != start } ?? false }
        isOfQuantityOnly =
            !before.isEmpty && before.keys == now.keys
            && before.allSatisfy { id, item in
                (item.price == nil || item.price == now[id]?.price)
                    && (item.start == nil || item.start == now[id]?.start)
            }
    }

    private static func items(_ subscription: PayloadFields?) -> [String: Item] {
        let items = (try? subscription?.lenient.object("items")?.objects("data")) ?? []
        let named = items.compactMap { item -> (String, Item)? in
            guard let id = try? item.text("id") else { return nil }
            let price = (try? item.object("price")) ?? (try? item.object("plan"))
            return (id, Item(price: try? price?.text("id"), start: try? item.seconds("current_period_start")))
        }
        return Dictionary(named) { $1 }
    }
}
