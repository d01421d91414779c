import Postgres

/// Maps the products and entitlements of stores to plans, with the rights of the database user. Blocks; run it on a thread of
/// its own.
public struct ProductRegister {
    public struct Product: Sendable, Equatable {
        public var source: String
        /// Nil in a list where an entitlement is mapped.
        public var product: String?
        public var entitlement: String?
        public var plan: String?
        /// Nil, where mapping it, is `trial`.
        public var trialPlan: String?
        /// Nil is `plan`.
        public var introPlan: String?
        /// Of a product that is bought once, for each.
        public var messages: Int?

        public init(
            source: String,
            product: String?,
            entitlement: String? = nil,
            plan: String?,
            trialPlan: String? = nil,
            introPlan: String? = nil,
            messages: Int? = nil
        ) {
            self.source = source
            self.product = product
            self.entitlement = entitlement
            self.plan = plan
            self.trialPlan = trialPlan
            self.introPlan = introPlan
            self.messages = messages
        }
    }

    private static let patience = Duration.seconds(30)
    private let options: ConnectionOptions

    public init(databaseURL: String) {
        options = .command("product", databaseURL)
    }

    /// - Returns: how many recorded events failed because this product is not mapped.
    public func map(_ product: Product) throws(PostgresError) -> Int {
        var parameters = Parameters()
        parameters.append(text: product.source)
        parameters.append(text: product.product)
        parameters.append(text: product.plan)
        parameters.append(text: product.trialPlan)
        parameters.append(text: product.introPlan)
        parameters.append(int32: product.messages.map { Int32(clamping: $0) })
        return Int(try query(EmbeddedSQL.mapProduct, parameters).int64(0, 0))
    }

    /// - Parameter product: its plans; the entitlement's name stands in the product's place.
    /// - Returns: how many recorded events failed because their product is not mapped.
    public func map(entitlement name: String, _ product: Product) throws(PostgresError) -> Int {
        var parameters = Parameters()
        parameters.append(text: product.source)
        parameters.append(text: name)
        parameters.append(text: product.plan)
        parameters.append(text: product.trialPlan)
        parameters.append(text: product.introPlan)
        return Int(try query(EmbeddedSQL.mapEntitlement, parameters).int64(0, 0))
    }

    /// - Returns: false when it was not mapped.
    public func unmap(source: String, entitlement: String) throws(PostgresError) -> Bool {
        var parameters = Parameters()
        parameters.append(text: source)
        parameters.append(text: entitlement)
        return try query(EmbeddedSQL.unmapEntitlement, parameters).bool(0, 0)
    }

    /// - Returns: false when it was not mapped.
    public func unmap(source: String, product: String) throws(PostgresError) -> Bool {
        var parameters = Parameters()
        parameters.append(text: source)
        parameters.append(text: product)
        return try query(EmbeddedSQL.unmapProduct, parameters).bool(0, 0)
    }

    public func list() throws(PostgresError) -> [Product] {
        let result = try query(EmbeddedSQL.listProducts, Parameters())
        func text(_ row: Int, _ column: Int) -> String? {
            result.isNull(row, column) ? nil : result.text(row, column)
        }
        return try (0..<result.rowCount).map { row throws(PostgresError) in
            Product(
                source: result.text(row, 0),
                product: text(row, 1),
                entitlement: text(row, 6),
                plan: text(row, 2),
                trialPlan: text(row, 3),
                introPlan: text(row, 4),
                messages: result.isNull(row, 5) ? nil : Int(try result.int32(row, 5))
            )
        }
    }

    /// In a session of its own.
    private func query(_ sql: String, _ parameters: consuming Parameters) throws(PostgresError) -> QueryResult {
        let connection = try Connection.connect(options)
        defer { connection.close() }
        return try connection.query(sql, parameters, deadline: .now + ProductRegister.patience)
    }
}
