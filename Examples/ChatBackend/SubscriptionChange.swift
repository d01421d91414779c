import HeadroomClient

/// What a user chooses on the page: `{"action": …, "plan": "paid" or "pro"}`.
struct SubscriptionChange: Decodable {
    enum Action: String, Decodable {
        case subscribe, downgrade, cancel, resume, pay, restore
    }

    let action: Action
    /// The plan to subscribe to, or to downgrade to.
    let plan: String?

    /// The event that a store would send.
    ///
    /// - Parameter status: nil when the usage is not available.
    /// - Returns: nil when a subscription was restored, which changes nothing.
    /// - Throws: `Problem`: 400 for an unknown plan, 404 when there is nothing to restore, 409 when there is nothing to
    ///   change, 503 when that is unknown.
    func event(for user: UserID, _ status: UsageStatus?) throws -> StoreEvent? {
        let chosen = plan.flatMap { Product(plan: $0) }
        let current = status.flatMap { Product(plan: $0.plan) ?? $0.previousPlan.flatMap { Product(plan: $0) } }
        let isSubscribed = status.map { [.active, .cancelled, .gracePeriod].contains($0.state) } ?? false
        switch action {
        case .subscribe:
            guard let chosen else { throw SubscriptionChange.unknownPlan }
            return StoreEvent(chosen == current ? .renewal : .initialPurchase, of: chosen, by: user, expires: nil)
        case .downgrade:
            guard let chosen else { throw SubscriptionChange.unknownPlan }
            guard let current, isSubscribed else { throw SubscriptionChange.nothingToChange }
            return StoreEvent(.productChange, of: current, by: user, expires: status?.renews, next: chosen)
        case .restore:
            // A store would search the purchases of this device's account.
            guard status != nil else { throw Problem(.serviceUnavailable, "Headroom is unreachable; try again") }
            guard current != nil, isSubscribed else {
                throw Problem(.notFound, code: "NOTHING", "there is no active subscription to restore")
            }
            return nil
        case .cancel, .resume, .pay:
            guard let current else { throw SubscriptionChange.nothingToChange }
            let kind: StoreEvent.Kind =
                action == .cancel ? .cancellation : action == .resume ? .uncancellation : .renewal
            return StoreEvent(kind, of: current, by: user, expires: status?.expires)
        }
    }

    private static let unknownPlan = Problem(.badRequest, "plan must be paid or pro")
    private static let nothingToChange = Problem(.conflict, "there is no subscription to change; subscribe first")
}
