import Billing
import Usage

/// The effects of each type of Stripe event. Unknown types have none.
struct StripeTranslation {
    let kind: String
    /// `created`, in whole seconds.
    let at: Instant
    private let event: PayloadFields
    private let object: PayloadFields

    init(kind: String, at: Instant, event: PayloadFields, object: PayloadFields) {
        self.kind = kind
        self.at = at
        self.event = event
        self.object = object
    }

    /// The end of the event's period, for the order of events; nil if it has none.
    var periodEnd: Instant? {
        get throws(BillingError) {
            if kind.hasPrefix("customer.subscription.") { return try subscription.period.end }
            return switch kind {
            case "invoice.paid", "invoice.payment_failed": try StripeInvoice(object).line?.end
            default: nil
            }
        }
    }

    /// - Throws: `MissingField`, `UnknownSubscription`, or `BillingError` if a field has a wrong format.
    var effects: [BillingEffect] {
        get throws {
            switch kind {
            case "customer.subscription.created": try subscription.effects(.purchased)
            case "customer.subscription.updated", "customer.subscription.resumed": try subscription.effects(.renewed)
            case "customer.subscription.paused": try subscription.ended(.renewed, at: at)
            case "customer.subscription.deleted": try subscription.deleted()
            case "invoice.paid": try paid(StripeInvoice(object))
            case "invoice.payment_failed": try failed(StripeInvoice(object))
            case "charge.refunded": try refund()
            // Only identifies the user of a customer, in the event's identities.
            case "checkout.session.completed": []
            default: []
            }
        }
    }

    private var subscription: StripeSubscription {
        get throws(BillingError) {
            try StripeSubscription(kind: kind, at: at, event: event, object: object)
        }
    }

    private func paid(_ invoice: StripeInvoice) throws -> [BillingEffect] {
        guard let transaction = try invoice.subscription, try invoice.isForRenewal else { return [] }
        guard let line = try invoice.line else { throw MissingField(type: kind, name: "lines.data.period") }
        // A charge for a past period does not change the future.
        guard line.end > at else { return [] }
        return [try renewal(of: transaction, line, started: line.start, expires: line.end)]
    }

    /// Stripe begins a period before it charges for it, so the paid time ends where the unpaid period begins.
    private func failed(_ invoice: StripeInvoice) throws -> [BillingEffect] {
        guard let transaction = try invoice.subscription, try invoice.isForRenewal else { return [] }
        let issue = BillingEffect(.gracePeriod, transaction: transaction, graceUntil: try invoice.nextAttempt)
        guard let line = try invoice.line else { return [issue] }
        let end = line.end <= at ? line.end : min(line.start, at)
        return [try renewal(of: transaction, line, started: min(line.start, end), expires: end), issue]
    }

    private func renewal(
        of transaction: String,
        _ line: StripeInvoice.Line,
        started: Instant,
        expires: Instant
    ) throws -> BillingEffect {
        guard let product = line.product else { throw MissingField(type: kind, name: "lines.data.price.id") }
        var effect = BillingEffect(
            .renewed,
            transaction: transaction,
            product: product,
            period: .normal,
            started: started,
            expires: expires
        )
        effect.alternateProduct = line.alternateProduct
        if let price = line.price { effect.sale = BillingEffect.Sale(price) }
        return effect
    }

    /// A partial refund has no effect.
    private func refund() throws -> [BillingEffect] {
        guard try object.flag("refunded") == true, try event.flag("refund_revokes") == true else { return [] }
        if let transaction = try object.object("metadata")?.text("subscription_id") {
            return [BillingEffect(.revoked, transaction: transaction)]
        }
        switch object.members["invoice"] {
        // Explicitly without an invoice: a one-time purchase.
        case .null?: return []
        case .object?:
            guard let invoice = try object.object("invoice"),
                let subscription = try StripeInvoice(invoice).subscription
            else { return [] }
            return [BillingEffect(.revoked, transaction: subscription)]
        case .string?: throw UnknownSubscription(type: kind, what: "the invoice's id, and not its subscription")
        default: throw UnknownSubscription(type: kind, what: "no invoice")
        }
    }
}

/// A refund that does not name its subscription. It is stored as failed, and an operator has to decide.
struct UnknownSubscription: TranslationProblem {
    let type: String
    let what: String

    var description: String {
        "\(type) has \(what): if it is of a subscription, cancel that in Stripe, which ends access here too; a charge that "
            + "has subscription_id in its metadata, or its invoice expanded, is applied by itself"
    }
}
