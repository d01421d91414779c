import Usage

/// A subscription after all events of its transaction: the facts from which its state is derived.
public struct StoreSubscription: Sendable, Equatable {
    /// The original transaction, which names the subscription through all its renewals.
    @ExactText public var transaction: String
    public var plan: String?
    public var product: String?
    /// Nil before the first payment. Until then any event may set the end.
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

    /// The grace after the event, if neither its end nor the end of the paid time is known.
    static let fallbackGraceSeconds: Int64 = 16 * 86_400

    public init(transaction: String) {
        self.transaction = transaction
    }

    /// Applies the next effect, in the order in which they happened.
    ///
    /// - Parameter cycles: the cycle of each plan.
    mutating func apply(_ effect: BillingEffect, at: Instant, environment: String?, cycles: [String: Plan.Cycle]) {
        if startedAt == nil { expiresAt = expiresAt ?? effect.expires }
        switch effect.kind {
        case .purchased, .renewed: pay(effect, at: at, cycles)
        case .cancelled:
            // If the event of a renewal was lost, this event's end is later than the known one. A cancellation never
            // shortens the subscription.
            expiresAt = later(expiresAt, effect.expires)
            unsubscribedAt = at
        case .uncancelled:
            expiresAt = later(expiresAt, effect.expires)
            unsubscribedAt = nil
        case .gracePeriod: beginGrace(effect, at: at)
        case .billingRetry:
            // Ends the grace period, and leaves the paid time.
            graceUntil = earlier(earlier(graceUntil, effect.graceUntil), at)
            billingIssueAt = billingIssueAt ?? at
        case .expired: expire(effect.expires ?? at)
        case .revoked: revokedAt = revokedAt ?? at
        case .reinstated: revokedAt = nil
        case .extended, .temporary:
            // A subscription without an end stays without one.
            if startedAt == nil || expiresAt != nil { expiresAt = later(expiresAt, effect.expires) }
        case .productChanged: changeProduct(effect)
        case .granted, .transferred, .merged: return
        }
        plan = plan ?? effect.plan
        product = product ?? effect.product
        anchorDay = effect.anchorDay ?? anchorDay
        self.environment = environment ?? self.environment
        eventAt = at
    }

    /// A purchase or a renewal. It ends a cancellation, a billing issue and an earlier refund.
    private mutating func pay(_ effect: BillingEffect, at: Instant, _ cycles: [String: Plan.Cycle]) {
        let cycleBefore = plan.flatMap { cycles[$0] }
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
        unsubscribedAt = nil
        revokedAt = nil
        nextPlan = nil
        nextProduct = nil
    }

    /// If the event names no end of the grace, the end by an earlier event of the same billing issue stays, also that
    /// of a billing retry. Else it is nil, and `headroom.entitlement` adds 16 days to `expiresAt`; without `expiresAt`
    /// it is 16 days after this event.
    private mutating func beginGrace(_ effect: BillingEffect, at: Instant) {
        let fallback = expiresAt == nil ? at.advanced(bySeconds: StoreSubscription.fallbackGraceSeconds) : nil
        graceUntil = effect.graceUntil ?? (billingIssueAt == nil ? nil : graceUntil) ?? fallback
        billingIssueAt = billingIssueAt ?? at
    }

    private mutating func expire(_ end: Instant) {
        // An earlier end belongs to a period that was renewed since.
        if let expiresAt, end < expiresAt { return }
        expiresAt = end
        graceUntil = nil
        billingIssueAt = nil
    }

    private mutating func changeProduct(_ effect: BillingEffect) {
        if let plan = effect.plan {
            self.plan = plan
            product = effect.product ?? product
            expiresAt = effect.expires ?? expiresAt
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
