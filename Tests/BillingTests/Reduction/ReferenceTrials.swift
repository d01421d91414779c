import Usage

@testable import Billing

/// Finds second trials, and what replaces them.
struct ReferenceTrials {
    struct Trial {
        var startedAt: Instant
        var endsAt: Instant
        var regularPlan: String?

        func isBefore(_ other: Trial) -> Bool {
            (startedAt, endsAt) < (other.startedAt, other.endsAt)
        }
    }

    private let customer: ReferenceCustomer

    init(_ customer: ReferenceCustomer) {
        self.customer = customer
    }

    /// The length of a trial plan; nil for other plans.
    func days(_ plan: String?) -> Int? {
        guard let plan, case .trial(let days) = customer.history.plans[plan] else { return nil }
        return days
    }

    /// The first trial of a transaction.
    private func trial(of transaction: ReferenceCustomer.Transaction) -> Trial? {
        var trials: [Trial] = []
        for event in customer.events where event.problem == nil {
            for effect in event.effects where customer.transaction(effect, event) == transaction {
                guard effect.kind == .purchased || effect.kind == .renewed, let days = days(effect.plan)
                else { continue }
                let start = effect.started ?? event.at
                let end = effect.expires ?? start.advanced(bySeconds: Int64(days) * 24 * 60 * 60)
                trials.append(Trial(startedAt: start, endsAt: end, regularPlan: effect.regularPlan))
            }
        }
        return trials.min { $0.startedAt < $1.startedAt }
    }

    /// The trials of all transactions that the user ever owned.
    func ofStores(_ user: UserID, but excluded: ReferenceCustomer.Transaction? = nil) -> [Trial] {
        customer.steps.filter { $0.key != excluded && $0.value.contains { $0.owner == .user(user) } }
            .compactMap { trial(of: $0.key) }
    }

    /// The first of a user's other trials that is over by an instant.
    private func earlierTrial(
        of user: UserID,
        beside transaction: ReferenceCustomer.Transaction,
        overBy instant: Instant
    ) -> Trial? {
        var trials = ofStores(user, but: transaction).sorted { $0.isBefore($1) }
        if let spent = customer.history.users[user]?.trial {
            let end = [spent.endsAt, spent.usedUpAt].compactMap(\.self).min() ?? spent.endsAt
            trials.insert(Trial(startedAt: spent.startedAt, endsAt: end), at: 0)
        }
        // `min` returns the first of those that began at the same instant.
        return trials.filter { $0.startedAt < instant && $0.endsAt <= instant }.min { $0.startedAt < $1.startedAt }
    }

    private func firstUser(of transaction: ReferenceCustomer.Transaction) -> UserID? {
        customer.steps[transaction]?.lazy.compactMap(\.owner.user).first
    }

    /// The trial that the buyer had before this one.
    private func buyersTrial(_ transaction: ReferenceCustomer.Transaction, _ trial: Trial) -> Trial? {
        firstUser(of: transaction).flatMap { buyer in
            earlierTrial(of: buyer, beside: transaction, overBy: trial.startedAt)
        }
    }

    /// The plan of a second trial, because the store promised access to its buyer.
    func planInPlace(of transaction: ReferenceCustomer.Transaction) -> String? {
        guard let trial = trial(of: transaction), buyersTrial(transaction, trial) != nil,
            customer.fault != .secondTrialIsTrial
        else { return nil }
        return trial.regularPlan
    }

    /// The trial whose dates a second trial gets: its owner did not buy it, or it has no other plan.
    func trialInPlace(of transaction: ReferenceCustomer.Transaction) -> Trial? {
        guard let trial = trial(of: transaction), planInPlace(of: transaction) == nil,
            let last = customer.steps[transaction]?.last, let owner = last.owner.user,
            customer.fault != .spentTrialRestarts
        else { return nil }
        if owner != firstUser(of: transaction),
            let spent = earlierTrial(of: owner, beside: transaction, overBy: last.event.at)
        {
            return spent
        }
        return trial.regularPlan == nil ? buyersTrial(transaction, trial) : nil
    }
}
