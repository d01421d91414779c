/// `headroom product list`: which plan a store's product is.
public struct ProductTable: Sendable {
    /// A row of headroom.store_products, or of headroom.store_entitlements: that has an entitlement and no product.
    public struct Product: Sendable, Equatable, Encodable {
        public let source: String
        public let product: String?
        public let entitlement: String?
        public let plan: String?
        public let trialPlan: String?
        public let introPlan: String?
        public let messages: Int?

        public init(
            source: String,
            product: String?,
            entitlement: String? = nil,
            plan: String?,
            trialPlan: String?,
            introPlan: String?,
            messages: Int?
        ) {
            self.source = source
            self.product = product
            self.entitlement = entitlement
            self.plan = plan
            self.trialPlan = trialPlan
            self.introPlan = introPlan
            self.messages = messages
        }

        private enum CodingKeys: String, CodingKey {
            case source, product, entitlement, plan
            case trialPlan = "trial_plan"
            case introPlan = "intro_plan"
            case messages
        }

        /// With a null where there is nothing: every product has the same names.
        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(source, forKey: .source)
            try container.encode(product, forKey: .product)
            try container.encode(entitlement, forKey: .entitlement)
            try container.encode(plan, forKey: .plan)
            try container.encode(trialPlan, forKey: .trialPlan)
            try container.encode(introPlan, forKey: .introPlan)
            try container.encode(messages, forKey: .messages)
        }
    }

    public let products: [Product]

    public init(_ products: [Product]) {
        self.products = products
    }

    public var text: String {
        var table = TextTable([.left, .left, .left, .left, .left, .right])
        table.add("source", "product", "plan", "trial", "intro", "messages")
        for product in products {
            table.add(
                product.source,
                product.product.map { printable($0) } ?? "entitlement " + printable(product.entitlement ?? ""),
                product.plan ?? "-",
                product.plan == nil ? "-" : product.trialPlan ?? "-",
                product.introPlan ?? "-",
                product.messages.map { grouped($0) } ?? "-"
            )
        }
        return table.lines.joined(separator: "\n")
    }
}
