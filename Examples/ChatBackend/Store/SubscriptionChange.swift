import HeadroomClient

/// What the page asks for, and what a store would tell of it.
struct SubscriptionChange: Decodable {
    enum Action: String, Decodable {
        case subscribe, cancel, resume, pay
    }

    let action: Action
    /// To subscribe to; else the one that the user has, or had.
    let plan: String?

    static let expected = #"{"action": "subscribe", "cancel", "resume" or "pay", "plan": "paid" or "pro"}"#

    /// - Parameter status: where the user stands; nil when that is not known.
    /// - Throws: 400 for a plan that no product gives, 409 when there is nothing to change.
    func event(for user: UserID, _ status: UsageStatus?) throws(Problem) -> StoreEvent {
        let named = try plan.map { (name) throws(Problem) in
            guard let product = StoreEvent.Product(plan: name) else {
                throw Problem.malformed("plan must be paid or pro")
            }
            return product
        }
        let had = SubscriptionChange.product(of: status)
        let kind: StoreEvent.Kind
        switch action {
        case .subscribe:
            guard let named else { throw Problem.malformed("plan must be paid or pro") }
            return StoreEvent(named == had ? .renewal : .initialPurchase, of: named, by: user, expires: nil)
        case .cancel: kind = .cancellation
        case .resume: kind = .uncancellation
        case .pay: kind = .renewal
        }
        guard let product = named ?? had else {
            throw Problem(
                status: .conflict,
                code: "CONFLICT",
                message: "there is no subscription to change; subscribe first"
            )
        }
        return StoreEvent(kind, of: product, by: user, expires: status?.expires)
    }

    /// The one that the user has, or had until it lapsed.
    private static func product(of status: UsageStatus?) -> StoreEvent.Product? {
        guard let status else { return nil }
        return StoreEvent.Product(plan: status.plan) ?? status.previousPlan.flatMap { StoreEvent.Product(plan: $0) }
    }
}
