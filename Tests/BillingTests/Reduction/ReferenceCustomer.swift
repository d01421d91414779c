import Usage

@testable import Billing

/// What a customer has, rule by rule and without regard to cost. `CustomerReducer` must answer the same.
///
/// This file says who is who, who owns what, and what became of each event. `ReferenceTrials` says which trials are
/// second ones, `ReferenceFold` what effects do to a subscription.
struct ReferenceCustomer {
    /// Rules that can be broken on purpose, to see that the comparison notices.
    enum Mistake: CaseIterable, Sendable {
        case ignoresProblems
        case believesTheFuture
        case oldestEventNamesDigest
        case transferLeavesOldOwner
        case mergeMovesNothing
        case transfersBeforeClaims
        case forgetsRefunds
        case forgetsDeclaredPlans
        case forgetsTransfersAfterDeclaredPlans
        case secondTrialIsTrial
        case spentTrialRestarts
        case latePurchaseOfMessagesWins
        case earlierExpiryCounts
        case graceForgotten
        case renewalKeepsRevocation
        case keepsPendingProduct
        case conversionKeepsAnchor
        case previousPlanForgotten
    }

    enum Customer: Hashable {
        case user(UserID)
        case digest(String)

        var user: UserID? {
            if case .user(let user) = self { user } else { nil }
        }
    }

    /// Stores may name different transactions alike.
    struct Transaction: Hashable {
        var source: String
        var name: String
    }

    /// A transaction's owner from an event on.
    struct Step {
        var person: Customer
        var event: RecordedEvent
    }

    /// One thing that an event says about owners.
    private enum Statement {
        case owns(Customer, Transaction)
        case gives(from: [String], to: Customer)
    }

    let history: CustomerHistory
    let mistake: Mistake?
    /// In the order in which they happened, without those that would have an effect before their time.
    let events: [RecordedEvent]
    /// By source: which digest is which user.
    private(set) var users: [String: [String: UserID]] = [:]
    private(set) var steps: [Transaction: [Step]] = [:]
    /// In the order in which they happened.
    private(set) var purchases: [MessagePurchase] = []
    private let tooLate: Instant

    init(_ history: CustomerHistory, at now: Instant, mistake: Mistake? = nil) {
        self.history = history
        self.mistake = mistake
        let tooLate = now.advanced(bySeconds: 24 * 60 * 60)
        self.tooLate = tooLate
        events = history.events.filter { $0.at <= tooLate || $0.effects.isEmpty || mistake == .believesTheFuture }
            .sorted { ReferenceCustomer.isOrdered($0, $1) }
        for event in mistake == .oldestEventNamesDigest ? events.reversed() : events {
            // The first list of an event that names both counts.
            for list in ReferenceCustomer.lists(event).reversed() {
                guard let user = list.lazy.compactMap({ UserID($0) }).first else { continue }
                for digest in list where UserID(digest) == nil { users[event.key.source, default: [:]][digest] = user }
            }
        }
        for transaction in Set(events.flatMap(transactions)) { steps[transaction] = owners(of: transaction) }
        findPurchases()
    }

    var state: CustomerState {
        var state = ReferenceFold(self).state
        state.purchases = purchases
        state.transfers = transfers
        return state
    }
}

// MARK: Order

extension ReferenceCustomer {
    static func isOrdered(_ one: RecordedEvent, _ other: RecordedEvent) -> Bool {
        if one.at != other.at { return one.at < other.at }
        if one.key.source != other.key.source { return isBefore(one.key.source, other.key.source) }
        return isBefore(one.key.id, other.key.id)
    }

    static func isBefore(_ one: String, _ other: String) -> Bool {
        Array(one.utf8).lexicographicallyPrecedes(Array(other.utf8))
    }
}

// MARK: Who is who

extension ReferenceCustomer {
    /// Each list of names of one person.
    private static func lists(_ event: RecordedEvent) -> [[String]] {
        var lists = [event.identities]
        for effect in event.effects {
            switch effect.kind {
            case .transferred: lists += [effect.to ?? [], effect.from ?? []]
            case .merged: lists.append(effect.identities ?? [])
            default: break
            }
        }
        return lists
    }

    func person(_ list: [String]?, _ source: String) -> Customer? {
        let list = list ?? []
        if let user = list.lazy.compactMap({ UserID($0) }).first { return .user(user) }
        if let user = list.lazy.compactMap({ users[source]?[$0] }).first { return .user(user) }
        return list.first.map { .digest($0) }
    }

    /// Whether one of the names is this person's.
    private func isNamed(_ person: Customer, in list: [String], _ source: String) -> Bool {
        list.contains { self.person([$0], source) == person }
    }
}

// MARK: Who owns what

extension ReferenceCustomer {
    static func isOnTransaction(_ effect: BillingEffect) -> Bool {
        switch effect.kind {
        case .granted, .transferred, .merged: false
        default: true
        }
    }

    func transaction(_ effect: BillingEffect, _ event: RecordedEvent) -> Transaction? {
        effect.transaction.map { Transaction(source: event.key.source, name: $0) }
    }

    private func transactions(_ event: RecordedEvent) -> [Transaction] {
        event.effects.filter(ReferenceCustomer.isOnTransaction).compactMap { transaction($0, event) }
    }

    /// An event says whose its transactions are before it gives anything away.
    private func statements(_ event: RecordedEvent) -> [Statement] {
        let source = event.key.source
        let owner = person(event.identities, source)
        let claims = transactions(event).compactMap { transaction in owner.map { Statement.owns($0, transaction) } }
        let gifts = event.effects.compactMap { effect -> Statement? in
            switch effect.kind {
            case .transferred:
                person(effect.to, source).map { .gives(from: effect.from ?? [], to: $0) }
            case .merged where mistake != .mergeMovesNothing:
                person(effect.identities, source).map { .gives(from: effect.identities ?? [], to: $0) }
            default: nil
            }
        }
        return mistake == .transfersBeforeClaims ? gifts + claims : claims + gifts
    }

    private func owners(of transaction: Transaction) -> [Step] {
        var steps: [Step] = []
        for event in events where event.key.source == transaction.source {
            for statement in statements(event) {
                let owner = steps.last?.person
                var next = owner
                switch statement {
                case .owns(let person, transaction): next = person
                case .owns: break
                case .gives(let list, let receiver):
                    if let owner, isNamed(owner, in: list, event.key.source) { next = receiver }
                }
                if let next, next != owner { steps.append(Step(person: next, event: event)) }
            }
        }
        return steps
    }

    func owner(of transaction: Transaction) -> Customer? {
        mistake == .transferLeavesOldOwner ? steps[transaction]?.first?.person : steps[transaction]?.last?.person
    }

    /// Whom an effect is about.
    func person(of effect: BillingEffect, in event: RecordedEvent) -> Customer? {
        let source = event.key.source
        switch effect.kind {
        case .transferred: return person(effect.to, source)
        case .merged: return person(effect.identities, source)
        case .granted:
            let buyer = person(event.identities, source)
            return buyer?.user == nil ? holder(of: effect, in: event) ?? buyer : buyer
        default: return holder(of: effect, in: event)
        }
    }

    /// A purchase of messages that no event assigns to a user is its buyer's.
    private func holder(of effect: BillingEffect, in event: RecordedEvent) -> Customer? {
        guard let transaction = transaction(effect, event) else { return nil }
        let owner = owner(of: transaction)
        return owner?.user == nil ? purchase(transaction).map { .user($0.user) } ?? owner : owner
    }

    private func purchase(_ transaction: Transaction) -> MessagePurchase? {
        purchases.first { $0.source == transaction.source && $0.transaction == transaction.name }
    }
}

// MARK: Messages that were bought once

extension ReferenceCustomer {
    /// A purchase counts only if nothing else in its event lacks a user, and what does may be about another purchase.
    private mutating func findPurchases() {
        var found = purchasesMade()
        while found != purchases {
            purchases = found
            found = purchasesMade()
        }
    }

    /// Those of the events that have no problem, given the purchases that are known so far.
    private func purchasesMade() -> [MessagePurchase] {
        var made: [MessagePurchase] = []
        for event in mistake == .latePurchaseOfMessagesWins ? events.reversed() : events
        where problem(event) == nil {
            for effect in event.effects where effect.kind == .granted {
                guard let transaction = transaction(effect, event), let messages = effect.messages, messages > 0,
                    !made.contains(where: { $0.source == transaction.source && $0.transaction == transaction.name }),
                    let buyer = person(event.identities, event.key.source)?.user ?? owner(of: transaction)?.user
                else { continue }
                made.append(
                    MessagePurchase(
                        source: transaction.source,
                        transaction: transaction.name,
                        user: buyer,
                        at: event.at,
                        messages: messages,
                        isRefunded: isRefunded(transaction)
                    )
                )
            }
        }
        return made
    }

    private func isRefunded(_ transaction: Transaction) -> Bool {
        if mistake == .forgetsRefunds { return false }
        var isRefunded = false
        for event in events where event.problem == nil {
            for effect in event.effects where self.transaction(effect, event) == transaction {
                if effect.kind == .revoked { isRefunded = true }
                if effect.kind == .reinstated { isRefunded = false }
            }
        }
        return isRefunded
    }
}

// MARK: What becomes of an event

extension ReferenceCustomer {
    /// Why an event has no effect at all.
    func problem(_ event: RecordedEvent) -> BillingProblem? {
        if event.at > tooLate, !event.effects.isEmpty, mistake != .believesTheFuture { return .inTheFuture }
        if let problem = event.problem, mistake != .ignoresProblems { return problem }
        for effect in event.effects {
            let needsUser = effect.kind == .granted ? effect.messages != 0 : ReferenceCustomer.isOnTransaction(effect)
            guard needsUser, person(of: effect, in: event)?.user == nil, !isOfSomebodyForgotten(effect, event) else {
                continue
            }
            return .unknownUser
        }
        return nil
    }

    private func isOfSomebodyForgotten(_ effect: BillingEffect, _ event: RecordedEvent) -> Bool {
        guard effect.kind != .granted, case .digest(let name)? = person(of: effect, in: event) else { return false }
        return CustomerIdentity.isForgotten(name)
    }

    /// - Parameter outcome: of an effect on a subscription.
    func result(
        of event: RecordedEvent,
        _ outcome: (BillingEffect) -> EventResult.Outcome
    ) -> EventResult {
        // What an event of the future says does not count yet, so it concerns whom it names itself.
        let effects = event.at > tooLate && mistake != .believesTheFuture ? [] : event.effects
        let users = effects.compactMap { effect in
            // Messages stay with whom they were first sold to.
            let buyer = effect.kind == .granted ? transaction(effect, event).flatMap(purchase)?.user : nil
            return buyer ?? person(of: effect, in: event)?.user
        }
        let user = users.first ?? person(event.identities, event.key.source)?.user
        if let problem = problem(event) { return EventResult(outcome: .failed, problem: problem, user: user) }
        let outcomes = event.effects.map { effect -> EventResult.Outcome in
            switch effect.kind {
            case .granted: return effect.messages == 0 ? .ignored : .applied
            case .merged where person(effect.identities, event.key.source)?.user != nil: return .applied
            case .transferred, .merged: return hasGiven(event) ? .applied : .waiting
            case .revoked where isPurchase(effect, event), .reinstated where isPurchase(effect, event): return .applied
            case _ where isOfSomebodyForgotten(effect, event): return .ignored
            default: return outcome(effect)
            }
        }
        let best = [EventResult.Outcome.applied, .waiting, .outdated].first(where: outcomes.contains)
        return EventResult(outcome: best ?? .ignored, problem: nil, user: user)
    }

    private func isPurchase(_ effect: BillingEffect, _ event: RecordedEvent) -> Bool {
        transaction(effect, event).map { purchase($0) != nil } ?? false
    }

    /// Whether a transaction changed hands in the event.
    private func hasGiven(_ event: RecordedEvent) -> Bool {
        steps.values.contains { $0.dropFirst().contains { $0.event.key == event.key } }
    }

    /// Who takes over whose counts.
    private var transfers: [UsageTransfer] {
        var transfers: [(event: RecordedEvent, transfer: UsageTransfer)] = []
        func add(_ giver: UserID, _ receiver: UserID, in event: RecordedEvent) {
            let transfer = UsageTransfer(event: event.key, giver: giver, receiver: receiver)
            if giver != receiver, !transfers.contains(where: { $0.transfer == transfer }) {
                transfers.append((event, transfer))
            }
        }
        for steps in steps.values {
            for (before, after) in zip(steps, steps.dropFirst()) {
                if let giver = before.person.user, let receiver = after.person.user {
                    add(giver, receiver, in: after.event)
                }
            }
        }
        for event in events where problem(event) == nil {
            for effect in event.effects where effect.kind == .merged {
                let users = (effect.identities ?? []).compactMap { UserID($0) }
                for user in users.dropFirst() { add(user, users[0], in: event) }
            }
        }
        return transfers.sorted { one, other in
            if one.event.key != other.event.key { return ReferenceCustomer.isOrdered(one.event, other.event) }
            if one.transfer.giver != other.transfer.giver { return one.transfer.giver < other.transfer.giver }
            return one.transfer.receiver < other.transfer.receiver
        }.map(\.transfer)
    }
}
