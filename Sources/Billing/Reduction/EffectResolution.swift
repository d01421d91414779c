import Usage

/// The plans of a store's products and entitlements: rows that operators edit.
public struct ProductMapping: Sendable, Equatable {
    public struct Product: Sendable, Equatable {
        public var plan: String?
        /// The plan during a trial of the product.
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

    public var products: [String: Product]
    public var entitlements: [String: Product]

    public init(products: [String: Product], entitlements: [String: Product] = [:]) {
        self.products = products
        self.entitlements = entitlements
    }
}

extension BillingEffect {
    /// The limit of `headroom.grants`.
    static let messagesMaximum = 1_000_000
    /// The time for which RevenueCat grants access while a store is unavailable.
    static let temporarySecondsMaximum: Int64 = 86_400

    /// The effect with the plans that its products are mapped to now. Later edits of the mapping do not change it.
    ///
    /// - Parameter at: when the event happened.
    public func resolved(by mapping: ProductMapping, at: Instant) -> Result<BillingEffect, ResolutionFailure> {
        var effect = self
        switch kind {
        case .transferred, .merged: return .success(self)
        case .granted: return resolvedGrant(by: mapping)
        case .productChanged where nextProduct != nil || nextPlan != nil:
            if let nextProduct, nextPlan == nil {
                effect.nextPlan = mapping.products[nextProduct]?.plan
                // If products are mapped by entitlement, the renewal will name the plan.
                let hasEntitlement = (entitlements ?? []).contains { mapping.entitlements[$0] != nil }
                guard effect.nextPlan != nil || hasEntitlement else { return .failure(.unmapped(nextProduct)) }
            }
            return .success(effect)
        case .temporary:
            // Not paid yet: it gives access for a day at most, and begins no period.
            let latest = at.advanced(bySeconds: BillingEffect.temporarySecondsMaximum)
            effect.expires = min(effect.expires ?? latest, latest)
        default: break
        }
        if effect.plan != nil { return .success(effect) }
        let isNeeded = kind == .purchased || kind == .renewed || kind == .temporary || kind == .productChanged
        // Without an end, an effect that is no payment waits for one: it would give access forever.
        guard isNeeded || effect.expires != nil || kind == .expired || kind == .revoked else { return .success(effect) }
        guard let product = mappedProduct(mapping) else {
            if isNeeded, let product { return .failure(.unmapped(product)) }
            return .success(effect)
        }
        switch period {
        case .trial:
            effect.plan = product.trialPlan ?? product.plan
            effect.regularPlan = product.plan
        case .intro: effect.plan = product.introPlan ?? product.plan
        case .normal, nil: effect.plan = product.plan
        }
        return .success(effect)
    }

    /// The mapping of the product, else of its other name, else of the first mapped entitlement.
    private func mappedProduct(_ mapping: ProductMapping) -> ProductMapping.Product? {
        for name in [product, alternateProduct].compactMap({ $0 }) {
            if let mapped = mapping.products[name], mapped.plan != nil { return mapped }
        }
        return (entitlements ?? []).lazy.compactMap { mapping.entitlements[$0] }.first
    }

    private func resolvedGrant(by mapping: ProductMapping) -> Result<BillingEffect, ResolutionFailure> {
        if messages != nil { return .success(self) }
        guard let product, let each = mapping.products[product]?.messages else {
            return .failure(.unmapped(product ?? ""))
        }
        let (messages, overflow) = each.multipliedReportingOverflow(by: quantity ?? 1)
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
    /// An operator has to map the product and replay the event.
    case unmapped(String)
    case malformed(String)
}
