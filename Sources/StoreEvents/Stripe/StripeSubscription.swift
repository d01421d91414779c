import Billing
import Usage

/// The subscription in an event: a snapshot, which takes precedence over the event's type.
struct StripeSubscription {
    /// Stripe documents these (https://docs.stripe.com/api/subscriptions/object#subscription_object-status).
    enum Status: String {
        case trialing, active, unpaid, incomplete, paused, canceled
        case pastDue = "past_due"
        case incompleteExpired = "incomplete_expired"
    }

    /// Attributes that change with a payment, a trial or another product. A change of any other attribute means nothing
    /// for payments: the latest invoice, for instance, may be a draft, or for usage.
    private static let paidAttributes: Set = [
        "status", "items", "plan", "current_period_start", "trial_start", "start_date",
    ]
    /// These attributes change with a payment too, but also with those of `endAttributes`.
    private static let periodAttributes: Set = ["current_period_end", "billing_cycle_anchor"]
    /// These attributes change with another end of the trial, or of the subscription.
    private static let endAttributes: Set = ["cancel_at", "trial_end"]

    let kind: String
    let at: Instant
    let status: Status?
    private let fields: PayloadFields
    private let item: StripeItem
    /// The changed attributes; nil if the event does not name them.
    private let changed: Set<String>?

    /// - Parameters:
    ///   - event: the stored event.
    ///   - item: the item for which the effects are computed.
    init(
        kind: String,
        at: Instant,
        event: PayloadFields,
        object: PayloadFields,
        item: StripeItem
    ) throws(BillingError) {
        self.kind = kind
        self.at = at
        self.item = item
        fields = object
        status = try object.word("status").flatMap(Status.init(rawValue:))
        changed = event.has("changed") ? Set(try event.texts("changed")) : nil
    }

    // MARK: Fields

    var trialEnd: Instant? {
        get throws(BillingError) { try fields.seconds("trial_end") }
    }

    private var product: String {
        get throws {
            guard let product = item.product else { throw MissingField(type: kind, name: "items.data.price.id") }
            return product
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
            guard let end = item.end else { throw MissingField(type: kind, name: "current_period_end") }
            return end
        }
    }

    private var isCancelled: Bool {
        get throws(BillingError) {
            if try fields.flag("cancel_at_period_end") == true { return true }
            return try fields.seconds("cancel_at") != nil
        }
    }

    /// Whether nothing is collected for periods to come, whatever happens to their invoices. The status stays active.
    private var isPaused: Bool {
        get throws(BillingError) { try fields.object("pause_collection") != nil }
    }

    /// The end of access if nothing else happens: that of the trial or the period, or the scheduled cancellation.
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
            if let end = item.end, end <= at { return end }
            if let start = item.start, start <= at { return start }
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
            [try unpaid(payment, until: try paidUntil), try effect(.billingRetry, expires: nil, graceUntil: at)]
        case .paused: try ended(payment, at: at)
        case .canceled: try cancelled(payment)
        // Nothing was paid yet, or the status is unknown.
        case .incomplete, .incompleteExpired, nil: []
        }
    }

    /// The effects of a subscription that has ended, or is paused. Its dates come first: without them, an end before
    /// the known one would count as the end of an earlier period.
    func ended(_ payment: BillingEffect.Kind, at end: Instant) throws -> [BillingEffect] {
        [try unpaid(payment, until: end), try effect(.expired, expires: end)]
    }

    /// The effects of `customer.subscription.deleted`, whatever the status. It never renews again, even if an invoice
    /// is paid afterwards.
    func cancelled(_ payment: BillingEffect.Kind = .renewed) throws -> [BillingEffect] {
        var effects = try ended(payment, at: min(try fields.seconds("ended_at") ?? at, at))
        effects.insert(try effect(.cancelled, expires: nil), at: 1)
        return effects
    }

    private func running(_ payment: BillingEffect.Kind) throws -> [BillingEffect] {
        let end = try end
        let intent: BillingEffect.Kind = try isCancelled ? .cancelled : .uncancelled
        // A payment ends a billing issue or a refund. A pause, a change of the cancellation or of a card does not.
        if let changed, try isPaused || !StripeSubscription.isPayment(changed) { return try unpaidChange(of: changed) }
        return [try paid(payment, until: end), try effect(intent, expires: end)]
    }

    private static func isPayment(_ changed: Set<String>) -> Bool {
        if !changed.isDisjoint(with: paidAttributes) { return true }
        return changed.isDisjoint(with: endAttributes) && !changed.isDisjoint(with: periodAttributes)
    }

    /// The effects of a change without a payment. It does not extend the paid time: a period that begins during a
    /// pause, for example, is not paid. Only another day of the cancellation, or another end of the trial, moves the
    /// end, within a period that was paid.
    private func unpaidChange(of attributes: Set<String>) throws -> [BillingEffect] {
        let isPaused = try isPaused
        let intent: BillingEffect.Kind = try isPaused || isCancelled ? .cancelled : .uncancelled
        let isOfTrial = status == .trialing && attributes.contains("trial_end")
        let hasNewPeriod = isPaused && attributes.contains("current_period_start")
        var snapshot = try effect(.productChanged, expires: try hasNewPeriod ? item.start ?? end : end)
        snapshot.isUnpaid = true
        if !isPaused, isOfTrial || attributes.contains("cancel_at") { snapshot.started = item.start }
        let effects = [snapshot, try effect(intent, expires: nil)]
        // The trial's only period ends with it.
        return isOfTrial && !isPaused ? [try effect(.extended, expires: end)] + effects : effects
    }

    private func pastDue(_ payment: BillingEffect.Kind) throws -> [BillingEffect] {
        var nextAttempt: Instant?
        // The value is usually only the id, and the invoice itself if it was expanded.
        if case .object? = fields.members["latest_invoice"] {
            nextAttempt = try fields.object("latest_invoice")?.seconds("next_payment_attempt")
        }
        guard let nextAttempt else {
            // Without an end of grace, that of the invoice's own event counts, else 16 days after the period's end.
            let grace = try effect(.gracePeriod, expires: try periodEnd)
            return payment == .purchased ? [try paid(payment, until: try periodEnd), grace] : [grace]
        }
        return [
            try unpaid(payment, until: try paidUntil), try effect(.gracePeriod, expires: nil, graceUntil: nextAttempt),
        ]
    }

    /// The effect with the dates of a subscription that is not paid now.
    private func unpaid(_ kind: BillingEffect.Kind, until end: Instant) throws -> BillingEffect {
        var effect = try paid(kind, until: end)
        effect.isUnpaid = true
        return effect
    }

    private func paid(_ kind: BillingEffect.Kind, until end: Instant) throws -> BillingEffect {
        var started = item.start
        if status == .trialing, let trialStart = try fields.seconds("trial_start") { started = trialStart }
        if started == nil { started = try fields.seconds("start_date") }
        var effect = try effect(kind, expires: end)
        effect.started = started.flatMap { $0 <= end ? $0 : nil }
        effect.anchor = try fields.seconds("billing_cycle_anchor")
        if let price = item.price { effect.sale = BillingEffect.Sale(price) }
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
        effect.alternateProduct = item.priceProduct
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
