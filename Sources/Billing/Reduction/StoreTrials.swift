import Usage

/// The trials that stores granted, and how an earlier trial of the user affects them.
///
/// A user has one trial, which is spent when its days or its messages are used up. If a user buys a trial after that,
/// the subscription gets the product's regular plan, because the store promised access. If a trial comes by a transfer,
/// and the receiver's own trial is spent, the transferred trial has ended too.
///
/// Whether messages were left is decided once, when the trial arrives: counts have no history. The instant is recorded
/// then, so a reset, a release or a replay after it changes nothing.
struct StoreTrials {
    private struct Trial {
        var startedAt: Instant
        var endsAt: Instant
        /// When its first event was applied; nil if it is being applied now.
        var arrivedAt: Instant?
        /// The product's own plan.
        var regularPlan: String?
    }

    private let trials: [Ownership.Transaction: Trial]
    /// The trials that each user ever owned.
    private let byUser: [UserID: Set<Ownership.Transaction>]
    /// When each event was applied, without those that are being applied now.
    private let arrivals: [RecordedEvent.Key: Instant]
    private let ownership: Ownership
    private let records: [UserID: UserRecord]
    private let cycles: [String: Plan.Cycle]

    /// - Parameter events: the events in the order in which they happened.
    init(_ events: [RecordedEvent], _ ownership: Ownership, _ history: CustomerHistory) {
        var trials: [Ownership.Transaction: Trial] = [:]
        var arrivals: [RecordedEvent.Key: Instant] = [:]
        for event in events where event.problem == nil {
            arrivals[event.key] = event.appliedAt
            for effect in event.effects where effect.kind == .purchased || effect.kind == .renewed {
                guard let name = effect.transaction, let plan = effect.plan, case .trial(let days) = history.plans[plan]
                else { continue }
                let startedAt = effect.started ?? event.at
                var trial = Trial(
                    startedAt: startedAt,
                    endsAt: effect.expires ?? startedAt.advanced(bySeconds: Int64(days) * 86_400),
                    arrivedAt: event.appliedAt,
                    regularPlan: effect.regularPlan
                )
                let transaction = Ownership.Transaction(source: event.key.source, name: name)
                if let other = trials[transaction] {
                    let arrivedAt = [other.arrivedAt, trial.arrivedAt].compactMap(\.self).min()
                    if startedAt >= other.startedAt { trial = other }
                    trial.arrivedAt = arrivedAt
                }
                trials[transaction] = trial
            }
        }
        var byUser: [UserID: Set<Ownership.Transaction>] = [:]
        for transaction in trials.keys {
            for user in (ownership.steps[transaction] ?? []).compactMap(\.customer.user) {
                byUser[user, default: []].insert(transaction)
            }
        }
        self.trials = trials
        self.byUser = byUser
        self.arrivals = arrivals
        self.ownership = ownership
        records = history.users
        cycles = history.plans
    }

    /// All users that ever owned a store trial.
    var users: Set<UserID> { Set(byUser.keys) }

    func firstStart(of user: UserID) -> Instant? {
        transactions(of: user).compactMap { trials[$0]?.startedAt }.min()
    }

    /// When the messages of the user's trial were used up, if a store's trial of the user arrived after that.
    func usedUp(of user: UserID) -> Instant? {
        guard let record = records[user] else { return nil }
        if let recorded = record.trialUsedUpAt { return recorded }
        let isArriving = transactions(of: user).contains { transaction in
            if buyer(of: transaction) == user, trials[transaction]?.arrivedAt == nil { return true }
            return ownership.owner(transaction) == .user(user) && arrival(of: transaction) == nil
        }
        return isArriving ? record.presentTrialUsedUpAt : nil
    }

    /// When a trial reached its present owner; nil if it does so now.
    private func arrival(of transaction: Ownership.Transaction) -> Instant? {
        guard let bought = trials[transaction]?.arrivedAt, let step = ownership.steps[transaction]?.last,
            let moved = arrivals[step.event.key]
        else { return nil }
        return max(bought, moved)
    }

    /// The regular plan that replaces the trial plan of this transaction; nil if the trial plan stays.
    func replacement(of transaction: Ownership.Transaction) -> String? {
        guard let trial = trials[transaction], let buyer = buyer(of: transaction),
            earlierTrial(of: buyer, otherThan: transaction, overBy: trial.startedAt, trial.arrivedAt) != nil
        else { return nil }
        return trial.regularPlan
    }

    /// If the user had an earlier trial, this trial gets the start and the end of the earlier trial.
    func adjusted(_ subscription: StoreSubscription, of user: UserID) -> StoreSubscription {
        guard let plan = subscription.plan, cycles[plan]?.isTrial == true else { return subscription }
        // Two sources may use the same transaction.
        let name = ExactText(subscription.transaction)
        let named = transactions(of: user).filter {
            ExactText($0.name) == name && ownership.owner($0) == .user(user)
        }
        let earlier = named.compactMap { spentTrial(before: $0, of: user) }.min {
            $0.startedAt == $1.startedAt ? $0.endsAt < $1.endsAt : $0.startedAt < $1.startedAt
        }
        guard let earlier else { return subscription }
        var subscription = subscription
        subscription.startedAt = earlier.startedAt
        subscription.expiresAt = earlier.endsAt
        return subscription
    }

    /// The earlier trial of the owner (before the transfer) or of the buyer; nil if there is none, or if the regular
    /// plan replaces this trial.
    private func spentTrial(
        before transaction: Ownership.Transaction,
        of user: UserID
    ) -> (startedAt: Instant, endsAt: Instant)? {
        guard let trial = trials[transaction], let buyer = buyer(of: transaction) else { return nil }
        let ofBuyer = earlierTrial(of: buyer, otherThan: transaction, overBy: trial.startedAt, trial.arrivedAt)
        if ofBuyer != nil, trial.regularPlan != nil { return nil }
        if buyer != user, let since = ownership.steps[transaction]?.last?.event.at,
            let own = earlierTrial(of: user, otherThan: transaction, overBy: since, arrival(of: transaction))
        {
            return own
        }
        return ofBuyer
    }

    /// - Parameters:
    ///   - instant: when the days must be over.
    ///   - arrival: when the messages must be used up; nil is now.
    private func earlierTrial(
        of user: UserID,
        otherThan transaction: Ownership.Transaction,
        overBy instant: Instant,
        _ arrival: Instant?
    ) -> (startedAt: Instant, endsAt: Instant)? {
        var found: [(startedAt: Instant, endsAt: Instant)] = []
        var hasOwn = false
        let own = records[user]?.trial
        if let usedUpAt = messagesUsedUp(of: user, by: arrival) {
            hasOwn = true
            found.append((min(own?.startedAt ?? usedUpAt, usedUpAt), min(own?.endsAt ?? usedUpAt, usedUpAt)))
        } else if let own, own.startedAt < instant, own.endsAt <= instant {
            hasOwn = true
            found.append((own.startedAt, own.endsAt))
        }
        for other in transactions(of: user) where other != transaction {
            guard let trial = trials[other], trial.startedAt < instant, trial.endsAt <= instant else { continue }
            found.append((trial.startedAt, trial.endsAt))
        }
        // If trials began at the same instant, the user's own comes first.
        return found.enumerated().min { one, other in
            if one.element.startedAt != other.element.startedAt {
                return one.element.startedAt < other.element.startedAt
            }
            if (one.offset == 0) != (other.offset == 0), hasOwn { return one.offset == 0 }
            return one.element.endsAt < other.element.endsAt
        }?.element
    }

    private func messagesUsedUp(of user: UserID, by arrival: Instant?) -> Instant? {
        guard let record = records[user] else { return nil }
        guard let arrival else { return record.trialUsedUpAt ?? record.presentTrialUsedUpAt }
        return record.trialUsedUpAt.flatMap { $0 <= arrival ? $0 : nil }
    }

    private func transactions(of user: UserID) -> Set<Ownership.Transaction> { byUser[user] ?? [] }

    private func buyer(of transaction: Ownership.Transaction) -> UserID? { ownership.steps[transaction]?.last?.buyer }
}
