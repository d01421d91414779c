import Billing
import JSON
import Usage

/// Stripe's events (https://docs.stripe.com/api/events), as they are stored, and translated.
public enum StripeEvent: StoreAdapter {
    public static let source = BillingEvent.Source.stripe
    /// The types are those of subscriptions (https://docs.stripe.com/billing/subscriptions/webhooks) and of refunds.
    public static let typesWithEffects: Set = [
        "charge.refunded", "checkout.session.async_payment_succeeded", "checkout.session.completed",
        "customer.subscription.created",
        "customer.subscription.deleted", "customer.subscription.paused", "customer.subscription.resumed",
        "customer.subscription.updated", "invoice.paid", "invoice.payment_failed",
    ]
    public static let eventTypes = typesWithEffects.union([
        "charge.dispute.closed", "charge.dispute.created", "charge.failed", "charge.succeeded",
        "checkout.session.async_payment_failed", "checkout.session.expired", "credit_note.created", "customer.created",
        "customer.deleted", "customer.subscription.pending_update_applied",
        "customer.subscription.pending_update_expired", "customer.subscription.trial_will_end", "customer.updated",
        "invoice.created", "invoice.deleted", "invoice.finalization_failed", "invoice.finalized",
        "invoice.marked_uncollectible", "invoice.overdue", "invoice.overpaid", "invoice.payment_action_required",
        "invoice.payment_attempt_required", "invoice.payment_succeeded", "invoice.sent", "invoice.upcoming",
        "invoice.updated", "invoice.voided", "invoice.will_be_due", "invoice_payment.paid",
        "payment_intent.payment_failed", "payment_intent.succeeded", "refund.created", "refund.failed",
        "refund.updated", "subscription_schedule.aborted", "subscription_schedule.canceled",
        "subscription_schedule.completed", "subscription_schedule.created", "subscription_schedule.expiring",
        "subscription_schedule.released", "subscription_schedule.updated",
    ])

    /// - Parameters:
    ///   - body: the body of a verified request.
    ///   - refundRevokes: the setting stripe-refund-revokes. It is stored with a refund, so that a replay has the same
    ///     effect after the setting was changed.
    ///   - namespace: the namespace of users' names; nil where users are UUIDs only.
    /// - Returns: the payload to store, which `translate` accepts.
    /// - Throws: malformed or too large, with the field's name.
    public static func sanitized(
        body: [UInt8],
        refundRevokes: Bool,
        in namespace: UserNamespace? = nil
    ) throws(BillingError) -> JSONValue {
        let received = try PayloadFields(try JSONValue(received: body), path: "", in: namespace)
        let type = try received.required("type", PayloadFields.word)
        let event = readable(received, type: type)
        var stored = try StripeAllowlist.stored(event, StripeAllowlist.event)
        let data = try event.requiredObject("data")
        let object = try data.requiredObject("object")
        let storedObject = try StripeAllowlist.stored(object, StripeAllowlist.object(of: type))
        stored["data"] = .object(["object": .object(storedObject)])
        let previous = data.members["previous_attributes"]
        if var changed = StripeAllowlist.names(of: previous) {
            let items = StripeItemChange(previous, object)
            if items.isNewPeriod { changed.append("current_period_start") }
            if items.isOfQuantityOnly { changed.removeAll { $0 == "items" } }
            stored["changed"] = .array(changed.map { .string($0) })
        }
        if type == "charge.refunded" { stored["refund_revokes"] = .bool(refundRevokes) }
        let payload = JSONValue.object(stored)
        // This checks the required fields, so that every stored payload can be translated again.
        _ = try translate(payload: payload)
        return payload
    }

    public static func translate(payload: JSONValue) throws(BillingError) -> BillingEvent {
        let event = try PayloadFields(payload, path: "")
        let kind = try event.required("type", PayloadFields.word)
        let created = try event.required("created", PayloadFields.seconds)
        let isLive = try event.required("livemode", PayloadFields.flag)
        let object = try PayloadFields(
            PayloadFields(payload["data"], path: "data").members["object"],
            path: "data.object"
        )
        let status = kind.hasPrefix("customer.subscription.") ? try object.word("status") : nil
        var notification = BillingEvent(
            source: .stripe,
            id: try event.required("id", PayloadFields.text),
            type: status.map { "\(kind): \($0)" } ?? kind,
            at: created,
            environment: isLive ? .production : .sandbox,
            identities: try identities(of: kind, object),
            payload: payload
        )
        try notification.translate { translated in
            let translation = StripeTranslation(kind: kind, at: created, event: event, object: object)
            translated.at = StripeEventOrder.instant(of: kind, created: created, periodEnd: try translation.periodEnd)
            let choices = try translation.choices
            translated.effects = choices.first ?? []
            translated.alternatives = Array(choices.dropFirst())
        }
        return notification
    }

    /// The user's UUID, if the event has it, and the customer, which it identifies from then on.
    private static func identities(
        of kind: String,
        _ object: PayloadFields
    ) throws(BillingError) -> [String] {
        var identities: [String] = []
        if kind.hasPrefix("checkout.session."), let user = object.user("client_reference_id") {
            identities.append(user)
        }
        if kind.hasPrefix("invoice.") {
            if let user = try StripeInvoice(object).user { identities.append(user) }
        } else if let user = try object.object("metadata")?.user("user_id") {
            identities.append(user)
        }
        if let customer = try object.text("customer") { identities.append(customer) }
        return CustomerIdentity.distinct(identities)
    }
}

extension BillingEvent.Source {
    public static let stripe = BillingEvent.Source(rawValue: "stripe")
}
