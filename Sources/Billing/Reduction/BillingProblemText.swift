extension BillingProblem {
    /// What is wrong, and what an operator has to do.
    public func text(source: String) -> String {
        switch self {
        case .unknownUser:
            "no user is known for this event. Headroom applies it as soon as another event connects its transaction or one of "
                + "its ids with a user's UUID, or headroom customer link says whose it is."
        case .unmappedProduct(let products):
            "\(BillingProblem.notMapped(products, source)). Use headroom product map SOURCE PRODUCT with --plan PLAN, or "
                + "with --messages N for a product that is bought once (0 to grant none), then headroom events replay "
                + "--failed."
        case .inTheFuture:
            "'at' is in the future: more than one day after the database's clock. Run headroom events replay after that time."
        case .malformed(let text): text
        }
    }

    private static func notMapped(_ products: String, _ source: String) -> String {
        let names = products.split(separator: "\n", omittingEmptySubsequences: false).map { "'\($0)'" }
        let list = names.joined(separator: ", ")
        return names.count == 1
            ? "product \(list) of \(source) is not mapped" : "none of the products \(list) of \(source) is mapped"
    }

    /// Why the event cannot be applied yet, as in the column `missing_prerequisite` of `headroom.billing_events`. It is
    /// nil if a field is missing or wrong.
    public var missingPrerequisite: String? {
        switch self {
        case .unknownUser: "user"
        case .unmappedProduct: "product"
        case .inTheFuture: "time"
        case .malformed: nil
        }
    }
}
