import Usage

/// A subscription after all events of its transaction: the facts from which its state is derived.
public struct StoreSubscription: Sendable, Equatable {
    /// The original transaction, which names the subscription through all its renewals.
    @ExactText public var transaction: String
    public var plan: String?
    public var product: String?
    /// The start; nil before the first payment. Until then any event may set the end.
    public var startedAt: Instant?
    public var expiresAt: Instant?
    public var graceUntil: Instant?
    public var billingIssueAt: Instant?
    public var unsubscribedAt: Instant?
    public var revokedAt: Instant?
    public var nextPlan: String?
    public var nextProduct: String?
    public var environment: String?
    /// When the newest applied event happened.
    public var eventAt: Instant?
    /// The day of the month of the purchase, or the one that an event names.
    public var anchorDay: Int?
    /// The store that sells it, where the events name it: `app_store`.
    public var store: String?
    /// The value is false if the store does not renew it, because it never does or has reported the end, and nil
    /// otherwise.
    public var renews: Bool?
    /// The price as paid at the last renewal, and its currency.
    public var price: String?
    public var currency: String?
    /// How the paid time is divided; nil if periods begin on the user's anchor day.
    public var periods: PaidPeriods?
    /// The start that the newest payment's event named. A late payment of an earlier period is recognized by it.
    var newestStart: Instant?

    /// The grace after the event, if neither its end nor the end of the paid time is known.
    static let fallbackGraceSeconds: Int64 = 16 * 86_400

    public init(transaction: String) {
        self.transaction = transaction
    }

    /// Applies the next effect, in the order in which they happened.
    ///
    /// - Parameters:
    ///   - event: the event with the effect.
    ///   - cycles: the cycle of each plan.
    ///   - refunded: the period of a refunded subscription in which a payment begins, of that length.
    mutating func apply(
        _ effect: BillingEffect,
        of event: RecordedEvent,
        cycles: [String: Plan.Cycle],
        refunded: (PaidPeriods.Length) -> (start: Instant, end: Instant)? = { _ in nil }
    ) {
        let at = event.at
        let before = self
        defer { divideTime(after: effect, at: at, before, cycles, refunded) }
        if startedAt == nil { expiresAt = expiresAt ?? effect.expires }
        switch effect.kind {
        case .purchased, .renewed:
            guard !isOfEarlierPeriod(effect) else { break }
            pay(effect, at: at, cycles)
        case .cancelled:
            confirmEnd(effect)
            unsubscribedAt = event.effective(at)
        case .uncancelled:
            confirmEnd(effect)
            unsubscribedAt = nil
        case .gracePeriod: beginGrace(effect, at: at)
        case .billingRetry:
            // This ends the grace period, and leaves the paid time.
            graceUntil = earlier(earlier(graceUntil, effect.graceUntil), at)
            billingIssueAt = billingIssueAt ?? at
        case .expired: expire(effect.expires ?? at, of: event)
        case .revoked: revokedAt = revokedAt ?? event.effective(at)
        case .reinstated: revokedAt = nil
        case .extended, .temporary:
            // A subscription without an end stays without one.
            if startedAt == nil || expiresAt != nil { expiresAt = later(expiresAt, effect.expires) }
            if startedAt == nil { renews = effect.sale?.renews }
        case .productChanged: changeProduct(effect)
        case .granted, .transferred, .merged, .linked: return
        }
        plan = plan ?? effect.plan
        product = product ?? effect.product
        anchorDay = effect.anchorDay ?? anchorDay
        store = effect.sale?.store ?? store
        environment = event.environment ?? environment
        eventAt = at
    }

    /// Whether it is a late payment of a period before the newest one that was paid.
    func isOfEarlierPeriod(_ effect: BillingEffect) -> Bool {
        guard effect.kind == .renewed, let start = effect.started, let newestStart, start < newestStart,
            let end = effect.expires
        else { return false }
        return expiresAt.map { end <= $0 } ?? true
    }

    /// Applies a purchase or a renewal. It ends a cancellation, a billing issue and, if it was paid, an earlier refund.
    private mutating func pay(_ effect: BillingEffect, at: Instant, _ cycles: [String: Plan.Cycle]) {
        let cycleBefore = plan.flatMap { cycles[$0] }
        let productBefore = product
        plan = effect.plan ?? nextPlan ?? plan
        product = effect.product ?? nextProduct ?? product
        let cycle = plan.flatMap { cycles[$0] }
        // A trial that becomes a paid subscription starts it, as a purchase does.
        let isConversion = cycleBefore?.isTrial == true && cycle?.isTrial == false
        if effect.kind == .purchased || isConversion {
            startedAt = effect.started ?? at
            if cycle == .monthly { anchorDay = startedAt?.date.day }
        } else if startedAt == nil {
            startedAt = effect.started ?? at
            if cycle == .monthly, effect.started != nil { anchorDay = startedAt?.date.day }
        }
        expiresAt = effect.expires
        graceUntil = nil
        billingIssueAt = nil
        // The payment of a period that began before the cancellation does not take that back.
        let start = effect.started ?? at
        if effect.kind == .purchased || unsubscribedAt.map({ $0 <= start }) ?? true { unsubscribedAt = nil }
        if effect.isUnpaid != true {
            revokedAt = nil
            newestStart = effect.started ?? newestStart
        }
        nextPlan = nil
        nextProduct = nil
        renews = effect.sale?.renews
        // A store may leave the price out of a renewal; the earlier one stays for the same product.
        if effect.sale?.price != nil || product != productBefore {
            price = effect.sale?.price
            currency = effect.sale?.currency
        }
    }

    /// Begins the grace period. If the event names no end of it, the end by an earlier event of the same billing issue
    /// stays, also that of a billing retry. Else it is nil, and `headroom.entitlement` adds 16 days to `expiresAt`;
    /// without `expiresAt` it is 16 days after this event.
    private mutating func beginGrace(_ effect: BillingEffect, at: Instant) {
        let fallback = expiresAt == nil ? at.advanced(bySeconds: StoreSubscription.fallbackGraceSeconds) : nil
        graceUntil = effect.graceUntil ?? (billingIssueAt == nil ? nil : graceUntil) ?? fallback
        billingIssueAt = billingIssueAt ?? at
    }

    private mutating func expire(_ end: Instant, of event: RecordedEvent) {
        // An earlier end belongs to a period that was renewed since. What is never renewed, such as a gift, has ended.
        if let expiresAt, end < expiresAt, renews != false { return }
        expiresAt = event.effective(end)
        // No renewal is awaited.
        renews = false
        graceUntil = nil
        billingIssueAt = nil
    }

    /// Applies the end in a cancellation or its reversal, which never shortens the subscription. If it is later than
    /// the known one, the event of a renewal was lost: the store renews it, and what was due is paid.
    private mutating func confirmEnd(_ effect: BillingEffect) {
        if let expiresAt, let end = effect.expires, expiresAt < end {
            renews = effect.sale?.renews
            if graceUntil.map({ $0 < end }) ?? true {
                graceUntil = nil
                billingIssueAt = nil
            }
        }
        expiresAt = later(expiresAt, effect.expires)
    }

    private mutating func changeProduct(_ effect: BillingEffect) {
        if let plan = effect.plan {
            self.plan = plan
            product = effect.product ?? product
            // Without a payment, the end moves only within a period that was paid.
            let isPaid = effect.isUnpaid != true || effect.started.map { $0 < expiresAt ?? .latest } ?? false
            expiresAt = isPaid ? effect.expires ?? expiresAt : earlier(expiresAt, effect.expires)
        }
        nextPlan = effect.nextPlan
        nextProduct = effect.nextProduct
    }
}

extension Plan.Cycle {
    var isTrial: Bool {
        if case .trial = self { true } else { false }
    }
}

private func later(_ one: Instant?, _ other: Instant?) -> Instant? {
    guard let one, let other else { return one ?? other }
    return max(one, other)
}

private func earlier(_ one: Instant?, _ other: Instant?) -> Instant? {
    guard let one, let other else { return one ?? other }
    return min(one, other)
}
