import Usage

/// Finds the transfers of subscriptions between users, and decides which of them raise the receiver's counts.
///
/// The decision uses the transaction's present facts (plan, dates, refund) and the time of the transfer, so it does not
/// depend on the order in which events arrive, nor on when they arrive.
struct UsageTransfers {
    private typealias Transaction = Ownership.Transaction

    private struct Pair: Hashable, Comparable {
        var giver: UserID
        var receiver: UserID

        static func < (lhs: Pair, rhs: Pair) -> Bool {
            lhs.giver == rhs.giver ? lhs.receiver < rhs.receiver : lhs.giver < rhs.giver
        }
    }

    private let ownership: Ownership
    private let history: CustomerHistory
    private let subscriptions: [UserID: [ExactText: StoreSubscription]]

    /// - Parameter subscriptions: the subscriptions of all users, after all events.
    init(_ ownership: Ownership, _ history: CustomerHistory, _ subscriptions: [UserID: [StoreSubscription]]) {
        self.ownership = ownership
        self.history = history
        self.subscriptions = subscriptions.mapValues { list in
            Dictionary(list.map { (ExactText($0.transaction), $0) }) { first, _ in first }
        }
    }

    /// - Parameter effective: the events without a problem, in the order in which they happened.
    /// - Returns: the transfers, in the order in which they happened.
    func found(in effective: [RecordedEvent]) -> [UsageTransfer] {
        var moved: [OwnershipStep.Position: [Pair: Set<Transaction>]] = [:]
        for (transaction, steps) in ownership.steps {
            for (previous, step) in zip(steps, steps.dropFirst()) {
                guard let receiver = step.customer.user, let giver = previous.lastUser, giver != receiver
                else { continue }
                moved[step.event, default: [:]][Pair(giver: giver, receiver: receiver), default: []].insert(transaction)
            }
        }
        var aliases: Set<OwnershipStep.Position> = []
        for event in effective {
            for effect in event.effects where effect.kind == .merged {
                let users = (effect.identities ?? []).compactMap { UserID($0) }
                guard let receiver = users.first else { continue }
                let position = OwnershipStep.Position(at: event.at, key: event.key)
                aliases.insert(position)
                for giver in users where giver != receiver {
                    moved[position, default: [:]][Pair(giver: giver, receiver: receiver), default: []].formUnion([])
                }
            }
        }
        var transfers: [UsageTransfer] = []
        for (event, pairs) in moved.sorted(by: { $0.key < $1.key }) {
            for (pair, transactions) in pairs.sorted(by: { $0.key < $1.key }) {
                transfers.append(transfer(transactions, pair, event, isAlias: aliases.contains(event)))
            }
        }
        return transfers
    }

    private func transfer(
        _ transactions: Set<Transaction>,
        _ pair: Pair,
        _ event: OwnershipStep.Position,
        isAlias: Bool
    ) -> UsageTransfer {
        let moved = transactions.compactMap(subscription)
        let ownAllowance = allowance(of: pair.receiver, before: event, without: transactions)
        var transfer = UsageTransfer(event: event.key, giver: pair.giver, receiver: pair.receiver)
        transfer.plans = moved.filter { history.hasAccess($0, at: event.at) }.compactMap(\.plan).filter { plan in
            ownAllowance.map { $0 < history.allowance(of: plan) } ?? true
        }
        // An alias names one person: a trial that the other id used is not given again.
        if isAlias, history.users[pair.receiver]?.trial == nil { transfer.plans.append(Plan.trial.name) }
        transfer.plans = Array(Set(transfer.plans)).sorted()
        if transfer.plans.isEmpty, let ownAllowance {
            let given = moved.compactMap(\.plan).map(history.allowance).max()
            transfer.keepsOwnCount = given.map { $0 <= ownAllowance } ?? false
        }
        return transfer
    }

    /// The transaction's subscription of its present owner.
    private func subscription(of transaction: Transaction) -> StoreSubscription? {
        guard let owner = ownership.owner(transaction)?.user else { return nil }
        return subscriptions[owner]?[ExactText(transaction.name)]
    }

    /// The largest allowance to which a user had access just before an event; nil without access.
    private func allowance(
        of user: UserID,
        before event: OwnershipStep.Position,
        without moved: Set<Transaction>
    ) -> Int? {
        let bought = ownership.transactions(of: user).filter { transaction in
            !moved.contains(transaction) && ownership.owner(transaction, before: event) == .user(user)
        }.compactMap(subscription)
        let others = history.users[user]?.otherSubscriptions ?? []
        return (bought + others).filter { subscription in
            guard let startedAt = subscription.startedAt, startedAt <= event.at else { return false }
            return history.hasAccess(subscription, at: event.at)
        }.compactMap(\.plan).map(history.allowance).max()
    }
}

extension CustomerHistory {
    /// The messages in 30 days (`headroom.comparable_allowance`). No limit is the largest number.
    fileprivate func allowance(of plan: String) -> Int {
        allowances[plan] ?? .max
    }

    /// Whether a subscription gives access. The rules are those of `headroom.judged_subscription`.
    fileprivate func hasAccess(_ subscription: StoreSubscription, at instant: Instant) -> Bool {
        guard let plan = subscription.plan, let cycle = plans[plan] else { return false }
        if let revokedAt = subscription.revokedAt, revokedAt <= instant { return false }
        guard let end = subscription.accessEnd(cycle, renewalLeewaySeconds) else { return true }
        return instant < end
    }
}

extension StoreSubscription {
    /// The end of access; nil if it has none.
    fileprivate func accessEnd(_ cycle: Plan.Cycle, _ renewalLeewaySeconds: Int64) -> Instant? {
        if case .trial(let days) = cycle {
            return expiresAt ?? startedAt?.advanced(bySeconds: Int64(days) * 86_400)
        }
        guard billingIssueAt != nil else {
            let mayRenew =
                unsubscribedAt == nil && revokedAt == nil && renews != false
                && !BillingEvent.reservedTransactions.contains(transaction)
            return expiresAt?.advanced(bySeconds: mayRenew ? renewalLeewaySeconds : 0)
        }
        guard let expiresAt else { return graceUntil }
        return max(expiresAt, graceUntil ?? expiresAt.advanced(bySeconds: StoreSubscription.fallbackGraceSeconds))
    }
}
