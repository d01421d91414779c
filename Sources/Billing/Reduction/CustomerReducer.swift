import Usage

/// Computes what a customer has from all that was recorded of them: a pure function of the set of events, so every order
/// of arrival and every repetition ends alike.
public struct CustomerReducer {
    /// An event may be dated at most one day after the database's clock. A later date would override all events until then.
    static let aheadSecondsMaximum: Int64 = 86_400

    private typealias Transaction = Ownership.Transaction

    private let history: CustomerHistory
    /// In the order in which they happened, without those of the future.
    private let events: [RecordedEvent]
    private let early: [RecordedEvent]
    private let identities: Identities
    private let ownership: Ownership
    private let trials: StoreTrials
    /// The newest refund of each transaction, or of one that was taken back.
    private let lastRefunds: [Transaction: BillingEffect.Kind]
    private var state = CustomerState()
    /// Where each purchase stands in the state.
    private var purchasePlaces: [Transaction: Int] = [:]

    /// - Parameters:
    ///   - history: in any order, each event once.
    ///   - now: of the database's clock. Only events that are dated more than a day ahead depend on it.
    public static func reduce(_ history: CustomerHistory, at now: Instant) -> CustomerState {
        var reducer = CustomerReducer(history, now)
        let effective = reducer.findEffective()
        reducer.fold(effective)
        reducer.findTransfers(effective)
        reducer.reportTransfers(effective)
        return reducer.state
    }

    private init(_ history: CustomerHistory, _ now: Instant) {
        self.history = history
        let sorted = history.events.sorted {
            $0.at == $1.at ? $0.key < $1.key : $0.at < $1.at
        }
        let latest = now.advanced(bySeconds: CustomerReducer.aheadSecondsMaximum)
        events = sorted.filter { $0.at <= latest || $0.effects.isEmpty }
        early = sorted.filter { $0.at > latest && !$0.effects.isEmpty }
        identities = Identities(events)
        ownership = Ownership(events, identities)
        trials = StoreTrials(events, ownership, history)
        var refunds: [Transaction: BillingEffect.Kind] = [:]
        for event in events where event.problem == nil {
            for effect in event.effects where effect.isRefund {
                guard let name = effect.transaction else { continue }
                refunds[Transaction(source: event.key.source, name: name)] = effect.kind
            }
        }
        lastRefunds = refunds
    }

    // MARK: Purchases of messages

    private mutating func findPurchases(in effective: Set<RecordedEvent.Key>) {
        state.purchases = []
        purchasePlaces = [:]
        for event in events where effective.contains(event.key) {
            for effect in event.effects where effect.kind == .granted {
                guard let name = effect.transaction, let messages = effect.messages, messages > 0 else { continue }
                let transaction = Transaction(source: event.key.source, name: name)
                guard purchasePlaces[transaction] == nil, let user = buyer(of: transaction, in: event) else { continue }
                purchasePlaces[transaction] = state.purchases.count
                state.purchases.append(
                    MessagePurchase(
                        source: transaction.source,
                        transaction: name,
                        user: user,
                        at: event.at,
                        messages: messages,
                        isRefunded: isRefunded(transaction)
                    )
                )
            }
        }
    }

    private func buyer(of transaction: Transaction, in event: RecordedEvent) -> UserID? {
        identities.person(event.identities, source: event.key.source)?.user ?? ownership.owner(transaction)?.user
    }

    /// The newest of its refunds, and of those that were taken back, decides.
    private func isRefunded(_ transaction: Transaction) -> Bool {
        lastRefunds[transaction] == .revoked
    }

    private func purchase(_ transaction: Transaction) -> MessagePurchase? {
        purchasePlaces[transaction].map { state.purchases[$0] }
    }

    // MARK: Whose an event is

    /// Records a problem for each event that cannot be applied, and returns the other events. An event is applied completely
    /// or not at all. The owner of a refund may come from a purchase, and a purchase counts only if its event is applied. So
    /// this repeats until the set of applied events no longer changes.
    private mutating func findEffective() -> [RecordedEvent] {
        var keys: Set<RecordedEvent.Key> = []
        while true {
            findPurchases(in: keys)
            let effective = findProblems()
            let found = Set(effective.map(\.key))
            if found == keys { return effective }
            keys = found
        }
    }

    private mutating func findProblems() -> [RecordedEvent] {
        for event in early {
            state.results[event.key] = EventResult(
                outcome: .failed,
                problem: .inTheFuture,
                user: identities.person(event.identities, source: event.key.source)?.user
            )
        }
        return events.filter { event in
            let problem = event.problem ?? (event.effects.allSatisfy { isOwned($0, event) } ? nil : .unknownUser)
            state.results[event.key] = EventResult(
                outcome: problem == nil ? .ignored : .failed,
                problem: problem,
                user: user(of: event)
            )
            return problem == nil
        }
    }

    private func isOwned(_ effect: BillingEffect, _ event: RecordedEvent) -> Bool {
        switch effect.kind {
        case .transferred, .merged: return true
        case .granted where effect.messages == 0: return true
        default:
            return owner(of: effect, event) != nil || isOfSomebodyForgotten(effect, event)
        }
    }

    /// The newest owner of the effect's transaction is forgotten: it has no effect on anybody, and no user is missing.
    private func isOfSomebodyForgotten(_ effect: BillingEffect, _ event: RecordedEvent) -> Bool {
        guard let name = effect.transaction,
            case .digest(let owner)? = ownership.owner(Transaction(source: event.key.source, name: name))
        else { return false }
        return CustomerIdentity.isForgotten(owner)
    }

    private func owner(of effect: BillingEffect, _ event: RecordedEvent) -> UserID? {
        guard let name = effect.transaction else { return nil }
        let transaction = Transaction(source: event.key.source, name: name)
        if effect.kind == .granted { return purchase(transaction)?.user ?? buyer(of: transaction, in: event) }
        return ownership.owner(transaction)?.user ?? purchase(transaction)?.user
    }

    private func user(of event: RecordedEvent) -> UserID? {
        for effect in event.effects {
            let named: [String]? =
                switch effect.kind {
                case .transferred: effect.to
                case .merged: effect.identities
                default: nil
                }
            let user = named.map { identities.person($0, source: event.key.source)?.user } ?? owner(of: effect, event)
            if let user { return user }
        }
        return identities.person(event.identities, source: event.key.source)?.user
    }

    // MARK: Subscriptions

    /// What became of an effect before it is known whether its subscription has a plan.
    private struct Folded {
        var event: RecordedEvent.Key
        var outcome: EventResult.Outcome
        /// Whose plan decides whether it waits; nil where nothing does.
        var subscription: (user: UserID, transaction: String)?
    }

    private mutating func fold(_ effective: [RecordedEvent]) {
        var accounts: [UserID: UserFold] = [:]
        var folded: [Folded] = []
        for event in effective {
            for effect in event.effects {
                guard let name = effect.transaction, let user = owner(of: effect, event) else { continue }
                let transaction = Transaction(source: event.key.source, name: name)
                if effect.kind == .granted {
                    folded.append(Folded(event: event.key, outcome: effect.messages == 0 ? .ignored : .applied))
                    continue
                }
                var account = accounts[user] ?? UserFold(history.users[user] ?? UserRecord(), history.plans)
                let outcome = account.apply(
                    effect,
                    of: event,
                    transferredAt: transferInstant(transaction),
                    replacingTrial: trials.replacement(of: transaction)
                )
                accounts[user] = account
                // A refund of messages counts whatever plan an operator has set since.
                let isOfPurchase = effect.isRefund && purchase(transaction) != nil
                folded.append(
                    Folded(
                        event: event.key,
                        outcome: isOfPurchase ? .applied : outcome,
                        subscription: isOfPurchase ? nil : (user, name)
                    )
                )
            }
        }
        for (user, account) in accounts {
            state.subscriptions[user] = account.subscriptions.map { trials.settled($0, of: user) }
            state.users[user] = account.state
        }
        for user in trials.users.union(history.users.keys) where state.users[user] == nil {
            state.users[user] = UserFold(history.users[user] ?? UserRecord(), history.plans).state
        }
        for user in Array(state.users.keys) { state.users[user]?.trialStartedAt = trials.firstStart(of: user) }
        report(folded)
    }

    private func transferInstant(_ transaction: Transaction) -> Instant? {
        guard let steps = ownership.steps[transaction], steps.count > 1 else { return nil }
        return steps.last?.since
    }

    /// A subscription whose plan no event names has no effect until one does.
    private mutating func report(_ folded: [Folded]) {
        var outcomes: [RecordedEvent.Key: [EventResult.Outcome]] = [:]
        for effect in folded {
            var outcome = effect.outcome
            if outcome == .applied, let (user, name) = effect.subscription,
                !(state.subscriptions[user] ?? []).contains(where: { $0.transaction == name })
            {
                outcome = .waiting
            }
            outcomes[effect.event, default: []].append(outcome)
        }
        for (event, outcomes) in outcomes { state.results[event]?.outcome = EventResult.Outcome.combined(outcomes) }
    }

    // MARK: Transfers

    private mutating func findTransfers(_ effective: [RecordedEvent]) {
        var found: [(at: Instant, transfer: UsageTransfer)] = []
        for steps in ownership.steps.values {
            for (giver, receiver) in zip(steps, steps.dropFirst()) {
                guard let from = giver.person.user, let to = receiver.person.user else { continue }
                let transfer = UsageTransfer(event: receiver.event, giver: from, receiver: to)
                found.append((receiver.since, transfer))
            }
        }
        for event in effective {
            for effect in event.effects where effect.kind == .merged {
                let users = (effect.identities ?? []).compactMap { UserID($0) }
                guard let first = users.first else { continue }
                for other in users where other != first {
                    found.append((event.at, UsageTransfer(event: event.key, giver: other, receiver: first)))
                }
            }
        }
        var seen: Set<UsageTransfer> = []
        state.transfers = found.sorted {
            $0.at == $1.at ? $0.transfer.precedes($1.transfer) : $0.at < $1.at
        }.map(\.transfer).filter { seen.insert($0).inserted }
    }

    private mutating func reportTransfers(_ effective: [RecordedEvent]) {
        let moving = Set(ownership.steps.values.flatMap { $0.dropFirst().map(\.event) })
        for event in effective {
            for effect in event.effects where effect.kind == .transferred || effect.kind == .merged {
                let isKnown =
                    effect.kind == .merged
                    && identities.person(effect.identities ?? [], source: event.key.source)?.user != nil
                let outcome: EventResult.Outcome = isKnown || moving.contains(event.key) ? .applied : .waiting
                let before = state.results[event.key]?.outcome ?? .ignored
                state.results[event.key]?.outcome = EventResult.Outcome.combined([before, outcome])
            }
        }
    }
}

extension EventResult.Outcome {
    /// What became of an event of which this became of its effects.
    static func combined(_ outcomes: [EventResult.Outcome]) -> EventResult.Outcome {
        for outcome in [EventResult.Outcome.applied, .waiting, .outdated] where outcomes.contains(outcome) {
            return outcome
        }
        return .ignored
    }
}

extension BillingEffect {
    /// Also of messages that were bought once.
    fileprivate var isRefund: Bool { kind == .revoked || kind == .reinstated }
}

extension UsageTransfer {
    fileprivate func precedes(_ other: UsageTransfer) -> Bool {
        if event != other.event { return event < other.event }
        return giver == other.giver ? receiver < other.receiver : giver < other.giver
    }
}
