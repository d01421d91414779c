extension BillingProblem {
    /// What is wrong and what to do, for whoever looks at the event.
    public func text(source: String) -> String {
        switch self {
        case .unknownUser:
            "nobody is known by its identities or its transaction. It is applied by itself as soon as an event comes that "
                + "names both the user's UUID and one of them."
        case .unmappedProduct(let product):
            "product '\(product)' of \(source) is not mapped. Use headroom product map SOURCE PRODUCT with --plan PLAN, or "
                + "with --messages N for a product that is bought once (0 to grant none), then headroom events replay "
                + "--failed."
        case .inTheFuture:
            "'at' is in the future: more than a day ahead of the database's clock. headroom events replay applies it when "
                + "that is there."
        case .malformed(let text): text
        }
    }

    /// What it lacks, where that may still come: as `headroom.billing_events` has it.
    public var lacks: String? {
        switch self {
        case .unknownUser: "user"
        case .unmappedProduct: "product"
        case .inTheFuture: "time"
        case .malformed: nil
        }
    }
}
