import Usage

/// A subscription as the events of its transaction leave it: the inputs of a state, never the state itself.
public struct StoreSubscription: Sendable, Equatable {
    /// The original transaction, which names the subscription through all its renewals.
    public var transaction: String
    public var plan: String?
    public var product: String?
    /// Nil until a payment was seen; until then every event that names the end is believed.
    public var startedAt: Instant?
    public var expiresAt: Instant?
    public var graceUntil: Instant?
    public var billingIssueAt: Instant?
    public var unsubscribedAt: Instant?
    public var revokedAt: Instant?
    public var nextPlan: String?
    public var nextProduct: String?
    public var environment: String?
    /// When the newest event that is in it happened.
    public var eventAt: Instant?
    /// Day of the month on which it was bought.
    public var anchorDay: Int?

    /// The grace after the end of what was paid, where a store gives no date.
    private static let fallbackGraceSeconds: Int64 = 16 * 86_400

    public init(transaction: String) {
        self.transaction = transaction
    }

    /// Applies the next effect in the order in which they happened.
    ///
    /// - Parameter cycles: how each plan comes back.
    mutating func apply(_ effect: BillingEffect, at: Instant, environment: String?, cycles: [String: Plan.Cycle]) {
        if startedAt == nil { expiresAt = expiresAt ?? effect.expires }
        switch effect.kind {
        case .purchased, .renewed: pay(effect, at: at, cycles)
        case .cancelled:
            // The end in it can be later than the known one, where a renewal got lost. It never takes anything back.
            expiresAt = later(expiresAt, effect.expires)
            unsubscribedAt = at
        case .uncancelled:
            expiresAt = later(expiresAt, effect.expires)
            unsubscribedAt = nil
        case .gracePeriod: beginGrace(effect, at: at)
        case .billingRetry:
            // No grace any more; what is left of the paid time stays.
            graceUntil = earlier(earlier(graceUntil, effect.graceUntil), at)
            billingIssueAt = billingIssueAt ?? at
        case .expired: expire(effect.expires ?? at)
        case .revoked: revokedAt = revokedAt ?? at
        case .reinstated: revokedAt = nil
        case .extended, .temporary:
            // A subscription without an end is not given one.
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

    /// A purchase or a renewal. It ends a cancellation, a billing issue and a refund of what was paid before.
    private mutating func pay(_ effect: BillingEffect, at: Instant, _ cycles: [String: Plan.Cycle]) {
        let cycleBefore = plan.flatMap { cycles[$0] }
        plan = effect.plan ?? nextPlan ?? plan
        product = effect.product ?? nextProduct ?? product
        let cycle = plan.flatMap { cycles[$0] }
        // A trial that becomes a subscription begins like one that is bought.
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

    /// Without a date, an earlier notice of the same issue counts, also where it says that there is no grace; else 16
    /// days after the end.
    private mutating func beginGrace(_ effect: BillingEffect, at: Instant) {
        let fallback = expiresAt == nil ? at.advanced(bySeconds: StoreSubscription.fallbackGraceSeconds) : nil
        graceUntil = effect.graceUntil ?? (billingIssueAt == nil ? nil : graceUntil) ?? fallback
        billingIssueAt = billingIssueAt ?? at
    }

    private mutating func expire(_ end: Instant) {
        // An end before the known one is of a time that was paid for again since.
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
