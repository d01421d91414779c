import HeadroomClient

/// What the page asks for, and what a store would tell of it.
struct SubscriptionChange: Decodable {
    enum Action: String, Decodable {
        case subscribe, downgrade, cancel, resume, pay, restore
    }

    let action: Action
    /// To subscribe to; else the one that the user has, or had.
    let plan: String?

    static let expected =
        #"{"action": "subscribe", "downgrade", "cancel", "resume", "pay" or "restore", "plan": "paid" or "pro"}"#

    /// - Parameter status: where the user stands; nil when that is not known.
    /// - Returns: nil where the store has nothing to tell.
    /// - Throws: 400 for a plan that no product gives, 404 when there is nothing to restore, 409 when there is nothing to
    ///   change, 503 when it is not known whether there is.
    func event(for user: UserID, _ status: UsageStatus?) throws(Problem) -> StoreEvent? {
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
        case .downgrade:
            guard let named else { throw Problem.malformed("plan must be paid or pro") }
            guard let had, status?.hasSubscription == true else { throw SubscriptionChange.nothingToChange }
            return StoreEvent(.productChange, of: had, by: user, expires: status?.renews, next: named)
        case .restore:
            // A store would look for what was bought with this device's account. What this one has sold, Headroom knows.
            guard let status else { throw SubscriptionChange.unknown }
            guard had != nil, status.hasSubscription else { throw SubscriptionChange.nothingToRestore }
            return nil
        case .cancel: kind = .cancellation
        case .resume: kind = .uncancellation
        case .pay: kind = .renewal
        }
        guard let product = named ?? had else {
            throw SubscriptionChange.nothingToChange
        }
        return StoreEvent(kind, of: product, by: user, expires: status?.expires)
    }

    private static let nothingToChange = Problem(
        status: .conflict,
        code: "CONFLICT",
        message: "there is no subscription to change; subscribe first"
    )
    private static let nothingToRestore = Problem(
        status: .notFound,
        code: "NOTHING",
        message: "there is no active subscription to restore; subscribe"
    )
    private static let unknown = Problem(
        status: .serviceUnavailable,
        code: "UNAVAILABLE",
        message: "Headroom cannot be asked which subscription there is; try again",
        headers: [.retryAfter: "5"]
    )

    /// The one that the user has, or had until it lapsed.
    private static func product(of status: UsageStatus?) -> StoreEvent.Product? {
        guard let status else { return nil }
        return StoreEvent.Product(plan: status.plan) ?? status.previousPlan.flatMap { StoreEvent.Product(plan: $0) }
    }
}

extension UsageStatus {
    /// A store has sold one that gives access.
    fileprivate var hasSubscription: Bool {
        switch state {
        case .active, .cancelled, .gracePeriod: true
        case .trial, .billingRetry, .expired, .revoked, .free: false
        }
    }
}
