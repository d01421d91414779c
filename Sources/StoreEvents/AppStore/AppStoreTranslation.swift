import Billing
import Usage

/// The effects of each type of App Store notification. Unknown types and subtypes have none; a subscription has expired
/// whatever the subtype says about the reason.
struct AppStoreTranslation {
    /// `data.status`: the subscription's state when the notification was signed. It takes precedence over the type if
    /// they disagree, because it reflects all events so far.
    enum Status: Int64 {
        case active = 1
        case expired, billingRetry, gracePeriod, revoked
    }

    /// The type and subtype, for error messages.
    let name: String
    let at: Instant
    private let status: Status?
    private let transactionInfo: PayloadFields?
    private let renewalInfo: PayloadFields?

    init(name: String, at: Instant, status: Int64?, transaction: PayloadFields?, renewal: PayloadFields?) {
        self.name = name
        self.at = at
        self.status = status.flatMap(Status.init(rawValue:))
        transactionInfo = transaction
        renewalInfo = renewal
    }

    /// - Throws: `MissingField`, or `BillingError` if a field has a wrong format.
    func effects(of type: String, _ subtype: String?) throws -> [BillingEffect] {
        try plainEffects(of: type, subtype).map { effect in
            var effect = effect
            let isPaid = [.purchased, .renewed, .granted].contains(effect.kind)
            effect.sale = BillingEffect.Sale(store: "app_store", isPaid ? try price() : nil)
            if effect.kind == .granted { effect.sale?.renews = false }
            return effect
        }
    }

    /// The price as paid for the transaction, which is in milliunits of its currency.
    private func price() throws(BillingError) -> Price? {
        Price(
            thousandths: try transactionInfo?.integer("price"),
            currency: try transactionInfo?.text("currency")
        )
    }

    private func plainEffects(of type: String, _ subtype: String?) throws -> [BillingEffect] {
        switch (type, subtype) {
        case ("SUBSCRIBED", nil), ("SUBSCRIBED", "INITIAL_BUY"), ("SUBSCRIBED", "RESUBSCRIBE"),
            ("OFFER_REDEEMED", "INITIAL_BUY"), ("OFFER_REDEEMED", "RESUBSCRIBE"):
            try paid(try payment(.purchased))
        // An upgrade is paid at once, and has the effects of a payment.
        case ("DID_RENEW", nil), ("DID_RENEW", "BILLING_RECOVERY"), ("DID_CHANGE_RENEWAL_PREF", "UPGRADE"),
            ("OFFER_REDEEMED", nil), ("OFFER_REDEEMED", "UPGRADE"):
            try paid(try payment(.renewed))
        case ("DID_CHANGE_RENEWAL_PREF", "DOWNGRADE"), ("OFFER_REDEEMED", "DOWNGRADE"):
            try withStatus(
                BillingEffect(.productChanged, transaction: try transaction(), nextProduct: try nextProduct())
            )
        case ("DID_CHANGE_RENEWAL_PREF", nil):
            try withStatus(BillingEffect(.productChanged, transaction: try transaction()))
        case ("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED"): try withStatus(try plain(.cancelled))
        case ("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_ENABLED"): try withStatus(try plain(.uncancelled))
        case ("DID_FAIL_TO_RENEW", "GRACE_PERIOD"): [try snapshot(.gracePeriod)]
        case ("DID_FAIL_TO_RENEW", nil), ("GRACE_PERIOD_EXPIRED", nil): [try snapshot(.billingRetry)]
        case ("EXPIRED", _): [try snapshot(.expired)]
        case ("REFUND", nil), ("REVOKE", nil): try revocation()
        case ("REFUND_REVERSED", nil): try withStatus(BillingEffect(.reinstated, transaction: try transaction()))
        case ("RENEWAL_EXTENDED", nil):
            try withStatus(
                BillingEffect(.extended, transaction: try transaction(), expires: try required("expiresDate"))
            )
        case ("ONE_TIME_CHARGE", nil): [try oneTimePurchase()]
        default: []
        }
    }

    /// A payment makes the subscription active. If the status differs, the effect of the status follows. An expired
    /// subscription ended by the time of signing at the latest.
    private func paid(_ payment: BillingEffect) throws -> [BillingEffect] {
        guard let status, status != .active else { return [payment] }
        var payment = payment
        if status == .expired { payment.expires = payment.expires.map { min($0, at) } }
        var end = try effect(of: status)
        if status == .expired { end.expires = payment.expires }
        return [payment, end]
    }

    /// The type does not determine the subscription's state, so the effect of the status is added. An exception is the
    /// extension of an expired subscription: both effects would have the same end, the transaction's `expiresDate`.
    private func withStatus(_ effect: BillingEffect) throws -> [BillingEffect] {
        guard let status, status != .active, status != .expired || effect.kind != .extended else { return [effect] }
        return [effect, try self.effect(of: status)]
    }

    /// The type only reports the subscription's state, so the status replaces it.
    private func snapshot(_ reported: Status) throws -> BillingEffect {
        try effect(of: status ?? reported)
    }

    private func effect(of status: Status) throws -> BillingEffect {
        switch status {
        case .active: try payment(.renewed)
        case .expired: try plain(.expired)
        case .billingRetry: try plain(.billingRetry)
        case .gracePeriod: try gracePeriod()
        case .revoked: BillingEffect(.revoked, transaction: try transaction())
        }
    }

    /// A refund of a past period has no effect on the subscription; the status then is active. One-time purchases have
    /// no status.
    private func revocation() throws -> [BillingEffect] {
        switch status {
        case .active?: []
        case .billingRetry?, .gracePeriod?: [try effect(of: status ?? .revoked)]
        case .expired?, .revoked?, nil: [BillingEffect(.revoked, transaction: try transaction())]
        }
    }

    private func payment(_ kind: BillingEffect.Kind) throws -> BillingEffect {
        BillingEffect(
            kind,
            transaction: try transaction(),
            product: try product(),
            period: try period(),
            started: try transactionInfo?.instant("purchaseDate"),
            expires: try required("expiresDate")
        )
    }

    /// A free introductory offer is a trial. Other offers are not: existing customers get them too, and would lose
    /// their larger allowance.
    private func period() throws -> BillingEffect.Period {
        guard try transactionInfo?.integer("offerType") == 1 else { return .normal }
        return switch try transactionInfo?.text("offerDiscountType") {
        case nil, "FREE_TRIAL": .trial
        default: .intro
        }
    }

    private func plain(_ kind: BillingEffect.Kind) throws -> BillingEffect {
        BillingEffect(
            kind,
            transaction: try transaction(),
            product: try transactionInfo?.text("productId"),
            // If it arrives before the purchase, only this event has the plan.
            period: try period(),
            expires: try transactionInfo?.instant("expiresDate")
        )
    }

    private func gracePeriod() throws -> BillingEffect {
        var effect = try plain(.gracePeriod)
        effect.graceUntil = try renewalInfo?.instant("gracePeriodExpiresDate")
        return effect
    }

    private func oneTimePurchase() throws -> BillingEffect {
        let quantity = try transactionInfo?.integer("quantity") ?? 1
        guard (1...1_000).contains(quantity) else { throw MissingField(type: name, name: "a quantity from 1 to 1000") }
        return BillingEffect(
            .granted,
            transaction: try transaction(),
            product: try product(),
            started: try transactionInfo?.instant("purchaseDate"),
            expires: try transactionInfo?.instant("expiresDate"),
            quantity: Int(quantity)
        )
    }

    private func transaction() throws -> String {
        if let transaction = try transactionInfo?.text("originalTransactionId") { return transaction }
        if let transaction = try renewalInfo?.text("originalTransactionId") { return transaction }
        throw MissingField(type: name, name: "originalTransactionId")
    }

    private func product() throws -> String {
        guard let product = try transactionInfo?.text("productId") else {
            throw MissingField(type: name, name: "productId")
        }
        return product
    }

    private func nextProduct() throws -> String {
        guard let next = try renewalInfo?.text("autoRenewProductId") else {
            throw MissingField(type: name, name: "autoRenewProductId")
        }
        return next
    }

    private func required(_ name: String) throws -> Instant {
        guard let instant = try transactionInfo?.instant(name) else { throw MissingField(type: self.name, name: name) }
        return instant
    }
}
