import Usage

/// Maps the products and entitlements of a store to plans or messages. Operators edit it in the database.
public struct ProductMapping: Sendable, Equatable {
    /// What a product or an entitlement is mapped to.
    public struct Target: Sendable, Equatable {
        public var plan: String?
        /// The plan during a trial of the product; nil means `plan`.
        public var trialPlan: String?
        /// The plan during an introductory offer; nil means `plan`.
        public var introPlan: String?
        /// Messages per unit of a one-time purchase. 0 grants none.
        public var messages: Int?

        public init(plan: String?, trialPlan: String? = nil, introPlan: String? = nil, messages: Int? = nil) {
            self.plan = plan
            self.trialPlan = trialPlan
            self.introPlan = introPlan
            self.messages = messages
        }
    }

    public var products: [ExactText: Target]
    public var entitlements: [ExactText: Target]

    public init(products: [ExactText: Target], entitlements: [ExactText: Target] = [:]) {
        self.products = products
        self.entitlements = entitlements
    }
}

extension BillingEffect {
    /// The most messages that `headroom.grants` accepts in one grant.
    package static let messagesMaximum = 1_000_000
    /// The time for which RevenueCat grants access while a store is unavailable.
    static let temporarySecondsMaximum: Int64 = 86_400

    /// Returns the effect with the plans or messages that its products are mapped to now. Later edits of the mapping do
    /// not change them.
    ///
    /// - Parameter at: when the event happened.
    public func resolved(by mapping: ProductMapping, at: Instant) -> Result<BillingEffect, ResolutionFailure> {
        var effect = self
        switch kind {
        case .transferred, .merged: return .success(self)
        case .granted: return resolvedGrant(by: mapping)
        case .productChanged where nextProduct != nil || nextPlan != nil:
            if let nextProduct, nextPlan == nil {
                effect.nextPlan = mapping.products[ExactText(nextProduct)]?.plan
                // Without a plan, a mapped entitlement suffices: the renewal finds the plan by it.
                let hasEntitlement = (entitlements ?? []).contains { mapping.entitlements[ExactText($0)] != nil }
                guard effect.nextPlan != nil || hasEntitlement else { return .failure(.unmapped(nextProduct)) }
            }
            return .success(effect)
        case .temporary:
            // The store has not verified the purchase yet, so access lasts a day at most.
            let latest = at.advanced(bySeconds: BillingEffect.temporarySecondsMaximum)
            effect.expires = min(effect.expires ?? latest, latest)
        default: break
        }
        if effect.plan != nil { return .success(effect) }
        let needsPlan = kind == .purchased || kind == .renewed || kind == .temporary || kind == .productChanged
        // An effect that is no payment and has no expiry gets no plan, because it would give access forever.
        guard needsPlan || effect.expires != nil || kind == .expired || kind == .revoked else {
            return .success(effect)
        }
        guard let target = target(in: mapping) else {
            if needsPlan, let product { return .failure(.unmapped(product)) }
            return .success(effect)
        }
        switch period {
        case .trial:
            effect.plan = target.trialPlan ?? target.plan
            effect.regularPlan = target.plan
        case .intro: effect.plan = target.introPlan ?? target.plan
        case .normal, nil: effect.plan = target.plan
        }
        return .success(effect)
    }

    /// The target of the product, else of its alternate name, else of the first mapped entitlement.
    private func target(in mapping: ProductMapping) -> ProductMapping.Target? {
        for name in [product, alternateProduct].compactMap({ $0 }) {
            if let target = mapping.products[ExactText(name)], target.plan != nil { return target }
        }
        return (entitlements ?? []).lazy.compactMap { mapping.entitlements[ExactText($0)] }.first
    }

    private func resolvedGrant(by mapping: ProductMapping) -> Result<BillingEffect, ResolutionFailure> {
        if messages != nil { return .success(self) }
        guard let product, let messagesPerUnit = mapping.products[ExactText(product)]?.messages else {
            return .failure(.unmapped(product ?? ""))
        }
        let (messages, overflow) = messagesPerUnit.multipliedReportingOverflow(by: quantity ?? 1)
        guard !overflow, messages <= BillingEffect.messagesMaximum else {
            return .failure(.malformed("a grant has at most \(BillingEffect.messagesMaximum) messages"))
        }
        var effect = self
        effect.messages = messages
        return .success(effect)
    }
}

/// Why an effect cannot be resolved.
public enum ResolutionFailure: Error, Sendable, Equatable {
    /// The product has no mapping. An operator must map it and replay the event.
    case unmapped(String)
    case malformed(String)
}
