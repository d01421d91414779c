import Billing
import Usage

/// The subscription in an event: a snapshot, which takes precedence over the event's type.
struct StripeSubscription {
    /// https://docs.stripe.com/api/subscriptions/object#subscription_object-status
    enum Status: String {
        case trialing, active, unpaid, incomplete, paused, canceled
        case pastDue = "past_due"
        case incompleteExpired = "incomplete_expired"
    }

    /// Attributes that change with a payment, a trial or another product. A change of any other attribute means nothing
    /// for payments.
    private static let paidAttributes: Set = [
        "status", "items", "plan", "quantity", "latest_invoice", "current_period_start", "current_period_end",
        "trial_start", "trial_end", "start_date", "billing_cycle_anchor", "pause_collection",
    ]

    let kind: String
    let at: Instant
    let status: Status?
    private let fields: PayloadFields
    /// The changed attributes; nil if the event does not name them.
    private let changed: Set<String>?

    /// - Parameter event: the stored event.
    init(kind: String, at: Instant, event: PayloadFields, object: PayloadFields) throws(BillingError) {
        self.kind = kind
        self.at = at
        fields = object
        status = try object.word("status").flatMap(Status.init(rawValue:))
        changed = event.has("changed") ? Set(try event.texts("changed")) : nil
    }

    // MARK: Fields

    /// The subscription's period, or in newer versions of the API that of its items; of several the one that ends last.
    var period: (start: Instant?, end: Instant?) {
        get throws(BillingError) {
            var found = (
                start: try fields.seconds("current_period_start"), end: try fields.seconds("current_period_end")
            )
            for item in try items {
                guard let end = try item.seconds("current_period_end"), found.end.map({ $0 < end }) ?? true else {
                    continue
                }
                found = (start: try item.seconds("current_period_start"), end: end)
            }
            return found
        }
    }

    var trialEnd: Instant? {
        get throws(BillingError) { try fields.seconds("trial_end") }
    }

    private var items: [PayloadFields] {
        get throws(BillingError) { try fields.object("items")?.objects("data") ?? [] }
    }

    /// The id of the first item's price, or of its product if there is no price.
    private var product: String {
        get throws {
            for name in ["price", "plan"] {
                guard let price = try items.first?.object(name) else { continue }
                if let id = try price.text("id") { return id }
                if let product = try price.text("product") { return product }
            }
            throw MissingField(type: kind, name: "items.data.price.id")
        }
    }

    /// The product of the first item's price, by which the price may be mapped too.
    private var priceProduct: String? {
        get throws(BillingError) {
            guard let item = try items.first else { return nil }
            if let product = try item.object("price")?.text("product") { return product }
            return try item.object("plan")?.text("product")
        }
    }

    private var transaction: String {
        get throws {
            guard let id = try fields.text("id") else { throw MissingField(type: kind, name: "data.object.id") }
            return id
        }
    }

    private var periodEnd: Instant {
        get throws {
            guard let end = try period.end else { throw MissingField(type: kind, name: "current_period_end") }
            return end
        }
    }

    private var isCancelled: Bool {
        get throws(BillingError) {
            if try fields.flag("cancel_at_period_end") == true { return true }
            return try fields.seconds("cancel_at") != nil
        }
    }

    /// The end of access if nothing else happens: of the trial or the period, or the scheduled cancellation.
    private var end: Instant {
        get throws {
            if let cancelAt = try fields.seconds("cancel_at") { return cancelAt }
            if status == .trialing, let trialEnd = try trialEnd { return trialEnd }
            return try periodEnd
        }
    }

    /// The end of the paid time if the newest invoice is unpaid. Stripe begins a period before it charges for it, so
    /// the paid time ends at the last period boundary before the event.
    private var paidUntil: Instant {
        get throws {
            let period = try period
            if let end = period.end, end <= at { return end }
            if let start = period.start, start <= at { return start }
            return at
        }
    }

    // MARK: Effects

    /// - Parameter payment: `purchased` for a new subscription, else `renewed`.
    func effects(_ payment: BillingEffect.Kind) throws -> [BillingEffect] {
        switch status {
        case .trialing, .active: try running(payment)
        case .pastDue: try pastDue(payment)
        case .unpaid:
            // `at` is Stripe's own instant; that of the event is some milliseconds later (StripeEventOrder).
            [try paid(payment, until: try paidUntil), try effect(.billingRetry, expires: nil, graceUntil: at)]
        case .paused: try ended(payment, at: at)
        case .canceled: try ended(payment, at: min(try fields.seconds("ended_at") ?? at, at))
        // Nothing was paid yet, or the status is unknown.
        case .incomplete, .incompleteExpired, nil: []
        }
    }

    /// A subscription that has ended, or is paused. The payment comes first: without it, an end before the known one
    /// would count as the end of an earlier period.
    func ended(_ payment: BillingEffect.Kind, at end: Instant) throws -> [BillingEffect] {
        [try paid(payment, until: end), try effect(.expired, expires: end)]
    }

    /// The effects of `customer.subscription.deleted`, whatever the status.
    func deleted() throws -> [BillingEffect] {
        try ended(.renewed, at: min(try fields.seconds("ended_at") ?? at, at))
    }

    private func running(_ payment: BillingEffect.Kind) throws -> [BillingEffect] {
        let end = try end
        let intent: BillingEffect.Kind = try isCancelled ? .cancelled : .uncancelled
        // A payment ends a billing issue or a refund. A change of the cancellation, a card or metadata does not.
        if let changed, changed.isDisjoint(with: StripeSubscription.paidAttributes) {
            return [try effect(.productChanged, expires: end), try effect(intent, expires: end)]
        }
        let paid = try paid(payment, until: end)
        return intent == .cancelled ? [paid, try effect(.cancelled, expires: end)] : [paid]
    }

    private func pastDue(_ payment: BillingEffect.Kind) throws -> [BillingEffect] {
        var nextAttempt: Instant?
        // Usually only the id; the invoice itself if it was expanded.
        if case .object? = fields.members["latest_invoice"] {
            nextAttempt = try fields.object("latest_invoice")?.seconds("next_payment_attempt")
        }
        guard let nextAttempt else {
            // Without an end of grace, that of the invoice's own event counts, else 16 days after the period's end.
            let grace = try effect(.gracePeriod, expires: try periodEnd)
            return payment == .purchased ? [try paid(payment, until: try periodEnd), grace] : [grace]
        }
        return [
            try paid(payment, until: try paidUntil), try effect(.gracePeriod, expires: nil, graceUntil: nextAttempt),
        ]
    }

    private func paid(_ kind: BillingEffect.Kind, until end: Instant) throws -> BillingEffect {
        var started = try period.start
        if status == .trialing, let trialStart = try fields.seconds("trial_start") { started = trialStart }
        if started == nil { started = try fields.seconds("start_date") }
        var effect = try effect(kind, expires: end)
        effect.started = started.flatMap { $0 <= end ? $0 : nil }
        if let price = try Price(ofStripe: items.first, currency: fields.text("currency")) {
            effect.sale = BillingEffect.Sale(price)
        }
        return effect
    }

    private func effect(
        _ kind: BillingEffect.Kind,
        expires: Instant?,
        graceUntil: Instant? = nil
    ) throws -> BillingEffect {
        var effect = BillingEffect(
            kind,
            transaction: try transaction,
            product: try product,
            period: try isTrial(until: expires) ? .trial : .normal,
            expires: expires,
            graceUntil: graceUntil
        )
        effect.alternateProduct = try priceProduct
        return effect
    }

    /// A subscription that ended within its trial was a trial only.
    private func isTrial(until end: Instant?) throws(BillingError) -> Bool {
        switch status {
        case .trialing: return true
        case .canceled:
            guard let end, let trialEnd = try trialEnd else { return false }
            return end <= trialEnd
        default: return false
        }
    }
}
