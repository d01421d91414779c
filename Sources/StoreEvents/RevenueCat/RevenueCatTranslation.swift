import Billing
import Usage

/// The effects of each type of RevenueCat event. Unknown types have none, nor has a cancellation for an unknown reason.
struct RevenueCatTranslation {
    /// The time for which RevenueCat grants access while a store is unavailable.
    private static let temporarySecondsMaximum: Int64 = 24 * 3_600

    private let event: PayloadFields
    private let type: String
    private let at: Instant
    private let identities: [String]

    init(_ event: PayloadFields, _ notification: BillingEvent) {
        self.event = event
        type = notification.type
        at = notification.at
        identities = notification.identities
    }

    /// - Throws: `MissingField`, or `BillingError` if a field has a wrong format.
    func effects(of kind: String) throws -> [BillingEffect] {
        let entitlements = try event.texts("entitlement_ids")
        return try plainEffects(of: kind).map { effect in
            var effect = effect
            let namesProduct = effect.product != nil || effect.nextProduct != nil
            if namesProduct, !entitlements.isEmpty { effect.entitlements = entitlements }
            if effect.transaction != nil { effect.sale = try sale(effect.kind) }
            return effect
        }
    }

    private func plainEffects(of kind: String) throws -> [BillingEffect] {
        switch kind {
        case "INITIAL_PURCHASE": [try payment(.purchased)]
        case "RENEWAL": [try payment(.renewed)]
        case "CANCELLATION": try cancellation()
        case "BILLING_ISSUE": [try billingIssue(hasSeparateGraceEvent: false)]
        case "UNCANCELLATION": [try plain(.uncancelled)]
        case "EXPIRATION": [try plain(.expired)]
        case "PRODUCT_CHANGE": try productChange()
        case "SUBSCRIPTION_EXTENDED": [try subscriptionExtension()]
        // This is also a lifetime purchase, a pass, and what RevenueCat's dashboard gives away.
        case "NON_RENEWING_PURCHASE": [try payment(.granted)]
        case "TRANSFER": [try transfer()]
        case "TEMPORARY_ENTITLEMENT_GRANT": [try temporary()]
        case "REFUND_REVERSED": [BillingEffect(.reinstated, transaction: try transaction())]
        case "SUBSCRIBER_ALIAS": identities.count > 1 ? [.merged(identities)] : []
        default: []
        }
    }

    private func payment(_ kind: BillingEffect.Kind) throws -> BillingEffect {
        BillingEffect(
            kind,
            transaction: try transaction(),
            product: try product(),
            period: try period(),
            started: try event.instant("purchased_at_ms"),
            // A renewal has an end; a lifetime purchase has none.
            expires: kind == .renewed ? try required("expiration_at_ms") : try event.instant("expiration_at_ms")
        )
    }

    /// Returns the store, and the price of a payment.
    private func sale(_ kind: BillingEffect.Kind) throws -> BillingEffect.Sale? {
        let store = try event.text("store")?.lowercased()
        var sale = BillingEffect.Sale(store: store)
        if [.purchased, .renewed, .granted].contains(kind) {
            let price = Price(
                units: try event.number("price_in_purchased_currency"),
                currency: try event.text("currency")
            )
            sale = BillingEffect.Sale(store: store, price)
        }
        let isOnce = try ["PROMOTIONAL", "PREPAID"].contains(event.text("period_type")) || store == "promotional"
        if isOnce || kind == .temporary || kind == .granted { sale.renews = false }
        return sale == BillingEffect.Sale() ? nil : sale
    }

    private func period() throws -> BillingEffect.Period {
        if try event.flag("is_trial_conversion") == true { return .normal }
        return switch try event.text("period_type") {
        case "TRIAL": .trial
        case "INTRO": .intro
        default: .normal
        }
    }

    private func cancellation() throws -> [BillingEffect] {
        switch try event.word("cancel_reason") {
        case "BILLING_ERROR": [try billingIssue(hasSeparateGraceEvent: true)]
        case "CUSTOMER_SUPPORT": [BillingEffect(.revoked, transaction: try transaction())]
        case nil, "UNSUBSCRIBE", "PRICE_INCREASE", "DEVELOPER_INITIATED", "UNKNOWN": [try plain(.cancelled)]
        default: []
        }
    }

    /// - Parameter hasSeparateGraceEvent: a CANCELLATION accompanies a BILLING_ISSUE, and only the latter has the grace
    ///   field. A missing field then leaves the grace period open. null means "no grace" in both.
    private func billingIssue(hasSeparateGraceEvent: Bool) throws -> BillingEffect {
        let until = try event.instant("grace_period_expiration_at_ms")
        let isOpen = hasSeparateGraceEvent && !event.has("grace_period_expiration_at_ms")
        return BillingEffect(
            until != nil || isOpen ? .gracePeriod : .billingRetry,
            transaction: try transaction(),
            product: try event.text("product_id"),
            period: try period(),
            expires: try event.instant("expiration_at_ms"),
            graceUntil: until
        )
    }

    private func plain(_ kind: BillingEffect.Kind) throws -> BillingEffect {
        BillingEffect(
            kind,
            transaction: try transaction(),
            product: try event.text("product_id"),
            // If it arrives before the purchase, only this event has the plan.
            period: try period(),
            expires: try event.instant("expiration_at_ms")
        )
    }

    /// Without a new product the change took effect at once, and a RENEWAL follows.
    private func productChange() throws -> [BillingEffect] {
        guard let next = try event.text("new_product_id") else { return [] }
        return [BillingEffect(.productChanged, transaction: try transaction(), nextProduct: next)]
    }

    private func subscriptionExtension() throws -> BillingEffect {
        BillingEffect(.extended, transaction: try transaction(), expires: try required("expiration_at_ms"))
    }

    private func transfer() throws -> BillingEffect {
        let (from, to) = (try event.texts("transferred_from"), try event.texts("transferred_to"))
        guard !from.isEmpty else { throw MissingField(type: type, name: "transferred_from") }
        guard !to.isEmpty else { throw MissingField(type: type, name: "transferred_to") }
        return .transferred(from: from, to: to)
    }

    private func temporary() throws -> BillingEffect {
        let latest = at.advanced(bySeconds: RevenueCatTranslation.temporarySecondsMaximum)
        return BillingEffect(
            .temporary,
            // The store has not confirmed the purchase yet, so it may have no transaction.
            transaction: try anyTransaction()
                ?? "temporary \(try event.required("id", PayloadFields.text).prefix(200))",
            product: try product(),
            expires: min(try event.instant("expiration_at_ms") ?? latest, latest)
        )
    }

    private func transaction() throws -> String {
        guard let transaction = try anyTransaction() else {
            throw MissingField(type: type, name: "original_transaction_id")
        }
        return transaction
    }

    private func anyTransaction() throws -> String? {
        try event.text("original_transaction_id") ?? event.text("transaction_id")
    }

    private func product() throws -> String {
        guard let product = try event.text("product_id") else { throw MissingField(type: type, name: "product_id") }
        return product
    }

    private func required(_ name: String) throws -> Instant {
        guard let instant = try event.instant(name) else { throw MissingField(type: type, name: name) }
        return instant
    }
}
