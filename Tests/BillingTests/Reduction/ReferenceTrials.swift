import TestSupport
import Usage

@testable import Billing

/// Finds second trials, and what replaces them.
struct ReferenceTrials {
    struct Trial {
        var startedAt: Instant
        var endsAt: Instant
        var regularPlan: String?
        /// Of its first event; the end of time while it is being applied.
        var arrivedAt: Instant?

        func isBefore(_ other: Trial) -> Bool { (startedAt, endsAt) < (other.startedAt, other.endsAt) }
    }

    private static let now = at("9999-01-01T00:00:00Z")

    private let customer: ReferenceCustomer

    init(_ customer: ReferenceCustomer) { self.customer = customer }

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
                let arrival = event.appliedAt ?? ReferenceTrials.now
                trials.append(
                    Trial(startedAt: start, endsAt: end, regularPlan: effect.regularPlan, arrivedAt: arrival)
                )
            }
        }
        var first = trials.min { $0.startedAt < $1.startedAt }
        first?.arrivedAt = trials.compactMap(\.arrivedAt).min()
        return first
    }

    /// The trials of all transactions that the user ever owned.
    func ofStores(_ user: UserID, but excluded: ReferenceCustomer.Transaction? = nil) -> [Trial] {
        customer.steps.filter { $0.key != excluded && $0.value.contains { $0.owner == .user(user) } }
            .compactMap { trial(of: $0.key) }
    }

    /// The first of a user's other trials that is over by an instant, or whose messages were used up before an arrival.
    private func earlierTrial(
        of user: UserID,
        beside transaction: ReferenceCustomer.Transaction,
        overBy instant: Instant,
        arrival: Instant?
    ) -> Trial? {
        let own = customer.history.users[user]?.trial
        let stores = ofStores(user, but: transaction).sorted { $0.isBefore($1) }
            .filter { $0.startedAt < instant && $0.endsAt <= instant }
        var owns: [Trial] = []
        if let usedUp = usedUp(of: user, arrival: arrival) {
            owns = [
                Trial(
                    startedAt: [usedUp, own?.startedAt].compactMap(\.self).min() ?? usedUp,
                    endsAt: [usedUp, own?.endsAt].compactMap(\.self).min() ?? usedUp
                )
            ]
        } else if let own, own.startedAt < instant, own.endsAt <= instant {
            owns = [Trial(startedAt: own.startedAt, endsAt: own.endsAt)]
        }
        // `min` returns the first of those that began at the same instant.
        return (owns + stores).min { $0.startedAt < $1.startedAt }
    }

    /// What was recorded counts from then on, the present usage only for what arrives now.
    private func usedUp(of user: UserID, arrival: Instant?) -> Instant? {
        guard let record = customer.history.users[user], customer.fault != .ignoresMessagesOfTrials else { return nil }
        let present = arrival == ReferenceTrials.now ? record.presentTrialUsedUpAt : nil
        return [record.trialUsedUpAt ?? present].compactMap(\.self).first { $0 <= arrival ?? $0 }
    }

    /// When the present owner got it.
    private func arrivalAtOwner(_ transaction: ReferenceCustomer.Transaction) -> Instant? {
        let moved = customer.steps[transaction]?.last?.event
        // A failed event is applied again and again.
        let movedAt = moved.map { $0.problem == nil ? $0.appliedAt ?? ReferenceTrials.now : ReferenceTrials.now }
        return [movedAt, trial(of: transaction)?.arrivedAt].compactMap(\.self).max()
    }

    /// To be recorded.
    func usedUp(of user: UserID) -> Instant? {
        let record = customer.history.users[user]
        let arrives = customer.steps.contains { transaction, steps in
            guard let trial = trial(of: transaction), steps.contains(where: { $0.owner == .user(user) })
            else { return false }
            let isBuyer = firstUser(of: transaction) == user && trial.arrivedAt == ReferenceTrials.now
            let isOwner = steps.last?.owner == .user(user) && arrivalAtOwner(transaction) == ReferenceTrials.now
            return isBuyer || isOwner
        }
        return record?.trialUsedUpAt ?? (arrives ? record?.presentTrialUsedUpAt : nil)
    }

    private func firstUser(of transaction: ReferenceCustomer.Transaction) -> UserID? {
        customer.steps[transaction]?.lazy.compactMap(\.owner.user).first
    }

    /// The trial that the buyer had before this one.
    private func buyersTrial(_ transaction: ReferenceCustomer.Transaction, _ trial: Trial) -> Trial? {
        firstUser(of: transaction).flatMap { buyer in
            earlierTrial(of: buyer, beside: transaction, overBy: trial.startedAt, arrival: trial.arrivedAt)
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
            let spent = earlierTrial(
                of: owner,
                beside: transaction,
                overBy: last.event.at,
                arrival: arrivalAtOwner(transaction)
            )
        {
            return spent
        }
        return trial.regularPlan == nil ? buyersTrial(transaction, trial) : nil
    }
}
