import Billing
import JSON

/// The fields of Stripe's objects that are stored: ids, dates and values of Stripe's enumerations. Names, addresses,
/// e-mail addresses, cards, metadata other than the user's id, and amounts other than a price are not stored.
///
/// Older and newer versions of Stripe's API have some fields in different places. Both are stored as received; the
/// translation handles the difference.
enum StripeAllowlist {
    indirect enum Shape: Sendable {
        case field(PayloadFields.Format)
        /// A field that no effect depends on. It is dropped if its format is unexpected.
        case informative(PayloadFields.Format)
        case object(Fields)
        case list(Fields)
        /// An id, or the object itself if it was expanded.
        case expandable(Fields)
        /// The customer's id, or the customer, of which only the id is stored.
        case customer
    }

    typealias Fields = KeyValuePairs<String, Shape>

    static let event: Fields = [
        "id": .field(.text), "type": .field(.word), "created": .field(.seconds), "livemode": .field(.flag),
        "api_version": .informative(.word),
    ]

    /// The fields of an event's object. If the event has no effects, that is only the object's type.
    static func object(of type: String) -> Fields {
        if type.hasPrefix("customer.subscription.") { return subscription }
        return switch type {
        case "invoice.paid", "invoice.payment_failed": invoice
        case "charge.refunded": charge
        case "checkout.session.completed", "checkout.session.async_payment_succeeded": checkoutSession
        default: ["object": .informative(.word)]
        }
    }

    private static let metadata: Fields = ["user_id": .field(.user)]
    private static let price: Fields = [
        "id": .field(.text), "product": .field(.reference), "unit_amount": .informative(.integer),
        "amount": .informative(.integer), "currency": .informative(.word),
    ]
    private static let period: Fields = ["start": .field(.seconds), "end": .field(.seconds)]

    private static let subscription: Fields = [
        "id": .field(.text), "object": .informative(.word), "customer": .customer, "status": .field(.word),
        "start_date": .field(.seconds), "billing_cycle_anchor": .field(.seconds),
        "current_period_start": .field(.seconds), "current_period_end": .field(.seconds),
        "trial_start": .field(.seconds), "trial_end": .field(.seconds),
        "cancel_at": .field(.seconds), "cancel_at_period_end": .field(.flag), "canceled_at": .informative(.seconds),
        "ended_at": .field(.seconds), "collection_method": .informative(.word), "currency": .informative(.word),
        "pause_collection": .object(["behavior": .informative(.word)]),
        "metadata": .object(metadata),
        "items": .object([
            "data": .list([
                "id": .informative(.text), "current_period_start": .field(.seconds),
                "current_period_end": .field(.seconds), "quantity": .informative(.integer),
                "price": .object(price), "plan": .object(price),
            ])
        ]),
        "latest_invoice": .expandable([
            "id": .field(.text), "billing_reason": .informative(.word), "status": .informative(.word),
            "next_payment_attempt": .field(.seconds),
        ]),
    ]

    private static let subscriptionDetails: Fields = [
        "subscription": .field(.reference), "metadata": .object(metadata),
    ]

    private static let invoice: Fields = [
        "id": .field(.text), "object": .informative(.word), "customer": .customer, "status": .informative(.word),
        "billing_reason": .field(.word), "payment_intent": .field(.reference), "attempt_count": .informative(.integer),
        "currency": .informative(.word),
        "next_payment_attempt": .field(.seconds), "subscription": .field(.reference),
        "subscription_details": .object(subscriptionDetails),
        "parent": .object(["type": .informative(.word), "subscription_details": .object(subscriptionDetails)]),
        "lines": .object([
            "data": .list([
                "type": .field(.word), "proration": .field(.flag), "period": .object(period),
                "quantity": .field(.integer),
                "price": .object(price), "plan": .object(price), "currency": .informative(.word),
                "pricing": .object([
                    "unit_amount_decimal": .informative(.word),
                    "price_details": .object(["price": .field(.reference), "product": .field(.reference)]),
                ]),
                "parent": .object([
                    "type": .field(.word), "subscription_item_details": .object(["proration": .field(.flag)]),
                ]),
            ])
        ]),
    ]

    /// `refunded` is true only for a full refund, so no amount has to be stored.
    private static let charge: Fields = [
        "id": .field(.text), "object": .informative(.word), "customer": .customer, "refunded": .field(.flag),
        "payment_intent": .informative(.reference), "invoice": .expandable(chargedInvoice),
        "metadata": .object([
            "user_id": .field(.user), "subscription_id": .field(.text), "headroom_product": .field(.text),
        ]),
    ]

    private static let chargedInvoice: Fields = [
        "id": .field(.text), "subscription": .field(.reference),
        "parent": .object(["subscription_details": .object(subscriptionDetails)]),
    ]

    private static let checkoutSession: Fields = [
        "id": .informative(.text), "object": .informative(.word), "customer": .customer,
        "client_reference_id": .field(.user), "mode": .field(.word), "status": .informative(.word),
        "payment_status": .field(.word), "payment_intent": .field(.reference), "invoice": .field(.reference),
        "subscription": .informative(.reference),
        "metadata": .object(["user_id": .field(.user), "headroom_product": .field(.text)]),
    ]

    /// - Throws: malformed, with the field's name.
    static func stored(_ fields: PayloadFields, _ shapes: Fields) throws(BillingError) -> [String: JSONValue] {
        var stored: [String: JSONValue] = [:]
        for (name, shape) in shapes {
            switch shape {
            case .field(let form): stored.merge(try fields.stored([name: form])) { $1 }
            case .informative(let form): stored.merge(try fields.stored([name: form], informative: [name])) { $1 }
            case .object(let members):
                guard let object = try fields.object(name) else { continue }
                stored[name] = .object(try self.stored(object, members))
            case .list(let members):
                var elements: [JSONValue] = []
                for element in try fields.objects(name) { elements.append(.object(try self.stored(element, members))) }
                stored[name] = .array(elements)
            case .expandable(let members):
                if case .object? = fields.members[name], let object = try fields.object(name) {
                    stored[name] = .object(try self.stored(object, members))
                } else {
                    stored.merge(try fields.stored([name: .text])) { $1 }
                }
            case .customer:
                if let id = try fields.reference(name) { stored[name] = .string(CustomerIdentity.stored(id)) }
            }
        }
        return stored
    }

    /// The names of the attributes that the event changed, without their values.
    ///
    /// - Returns: nil if the event has none.
    static func names(of attributes: JSONValue?) -> [String]? {
        guard case .object(let attributes)? = attributes, !attributes.isEmpty else { return nil }
        let names = attributes.keys.filter { name in
            (1...64).contains(name.utf8.count)
                && name.utf8.allSatisfy { (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x5F }
        }
        return Array(names.sorted().prefix(64))
    }
}
