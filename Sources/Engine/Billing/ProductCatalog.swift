import Postgres

/// Maps the products and entitlements of stores to plans, with the rights of the database login. It blocks; run it on a
/// thread of its own.
public struct ProductCatalog {
    /// A row of headroom.store_products, or of headroom.store_entitlements.
    public struct Mapping: Sendable, Equatable {
        public var source: String
        /// The product; nil for an entitlement.
        public var product: String?
        public var entitlement: String?
        public var plan: String?
        /// The plan of a trial; nil means `trial`, in `map`.
        public var trialPlan: String?
        /// The plan of an introductory offer; nil means `plan`.
        public var introPlan: String?
        /// The messages per unit of a one-time purchase.
        public var messages: Int?
        /// The days for which the plan of a one-time purchase lasts; nil means for good.
        public var days: Int?

        public init(
            source: String,
            product: String?,
            entitlement: String? = nil,
            plan: String?,
            trialPlan: String? = nil,
            introPlan: String? = nil,
            messages: Int? = nil,
            days: Int? = nil
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
    }

    private let options: ConnectionOptions

    public init(database: DatabaseTopology) {
        options = .command("product", database)
    }

    /// - Returns: the number of recorded events that failed because this product was not mapped.
    public func map(_ mapping: Mapping) throws(PostgresError) -> Int {
        var parameters = Parameters()
        parameters.append(text: mapping.source)
        parameters.append(text: mapping.product)
        parameters.append(text: mapping.plan)
        parameters.append(text: mapping.trialPlan)
        parameters.append(text: mapping.introPlan)
        parameters.append(int32: mapping.messages.map { Int32(clamping: $0) })
        parameters.append(int32: mapping.days.map { Int32(clamping: $0) })
        return Int(try options.query(EmbeddedSQL.mapProduct, parameters).int64(0, 0))
    }

    /// - Parameter mapping: the plans; the rest is ignored.
    /// - Returns: the number of recorded events that failed because their product was not mapped.
    public func map(entitlement name: String, _ mapping: Mapping) throws(PostgresError) -> Int {
        var parameters = Parameters()
        parameters.append(text: mapping.source)
        parameters.append(text: name)
        parameters.append(text: mapping.plan)
        parameters.append(text: mapping.trialPlan)
        parameters.append(text: mapping.introPlan)
        return Int(try options.query(EmbeddedSQL.mapEntitlement, parameters).int64(0, 0))
    }

    /// - Returns: false if it was not mapped.
    public func unmap(source: String, entitlement: String) throws(PostgresError) -> Bool {
        var parameters = Parameters()
        parameters.append(text: source)
        parameters.append(text: entitlement)
        return try options.query(EmbeddedSQL.unmapEntitlement, parameters).bool(0, 0)
    }

    /// - Returns: false if it was not mapped.
    public func unmap(source: String, product: String) throws(PostgresError) -> Bool {
        var parameters = Parameters()
        parameters.append(text: source)
        parameters.append(text: product)
        return try options.query(EmbeddedSQL.unmapProduct, parameters).bool(0, 0)
    }

    public func list() throws(PostgresError) -> [Mapping] {
        return try options.query(EmbeddedSQL.listProducts).rows { row throws(PostgresError) in
            Mapping(
                source: try row.text("source"),
                product: try row.textOrNil("product"),
                entitlement: try row.textOrNil("entitlement"),
                plan: try row.textOrNil("plan"),
                trialPlan: try row.textOrNil("trial_plan"),
                introPlan: try row.textOrNil("intro_plan"),
                messages: try row.int32OrNil("messages"),
                days: try row.int32OrNil("days")
            )
        }
    }
}
