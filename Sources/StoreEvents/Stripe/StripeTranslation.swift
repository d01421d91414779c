import Billing
import Usage

/// The effects of each type of Stripe event. Unknown types have none.
struct StripeTranslation {
    let kind: String
    /// The event's `created`, in whole seconds.
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
            if kind.hasPrefix("customer.subscription.") { return try StripeItem.all(of: object)[0].end }
            return switch kind {
            case "invoice.paid", "invoice.payment_failed": try StripeInvoice(object).lines.first?.end
            default: nil
            }
        }
    }

    /// The effects for each item of the subscription, or line of the invoice. One of these applies
    /// (`ProductMapping.resolve`).
    ///
    /// - Throws: `MissingField`, `UnknownSubscription`, or `BillingError` if a field has a wrong format.
    var choices: [[BillingEffect]] {
        get throws {
            switch kind {
            case "customer.subscription.created": try subscriptions.map { try $0.effects(.purchased) }
            case "customer.subscription.updated", "customer.subscription.resumed":
                try subscriptions.map { try $0.effects(.renewed) }
            case "customer.subscription.paused": try subscriptions.map { try $0.ended(.renewed, at: at) }
            case "customer.subscription.deleted": try subscriptions.map { try $0.cancelled() }
            case "invoice.paid": try paid(StripeInvoice(object))
            case "invoice.payment_failed": try failed(StripeInvoice(object))
            case "charge.refunded": [try refund()]
            // A session of a subscription only identifies the user of a customer, in the event's identities.
            case "checkout.session.completed", "checkout.session.async_payment_succeeded": [try soldOnce()]
            default: []
            }
        }
    }

    /// The subscription by each of its items, at least one.
    private var subscriptions: [StripeSubscription] {
        get throws(BillingError) {
            var found: [StripeSubscription] = []
            for item in try StripeItem.all(of: object) {
                found.append(try StripeSubscription(kind: kind, at: at, event: event, object: object, item: item))
            }
            return found
        }
    }

    private func paid(_ invoice: StripeInvoice) throws -> [[BillingEffect]] {
        guard let transaction = try invoice.subscription else { return [try invoice.soldOnce] }
        guard try invoice.isForRenewal else { return [] }
        let lines = try invoice.lines
        guard !lines.isEmpty else { throw MissingField(type: kind, name: "lines.data.period") }
        // A charge for a past period does not change the future.
        return try lines.filter { $0.end > at }.map { line in
            [try renewal(of: transaction, line, started: line.start, expires: line.end)]
        }
    }

    /// Stripe begins a period before it charges for it, so the paid time ends where the unpaid period begins.
    private func failed(_ invoice: StripeInvoice) throws -> [[BillingEffect]] {
        guard let transaction = try invoice.subscription, try invoice.isForRenewal else { return [] }
        let issue = BillingEffect(.gracePeriod, transaction: transaction, graceUntil: try invoice.nextAttempt)
        let choices = try invoice.lines.map { line in
            let end = line.end <= at ? line.end : min(line.start, at)
            var unpaid = try renewal(of: transaction, line, started: min(line.start, end), expires: end)
            unpaid.isUnpaid = true
            return [unpaid, issue]
        }
        return choices.isEmpty ? [[issue]] : choices
    }

    /// What a session of Checkout has sold without a subscription. If its metadata names no product, its invoice says
    /// what was sold.
    private func soldOnce() throws -> [BillingEffect] {
        guard try object.word("mode") == "payment", try object.word("payment_status") == "paid",
            let product = try object.object("metadata")?.text("headroom_product")
        else { return [] }
        // The name of the payment must be that of its invoice (`StripeInvoice.soldOnce`).
        var payment: String?
        if try (event.word("api_version") ?? "") >= StripeTranslation.invoicesWithoutIntent {
            payment = try object.text("invoice")
        }
        if payment == nil { payment = try object.text("payment_intent") }
        if payment == nil { payment = try object.text("id") }
        return [BillingEffect(.granted, transaction: payment, product: product, quantity: 1)]
    }

    /// Since this version of the API an invoice does not name its payment intent.
    private static let invoicesWithoutIntent = "2025-03-31"

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
        let metadata = try object.object("metadata")
        if let transaction = try metadata?.text("subscription_id") {
            return [BillingEffect(.revoked, transaction: transaction)]
        }
        if try metadata?.text("headroom_product") != nil { return try refundOfSale() }
        switch object.members["invoice"] {
        // The charge is explicitly without an invoice: it is for a one-time purchase.
        case .null?: return try refundOfSale()
        case .object?:
            guard let invoice = try object.object("invoice"),
                let subscription = try StripeInvoice(invoice).subscription
            else { return try refundOfSale() }
            return [BillingEffect(.revoked, transaction: subscription)]
        case .string?: throw UnknownSubscription(type: kind, what: "the invoice's id, and not its subscription")
        default: throw UnknownSubscription(type: kind, what: "no invoice")
        }
    }

    /// Refunds what was bought once, by the name of its payment. The shop may have sold something else: `quantity` says
    /// that the refund has no effect then.
    private func refundOfSale() throws -> [BillingEffect] {
        guard let payment = try object.text("payment_intent") else { return [] }
        return [BillingEffect(.revoked, transaction: payment, quantity: 1)]
    }
}

/// A refund that does not name its subscription. It is stored as failed, and an operator has to decide.
struct UnknownSubscription: TranslationProblem {
    let type: String
    let what: String

    var description: String {
        "\(type) has \(what): if it is of a subscription, cancel that in Stripe, which ends access here too; a charge "
            + "with subscription_id or headroom_product in its metadata, or its invoice expanded, is applied by itself"
    }
}
