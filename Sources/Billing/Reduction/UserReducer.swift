import Usage

/// Computes a user's subscriptions, effect by effect, in the order in which they happened.
struct UserReducer {
    private let record: UserRecord
    private let cycles: [String: Plan.Cycle]
    private var byTransaction: [ExactText: StoreSubscription] = [:]
    private var anchorDay: Int
    private var previousPlan: String?
    /// The user's newest plan with periods.
    private var periodicPlan: String?

    init(_ record: UserRecord, _ cycles: [String: Plan.Cycle]) {
        self.record = record
        self.cycles = cycles
        anchorDay = record.declaredAnchorDay
        previousPlan = record.declaredPreviousPlan
        periodicPlan = record.declaredPlan
    }

    /// Subscriptions whose plan is known.
    var subscriptions: [StoreSubscription] {
        byTransaction.values.filter { $0.plan != nil }.sorted { $0.transaction.precedes($1.transaction) }
    }

    var state: UserState {
        UserState(anchorDay: anchorDay, previousPlan: previousPlan)
    }

    /// - Parameters:
    ///   - transferredAt: when the transaction was transferred to the user; nil if it was not.
    ///   - plan: the plan that replaces a trial's plan.
    /// - Returns: applied or outdated. A plan set by an operator overrides all events that happened or arrived before.
    mutating func apply(
        _ effect: BillingEffect,
        of event: RecordedEvent,
        transferredAt: Instant?,
        replacingTrial plan: String?
    ) -> EventResult.Outcome {
        guard isInForce(event, transferredAt), let name = effect.transaction else { return .outdated }
        var effect = effect
        if let plan, let own = effect.plan, cycles[own]?.isTrial == true { effect.plan = plan }
        let before = byTransaction[ExactText(name)] ?? StoreSubscription(transaction: name)
        var after = before
        after.apply(effect, of: event, cycles: cycles) { refundedPeriod(at: effect.started ?? event.at, $0) }
        byTransaction[ExactText(name)] = after
        if let day = after.anchorDay,
            day != before.anchorDay || effect.anchorDay != nil || effect.kind == .purchased
        {
            anchorDay = day
        }
        if let plan = after.plan, plan != before.plan || effect.kind == .purchased, cycles[plan]?.isPeriodic == true {
            if let periodicPlan, periodicPlan != plan { previousPlan = periodicPlan }
            periodicPlan = plan
        }
        return .applied
    }

    /// The period of a refunded subscription in which an instant lies; if there are several, the one that ends last.
    private func refundedPeriod(
        at instant: Instant,
        _ length: PaidPeriods.Length
    ) -> (start: Instant, end: Instant)? {
        byTransaction.values.compactMap { $0.refundedPeriod(at: instant, length) }.max {
            ($0.end, $0.start) < ($1.end, $1.start)
        }
    }

    private func isInForce(_ event: RecordedEvent, _ transferredAt: Instant?) -> Bool {
        guard let declaredAt = record.declaredAt else { return true }
        if event.at >= declaredAt, event.receivedAt >= declaredAt { return true }
        return transferredAt.map { $0 >= declaredAt } ?? false
    }
}
