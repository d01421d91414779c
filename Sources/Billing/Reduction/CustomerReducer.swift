import Usage

/// Computes a customer's state from the recorded events. It is a pure function of the set of events, so the result does
/// not depend on the order of arrival or on repetitions.
public struct CustomerReducer {
    /// An event may be dated at most one day after the database's clock. A later date would override all events until
    /// then.
    static let aheadSecondsMaximum: Int64 = 86_400

    private typealias Transaction = Ownership.Transaction

    private let history: CustomerHistory
    /// The events in the order in which they happened, without `futureEvents`.
    private let events: [RecordedEvent]
    private let futureEvents: [RecordedEvent]
    private let identities: Identities
    private let ownership: Ownership
    private let trials: StoreTrials
    /// The newest refund, or reversal of a refund, of each transaction.
    private let lastRefunds: [Transaction: BillingEffect.Kind]
    private var state = CustomerState()
    /// The index of each purchase in the state.
    private var purchaseIndexes: [Transaction: Int] = [:]

    /// - Parameters:
    ///   - history: the events in any order, each once.
    ///   - now: the time by the database's clock. It decides only which events are dated too far ahead.
    public static func reduce(_ history: CustomerHistory, at now: Instant) -> CustomerState {
        reduce(history, at: now, meter: nil)
    }

    static func reduce(_ history: CustomerHistory, at now: Instant, meter: WorkMeter?) -> CustomerState {
        var reducer = CustomerReducer(history, now, meter)
        let effective = reducer.effectiveEvents()
        reducer.apply(effective)
        let transfers = UsageTransfers(reducer.ownership, history, reducer.state.subscriptions)
        reducer.state.transfers = transfers.found(in: effective)
        reducer.reportTransfers(effective)
        return reducer.state
    }

    private init(_ history: CustomerHistory, _ now: Instant, _ meter: WorkMeter?) {
        self.history = history
        let sorted = history.events.sorted(by: RecordedEvent.isBefore)
        let latest = now.advanced(bySeconds: CustomerReducer.aheadSecondsMaximum)
        events = sorted.filter { $0.at <= latest || $0.effects.isEmpty }
        futureEvents = sorted.filter { $0.at > latest && !$0.effects.isEmpty }
        identities = Identities(events)
        ownership = Ownership(events, identities, meter: meter)
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
        purchaseIndexes = [:]
        for event in events where effective.contains(event.key) {
            for effect in event.effects where effect.kind == .granted {
                guard let name = effect.transaction, let messages = effect.messages, messages > 0 else { continue }
                let transaction = Transaction(source: event.key.source, name: name)
                guard purchaseIndexes[transaction] == nil, let user = buyer(of: transaction, in: event) else {
                    continue
                }
                purchaseIndexes[transaction] = state.purchases.count
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
        identities.customer(event.identities, source: event.key.source)?.user ?? ownership.owner(transaction)?.user
    }

    private func isRefunded(_ transaction: Transaction) -> Bool {
        lastRefunds[transaction] == .revoked
    }

    private func purchase(_ transaction: Transaction) -> MessagePurchase? {
        purchaseIndexes[transaction].map { state.purchases[$0] }
    }

    // MARK: Users of events

    /// Records a problem for each event that cannot be applied, and returns the other events. An event is applied
    /// completely or not at all. The owner of a refund may come from a purchase, and a purchase counts only if its
    /// event is applied. Therefore this repeats until the set of applied events no longer changes.
    private mutating func effectiveEvents() -> [RecordedEvent] {
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
        for event in futureEvents {
            state.results[event.key] = EventResult(
                outcome: .failed,
                problem: .inTheFuture,
                user: identities.customer(event.identities, source: event.key.source)?.user
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
        case .transferred, .merged, .linked: return true
        case .granted where effect.messages == 0: return true
        case .revoked where effect.isRefundOfSale: return true
        default:
            return owner(of: effect, event) != nil || isOfForgottenUser(effect, event)
        }
    }

    /// Whether the newest owner of the effect's transaction was forgotten: the effect applies to no user, and none is
    /// missing.
    private func isOfForgottenUser(_ effect: BillingEffect, _ event: RecordedEvent) -> Bool {
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
            let user = named.map { identities.customer($0, source: event.key.source)?.user } ?? owner(of: effect, event)
            if let user { return user }
        }
        return identities.customer(event.identities, source: event.key.source)?.user
    }

    // MARK: Subscriptions

    /// The outcome of an effect, until it is known whether its subscription has a plan.
    private struct AppliedEffect {
        var event: RecordedEvent.Key
        var outcome: EventResult.Outcome
        /// The subscription without whose plan the effect waits; nil if it never waits.
        var subscription: (user: UserID, transaction: String)?
        /// The outcome as long as the subscription has no plan.
        var withoutPlan = EventResult.Outcome.waiting
    }

    private mutating func apply(_ effective: [RecordedEvent]) {
        var reducers: [UserID: UserReducer] = [:]
        var applied: [AppliedEffect] = []
        for event in effective {
            for effect in event.effects {
                guard effect.kind != .linked, let name = effect.transaction, let user = owner(of: effect, event) else {
                    continue
                }
                let transaction = Transaction(source: event.key.source, name: name)
                if effect.kind == .granted {
                    applied.append(AppliedEffect(event: event.key, outcome: effect.messages == 0 ? .ignored : .applied))
                    continue
                }
                let outcome = reducers[
                    user,
                    default: UserReducer(history.users[user] ?? UserRecord(), history.plans)
                ].apply(
                    effect,
                    of: event,
                    transferredAt: transferInstant(transaction),
                    replacingTrial: trials.replacement(of: transaction)
                )
                // A refund of messages counts even if an operator has set a plan since.
                let isOfPurchase = effect.isRefund && purchase(transaction) != nil
                applied.append(
                    AppliedEffect(
                        event: event.key,
                        outcome: isOfPurchase ? .applied : outcome,
                        subscription: isOfPurchase ? nil : (user, name),
                        withoutPlan: effect.isRefundOfSale ? .ignored : .waiting
                    )
                )
            }
        }
        for (user, reducer) in reducers {
            state.subscriptions[user] = reducer.subscriptions.map { trials.adjusted($0, of: user) }
            state.users[user] = reducer.state
        }
        for user in trials.users.union(history.users.keys) where state.users[user] == nil {
            state.users[user] = UserReducer(history.users[user] ?? UserRecord(), history.plans).state
        }
        for user in Array(state.users.keys) {
            state.users[user]?.trialStartedAt = trials.firstStart(of: user)
            state.users[user]?.trialUsedUpAt = trials.usedUp(of: user)
        }
        report(applied)
    }

    private func transferInstant(_ transaction: Transaction) -> Instant? {
        guard let steps = ownership.steps[transaction], steps.count > 1 else { return nil }
        return steps.last?.event.at
    }

    /// Effects of a subscription wait until an event names its plan.
    private mutating func report(_ applied: [AppliedEffect]) {
        let known = state.subscriptions.mapValues { Set($0.map { ExactText($0.transaction) }) }
        var outcomes: [RecordedEvent.Key: [EventResult.Outcome]] = [:]
        for effect in applied {
            var outcome = effect.outcome
            if outcome == .applied, let (user, name) = effect.subscription,
                known[user]?.contains(ExactText(name)) != true
            {
                outcome = effect.withoutPlan
            }
            outcomes[effect.event, default: []].append(outcome)
        }
        for (event, outcomes) in outcomes { state.results[event]?.outcome = EventResult.Outcome.combined(outcomes) }
    }

    // MARK: Transfers

    private mutating func reportTransfers(_ effective: [RecordedEvent]) {
        let transferring = Set(ownership.steps.values.flatMap { $0.dropFirst().map(\.event.key) })
        for event in effective {
            for effect in event.effects where [.transferred, .merged, .linked].contains(effect.kind) {
                let names = effect.kind == .linked ? event.identities : effect.identities ?? []
                let isKnown =
                    effect.kind != .transferred && identities.customer(names, source: event.key.source)?.user != nil
                let outcome: EventResult.Outcome = isKnown || transferring.contains(event.key) ? .applied : .waiting
                let before = state.results[event.key]?.outcome ?? .ignored
                state.results[event.key]?.outcome = EventResult.Outcome.combined([before, outcome])
            }
        }
    }
}

extension EventResult.Outcome {
    /// The outcome of an event from the outcomes of its effects.
    static func combined(_ outcomes: [EventResult.Outcome]) -> EventResult.Outcome {
        for outcome in [EventResult.Outcome.applied, .waiting, .outdated] where outcomes.contains(outcome) {
            return outcome
        }
        return .ignored
    }
}

extension BillingEffect {
    /// Whether it is a refund or its reversal, also of a one-time purchase.
    fileprivate var isRefund: Bool { kind == .revoked || kind == .reinstated }

    /// Whether it is a refund of something that was bought once. Headroom may know nothing of it, because the shop
    /// sells other things.
    var isRefundOfSale: Bool { kind == .revoked && quantity != nil }
}
