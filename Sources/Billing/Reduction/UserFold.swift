import Usage

/// A user's subscriptions, computed effect by effect in the order in which they happened.
struct UserFold {
    private let record: UserRecord
    private let cycles: [String: Plan.Cycle]
    private var byTransaction: [String: StoreSubscription] = [:]
    private var anchorDay: Int
    private var previousPlan: String?
    /// The monthly plan that the user was last on.
    private var monthlyPlan: String?

    init(_ record: UserRecord, _ cycles: [String: Plan.Cycle]) {
        self.record = record
        self.cycles = cycles
        anchorDay = record.declaredAnchorDay
        previousPlan = record.declaredPreviousPlan
        monthlyPlan = record.declaredPlan
    }

    /// Those whose plan is known.
    var subscriptions: [StoreSubscription] {
        byTransaction.values.filter { $0.plan != nil }.sorted { $0.transaction.precedes($1.transaction) }
    }

    var state: UserState {
        UserState(anchorDay: anchorDay, previousPlan: previousPlan)
    }

    /// - Parameters:
    ///   - transferredAt: when the effect's transaction came to the user from another.
    ///   - plan: in place of a trial's plan.
    /// - Returns: applied, or outdated: by setting a plan an operator declares all that holds, so what a store reports
    ///   of earlier, or reported before, is without effect.
    mutating func apply(
        _ effect: BillingEffect,
        of event: RecordedEvent,
        transferredAt: Instant?,
        replacingTrial plan: String?
    ) -> EventResult.Outcome {
        guard isInForce(event, transferredAt), let name = effect.transaction else { return .outdated }
        var effect = effect
        if let plan, let own = effect.plan, cycles[own]?.isTrial == true { effect.plan = plan }
        let before = byTransaction[name] ?? StoreSubscription(transaction: name)
        var after = before
        after.apply(effect, at: event.at, environment: event.environment, cycles: cycles)
        byTransaction[name] = after
        if let day = after.anchorDay,
            day != before.anchorDay || effect.anchorDay != nil || effect.kind == .purchased
        {
            anchorDay = day
        }
        if let plan = after.plan, plan != before.plan || effect.kind == .purchased, cycles[plan] == .monthly {
            if let monthlyPlan, monthlyPlan != plan { previousPlan = monthlyPlan }
            monthlyPlan = plan
        }
        return .applied
    }

    private func isInForce(_ event: RecordedEvent, _ transferredAt: Instant?) -> Bool {
        guard let declaredAt = record.declaredAt else { return true }
        if event.at >= declaredAt, event.receivedAt >= declaredAt { return true }
        return transferredAt.map { $0 >= declaredAt } ?? false
    }
}
