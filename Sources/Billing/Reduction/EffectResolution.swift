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
        /// The messages per unit of a one-time purchase. 0 grants none.
        public var messages: Int?
        /// How long the plan of a one-time purchase lasts, if the store names no end; nil means for good.
        public var days: Int?

        public init(
            plan: String?,
            trialPlan: String? = nil,
            introPlan: String? = nil,
            messages: Int? = nil,
            days: Int? = nil
        ) {
            self.plan = plan
            self.trialPlan = trialPlan
            self.introPlan = introPlan
            self.messages = messages
            self.days = days
        }
    }

    public var products: [ExactText: Target]
    public var entitlements: [ExactText: Target]
    /// The messages in 30 days of each plan that has an enforced limit.
    public var allowances: [String: Int]

    public init(
        products: [ExactText: Target],
        entitlements: [ExactText: Target] = [:],
        allowances: [String: Int] = [:]
    ) {
        self.products = products
        self.entitlements = entitlements
        self.allowances = allowances
    }

    /// Resolves the effects of an event for each item of a subscription, and returns those with the largest allowance.
    /// Items that are not mapped, such as an add-on, do not count. If none is mapped, what ends access applies
    /// nevertheless, to the known plan.
    func resolve(_ choices: [[BillingEffect]], at: Instant) -> Result<[BillingEffect], ResolutionFailure> {
        var best: (effects: [BillingEffect], allowance: Int)?
        var unmapped: [String] = []
        for choice in choices {
            do throws(ResolutionFailure) {
                let effects = try resolveOne(choice, at: at)
                let plan = effects.lazy.compactMap { $0.regularPlan ?? $0.plan }.first
                let allowance = plan.map { allowances[$0] ?? .max } ?? 0
                if best.map({ $0.allowance < allowance }) ?? true { best = (effects, allowance) }
            } catch {
                guard case .unmapped(let product) = error else { return .failure(error) }
                if !unmapped.contains(product) { unmapped.append(product) }
            }
        }
        if let best { return .success(best.effects) }
        let effects = choices.first ?? []
        let ending = effects.filter(\.needsNoMapping).map(\.withoutProduct)
        let isNew = effects.contains { $0.kind == .purchased && $0.isUnpaid != true }
        if !isNew, ending.contains(where: \.endsAccess) { return .success(ending) }
        return .failure(.unmapped(unmapped.joined(separator: "\n")))
    }

    /// Resolves the effects for one item. If several products were bought once, those that are mapped count. Messages
    /// of one payment are one purchase.
    private func resolveOne(_ choice: [BillingEffect], at: Instant) throws(ResolutionFailure) -> [BillingEffect] {
        var effects: [BillingEffect] = []
        var missing: [String] = []
        for effect in choice {
            switch effect.resolved(by: self, at: at) {
            case .success(let resolved):
                let same = effects.firstIndex { $0.kind == .granted && $0.transaction == resolved.transaction }
                guard resolved.kind == .granted, let same else {
                    effects.append(resolved)
                    continue
                }
                let messages = (effects[same].messages ?? 0) + (resolved.messages ?? 0)
                guard messages <= BillingEffect.messagesMaximum else { throw BillingEffect.tooManyMessages }
                effects[same].messages = messages
            case .failure(.unmapped(let product)) where effect.kind == .granted: missing.append(product)
            case .failure(let failure): throw failure
            }
        }
        if effects.isEmpty, !missing.isEmpty { throw .unmapped(missing.joined(separator: "\n")) }
        return effects
    }
}

extension BillingEffect {
    /// Whether it ends access, now or with the paid time.
    fileprivate var endsAccess: Bool { [.expired, .billingRetry, .revoked, .cancelled].contains(kind) }

    /// Whether it is a payment, or a change to another product.
    private var needsPlan: Bool { [.purchased, .renewed, .productChanged, .temporary].contains(kind) }

    /// Whether it applies to the known plan if its product is not mapped.
    fileprivate var needsNoMapping: Bool { isUnpaid == true || !needsPlan }

    /// The effect without the product and the price of an item that is not mapped. A cancellation loses its end too, so
    /// that it does not extend the known plan.
    fileprivate var withoutProduct: BillingEffect {
        var effect = self
        effect.product = nil
        effect.alternateProduct = nil
        effect.sale = nil
        if kind == .cancelled { effect.expires = nil }
        return effect
    }
}

extension BillingEffect {
    /// The most messages that `headroom.grants` accepts in one grant.
    package static let messagesMaximum = 1_000_000

    fileprivate static var tooManyMessages: ResolutionFailure {
        .malformed("a grant has at most \(messagesMaximum) messages")
    }

    /// The time for which RevenueCat grants access while a store is unavailable.
    static let temporarySecondsMaximum: Int64 = 86_400

    /// Returns the effect with the plans or messages that its products are mapped to now. Later edits of the mapping do
    /// not change them.
    ///
    /// - Parameter at: when the event happened.
    public func resolved(by mapping: ProductMapping, at: Instant) -> Result<BillingEffect, ResolutionFailure> {
        var effect = self
        switch kind {
        case .transferred, .merged, .linked: return .success(self)
        case .granted: return resolvedOneTimePurchase(by: mapping, at: at)
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

    /// Returns messages if the product is mapped to some, else its plan: until the end that the store names, or that of
    /// the mapping, or for good.
    private func resolvedOneTimePurchase(
        by mapping: ProductMapping,
        at: Instant
    ) -> Result<BillingEffect, ResolutionFailure> {
        if messages != nil { return .success(self) }
        let targets = [product, alternateProduct].compactMap { $0.flatMap { mapping.products[ExactText($0)] } }
        guard let messagesPerUnit = targets.first?.messages else {
            guard let target = target(in: mapping), let plan = target.plan else {
                return .failure(.unmapped(product ?? ""))
            }
            var effect = self
            effect.kind = .purchased
            effect.quantity = nil
            effect.plan = plan
            effect.expires = expires ?? target.days.map { (started ?? at).advanced(bySeconds: Int64($0) * 86_400) }
            effect.sale = effect.sale ?? Sale()
            effect.sale?.renews = false
            return .success(effect)
        }
        let (messages, overflow) = messagesPerUnit.multipliedReportingOverflow(by: quantity ?? 1)
        guard !overflow, messages <= BillingEffect.messagesMaximum else {
            return .failure(BillingEffect.tooManyMessages)
        }
        var effect = self
        effect.messages = messages
        return .success(effect)
    }
}

/// Why effects cannot be resolved.
public enum ResolutionFailure: Error, Sendable, Equatable {
    /// The products, one a line, have no mapping. An operator must map one of them and replay the event.
    case unmapped(String)
    case malformed(String)
}
