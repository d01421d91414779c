/// `headroom product list`: what each product and entitlement of the stores is mapped to.
public struct ProductTable: Sendable {
    /// A row of headroom.store_products, or of headroom.store_entitlements, which has an entitlement and no product.
    public struct Row: Sendable, Equatable, Encodable {
        public let source: String
        public let product: String?
        public let entitlement: String?
        public let plan: String?
        public let trialPlan: String?
        public let introPlan: String?
        public let messages: Int?
        public let days: Int?

        public init(
            source: String,
            product: String?,
            entitlement: String? = nil,
            plan: String?,
            trialPlan: String?,
            introPlan: String?,
            messages: Int?,
            days: Int?
        ) {
            self.source = source
            self.product = product
            self.entitlement = entitlement
            self.plan = plan
            self.trialPlan = trialPlan
            self.introPlan = introPlan
            self.messages = messages
            self.days = days
        }

        /// Every row has the same names: a missing value is null.
        public func encode(to encoder: any Encoder) throws {
            let values: [String: FieldValue] = [
                "source": .text(source), "product": FieldValue(product), "entitlement": FieldValue(entitlement),
                "plan": FieldValue(plan), "trial_plan": FieldValue(trialPlan), "intro_plan": FieldValue(introPlan),
                "messages": messages.map { .integer($0) } ?? .null, "days": days.map { .integer($0) } ?? .null,
            ]
            try values.encode(to: encoder)
        }
    }

    public let rows: [Row]

    public init(_ rows: [Row]) {
        self.rows = rows
    }

    /// - Parameter width: of the terminal; nil: none, so each row is a line.
    public func text(width: Int?) -> String {
        var table = TextTable([.left, .left, .left, .left, .left, .right, .right])
        table.add("source", "product", "plan", "trial", "intro", "messages", "days")
        for row in rows {
            table.add(
                row.source,
                row.product.map { printable($0) } ?? "entitlement " + printable(row.entitlement ?? ""),
                row.plan ?? "-",
                row.plan == nil ? "-" : row.trialPlan ?? "-",
                row.introPlan ?? "-",
                row.messages.map { grouped($0) } ?? "-",
                row.days.map { grouped($0) } ?? "-"
            )
        }
        return table.records(width: width)
    }
}
