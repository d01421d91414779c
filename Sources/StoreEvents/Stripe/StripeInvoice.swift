import Billing
import Usage

/// The invoice in an event, in the formats of older and newer versions of Stripe's API.
struct StripeInvoice {
    private let fields: PayloadFields

    init(_ fields: PayloadFields) {
        self.fields = fields
    }

    /// `invoice.subscription`, or in newer versions of the API `invoice.parent.subscription_details.subscription`.
    var subscription: String? {
        get throws(BillingError) {
            if let id = try fields.reference("subscription") { return id }
            return try details?.reference("subscription")
        }
    }

    /// The user in the subscription's metadata.
    var user: String? {
        get throws(BillingError) { try details?.object("metadata")?.user("user_id") }
    }

    private var details: PayloadFields? {
        get throws(BillingError) {
            if let details = try fields.object("parent")?.object("subscription_details") { return details }
            return try fields.object("subscription_details")
        }
    }

    /// What a manual invoice sells, such as the one of a session of Checkout.
    var soldOnce: [BillingEffect] {
        get throws(BillingError) {
            guard try fields.word("billing_reason") == "manual" else { return [] }
            var payment = try fields.text("payment_intent")
            if payment == nil { payment = try fields.text("id") }
            guard let payment else { return [] }
            var found: [BillingEffect] = []
            for line in try fields.object("lines")?.objects("data") ?? [] {
                guard let product = try product(of: line) else { continue }
                let quantity = max(1, Int(clamping: try line.integer("quantity") ?? 1))
                var effect = BillingEffect(.granted, transaction: payment, product: product, quantity: quantity)
                effect.alternateProduct = try alternateProduct(of: line)
                found.append(effect)
            }
            return found
        }
    }

    /// Whether it is for a new period. The subscription's own events cover a first period and a change within a period:
    /// they have more information, for instance about a trial.
    var isForRenewal: Bool {
        get throws(BillingError) {
            switch try fields.word("billing_reason") {
            case nil, "subscription_cycle", "subscription": true
            default: false
            }
        }
    }

    var nextAttempt: Instant? {
        get throws(BillingError) { try fields.seconds("next_payment_attempt") }
    }

    /// A line for a period.
    struct Line {
        var product: String?
        /// The price's product, by which the price may be mapped too.
        var alternateProduct: String?
        var price: Price?
        var start: Instant
        var end: Instant
    }

    /// The lines for periods. The one whose period ends last comes first.
    var lines: [Line] {
        get throws(BillingError) {
            var found: [Line] = []
            for line in try fields.object("lines")?.objects("data") ?? [] {
                guard try isForPeriod(line), let period = try line.object("period"),
                    let start = try period.seconds("start"), let end = try period.seconds("end")
                else { continue }
                let line = Line(
                    product: try product(of: line),
                    alternateProduct: try alternateProduct(of: line),
                    price: try price(of: line),
                    start: start,
                    end: end
                )
                found.insert(line, at: found.firstIndex { $0.end < end } ?? found.count)
            }
            return found
        }
    }

    /// Whether a line is for a period of the subscription: no proration, and no item that does not belong to it.
    private func isForPeriod(_ line: PayloadFields) throws(BillingError) -> Bool {
        let parent = try line.object("parent")
        if try line.flag("proration") == true { return false }
        if try parent?.object("subscription_item_details")?.flag("proration") == true { return false }
        if try line.word("type") == "invoiceitem" { return false }
        return try parent?.word("type") != "invoice_item_details"
    }

    private func alternateProduct(of line: PayloadFields) throws(BillingError) -> String? {
        if let product = try line.object("price")?.text("product") { return product }
        return try line.object("pricing")?.object("price_details")?.text("product")
    }

    private func price(of line: PayloadFields) throws(BillingError) -> Price? {
        var currency = try line.text("currency")
        if currency == nil { currency = try fields.text("currency") }
        if let price = try Price(ofStripe: line, currency: currency) { return price }
        // Newer versions of the API have a decimal text.
        let amount = try line.object("pricing")?.text("unit_amount_decimal").flatMap { Double($0) }
        return Price(stripe: amount, currency: currency)
    }

    private func product(of line: PayloadFields) throws(BillingError) -> String? {
        for name in ["price", "plan"] {
            if let price = try line.object(name), let id = try price.text("id") { return id }
        }
        let details = try line.object("pricing")?.object("price_details")
        if let price = try details?.text("price") { return price }
        return try details?.text("product")
    }
}

extension Price {
    /// - Parameters:
    ///   - item: an item of a subscription or an invoice. It has a price, or in older versions of the API a plan.
    ///   - currency: the currency of the subscription or the invoice, for a price that has none.
    init?(ofStripe item: PayloadFields?, currency: String?) throws(BillingError) {
        for name in ["price", "plan"] {
            guard let object = try item?.object(name) else { continue }
            var amount = try object.number("unit_amount")
            if amount == nil { amount = try object.number("amount") }
            if let price = Price(stripe: amount, currency: try object.text("currency") ?? currency) {
                self = price
                return
            }
        }
        return nil
    }
}
