import Usage

@testable import Billing

/// A reference model of `CustomerReducer`, written rule by rule and without regard to cost.
///
/// This file has identities, ownership and outcomes. `ReferenceTrials` finds second trials, and `ReferenceReducer`
/// applies effects to subscriptions.
struct ReferenceCustomer {
    /// Deliberate faults, to prove that the comparison detects them.
    enum Fault: CaseIterable, Sendable {
        case ignoresProblems
        case appliesFutureEvents
        case oldestEventIdentifiesDigest
        case transferKeepsOwner
        case mergeTransfersNothing
        case wayBackMovesEverything
        case anonymousTransferLosesGiver
        case giftRaisesEverybody
        case lateTransferRaises
        case transfersBeforeClaims
        case ignoresRefunds
        case ignoresDeclaredPlans
        case ignoresTransfersAfterDeclaredPlans
        case secondTrialIsTrial
        case spentTrialRestarts
        case ignoresMessagesOfTrials
        case latePurchaseOfMessagesWins
        case earlierExpiryCounts
        case ignoresGrace
        case renewalKeepsRevocation
        case keepsPendingProduct
        case conversionKeepsAnchor
        case ignoresPreviousPlan
    }

    enum Customer: Hashable {
        case user(UserID)
        case digest(String)

        var user: UserID? {
            if case .user(let user) = self { user } else { nil }
        }
    }

    /// Two sources may use the same name.
    struct Transaction: Hashable {
        var source: String
        var name: String
    }

    /// The owner of a transaction since an event.
    struct Step {
        var owner: Customer
        var event: RecordedEvent
    }

    /// A claim or a transfer in an event.
    private enum Statement {
        case owns(Customer, Transaction)
        case gives(from: [String], to: Customer, isAlias: Bool)
    }

    let history: CustomerHistory
    let fault: Fault?
    /// In the order in which they happened, without events that are dated too far ahead.
    let events: [RecordedEvent]
    /// By source: the user of each digest.
    private(set) var users: [String: [String: UserID]] = [:]
    private(set) var steps: [Transaction: [Step]] = [:]
    /// In the order in which they happened.
    private(set) var purchases: [MessagePurchase] = []
    private let latest: Instant

    init(_ history: CustomerHistory, at now: Instant, fault: Fault? = nil) {
        self.history = history
        self.fault = fault
        let latest = now.advanced(bySeconds: 24 * 60 * 60)
        self.latest = latest
        events = history.events.filter { $0.at <= latest || $0.effects.isEmpty || fault == .appliesFutureEvents }
            .sorted { ReferenceCustomer.isOrdered($0, $1) }
        for event in fault == .oldestEventIdentifiesDigest ? events.reversed() : events {
            // The first list in an event that names both counts.
            for list in ReferenceCustomer.lists(event).reversed() {
                guard let user = list.lazy.compactMap({ UserID($0) }).first else { continue }
                for digest in list where UserID(digest) == nil { users[event.key.source, default: [:]][digest] = user }
            }
        }
        findOwners()
        findPurchases()
    }

    var state: CustomerState {
        var state = ReferenceReducer(self).state
        state.purchases = purchases
        state.transfers = ReferenceTransfers(self, state).all
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

// MARK: Identities

extension ReferenceCustomer {
    /// Lists of identities, each of one customer.
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

    func resolve(_ list: [String]?, _ source: String) -> Customer? {
        let list = list ?? []
        if let user = list.lazy.compactMap({ UserID($0) }).first { return .user(user) }
        if let user = list.lazy.compactMap({ users[source]?[$0] }).first { return .user(user) }
        return list.first.map { .digest($0) }
    }

    /// Whether one of the identities belongs to the customer.
    private func isNamed(_ customer: Customer, in list: [String], _ source: String) -> Bool {
        list.contains { resolve([$0], source) == customer }
    }
}

// MARK: Ownership

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

    /// Claims come before transfers.
    private func statements(_ event: RecordedEvent) -> [Statement] {
        let source = event.key.source
        let owner = resolve(event.identities, source)
        let claims = transactions(event).compactMap { transaction in owner.map { Statement.owns($0, transaction) } }
        let transfers = event.effects.compactMap { effect -> Statement? in
            switch effect.kind {
            case .transferred:
                resolve(effect.to, source).map { .gives(from: effect.from ?? [], to: $0, isAlias: false) }
            case .merged where fault != .mergeTransfersNothing:
                resolve(effect.identities, source).map { .gives(from: effect.identities ?? [], to: $0, isAlias: true) }
            default: nil
            }
        }
        return fault == .transfersBeforeClaims ? transfers + claims : claims + transfers
    }

    private mutating func findOwners() {
        for event in events {
            for statement in statements(event) {
                // All transactions are judged before one is moved.
                for (transaction, owner) in newOwners(by: statement, event) {
                    steps[transaction, default: []].append(Step(owner: owner, event: event))
                }
            }
        }
    }

    private func newOwners(by statement: Statement, _ event: RecordedEvent) -> [Transaction: Customer] {
        var found: [Transaction: Customer] = [:]
        switch statement {
        case .owns(let customer, let transaction):
            if steps[transaction]?.last?.owner != customer { found[transaction] = customer }
        case .gives(let list, let receiver, let isAlias):
            for (transaction, path) in steps where transaction.source == event.key.source {
                guard let owner = path.last?.owner, isNamed(owner, in: list, event.key.source) else { continue }
                let isKept = !isAlias && isKept(path.map(\.owner), from: receiver, event.key.source)
                let next = isKept ? ReferenceCustomer.lastUser(path.map(\.owner)).map { .user($0) } : receiver
                if next != owner { found[transaction] = next }
            }
        }
        return found
    }

    /// What the giver did not get from the receiver stays the giver's, if the receiver ever gave the giver anything.
    private func isKept(_ path: [Customer], from receiver: Customer, _ source: String) -> Bool {
        guard fault != .wayBackMovesEverything, let giver = ReferenceCustomer.lastUser(path), !path.contains(receiver)
        else { return false }
        return steps.contains { transaction, steps in
            transaction.source == source
                && ReferenceCustomer.hasGiven(receiver, to: .user(giver), steps.map(\.owner))
        }
    }

    /// Whether two customers follow each other in a path, or only names without a user are between a user and the next.
    private static func hasGiven(_ giver: Customer, to receiver: Customer, _ path: [Customer]) -> Bool {
        path.indices.dropFirst().contains { index in
            guard path[index] == receiver else { return false }
            let before = Array(path[..<index])
            return before.last == giver || lastUser(before).map { .user($0) } == giver
        }
    }

    /// The last user, unless somebody who was forgotten came after.
    static func lastUser(_ path: [Customer]) -> UserID? {
        var last: UserID?
        for customer in path {
            switch customer {
            case .user(let user): last = user
            case .digest(let name): if CustomerIdentity.isForgotten(name) { last = nil }
            }
        }
        return last
    }

    func owner(of transaction: Transaction) -> Customer? {
        fault == .transferKeepsOwner ? steps[transaction]?.first?.owner : steps[transaction]?.last?.owner
    }

    /// The customer that an effect concerns.
    func subject(of effect: BillingEffect, in event: RecordedEvent) -> Customer? {
        let source = event.key.source
        switch effect.kind {
        case .transferred: return resolve(effect.to, source)
        case .merged: return resolve(effect.identities, source)
        case .granted:
            let buyer = resolve(event.identities, source)
            return buyer?.user == nil ? holder(of: effect, in: event) ?? buyer : buyer
        default: return holder(of: effect, in: event)
        }
    }

    /// A purchase of messages whose transaction has no owner belongs to its buyer.
    private func holder(of effect: BillingEffect, in event: RecordedEvent) -> Customer? {
        guard let transaction = transaction(effect, event) else { return nil }
        let owner = owner(of: transaction)
        return owner?.user == nil ? purchase(transaction).map { .user($0.user) } ?? owner : owner
    }

    private func purchase(_ transaction: Transaction) -> MessagePurchase? {
        purchases.first { $0.source == transaction.source && $0.transaction == transaction.name }
    }
}

// MARK: One-time purchases of messages

extension ReferenceCustomer {
    /// A purchase counts only if no other effect of its event lacks a user, and such an effect may concern another
    /// purchase. Therefore this repeats until nothing changes.
    private mutating func findPurchases() {
        var found = purchasesMade()
        while found != purchases {
            purchases = found
            found = purchasesMade()
        }
    }

    /// The purchases of events without a problem, given the purchases found so far.
    private func purchasesMade() -> [MessagePurchase] {
        var made: [MessagePurchase] = []
        for event in fault == .latePurchaseOfMessagesWins ? events.reversed() : events
        where problem(event) == nil {
            for effect in event.effects where effect.kind == .granted {
                guard let transaction = transaction(effect, event), let messages = effect.messages, messages > 0,
                    !made.contains(where: { $0.source == transaction.source && $0.transaction == transaction.name }),
                    let buyer = resolve(event.identities, event.key.source)?.user ?? owner(of: transaction)?.user
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
        if fault == .ignoresRefunds { return false }
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

// MARK: Outcomes

extension ReferenceCustomer {
    /// Why an event has no effect at all.
    func problem(_ event: RecordedEvent) -> BillingProblem? {
        if event.at > latest, !event.effects.isEmpty, fault != .appliesFutureEvents { return .inTheFuture }
        if let problem = event.problem, fault != .ignoresProblems { return problem }
        for effect in event.effects {
            let needsUser = effect.kind == .granted ? effect.messages != 0 : ReferenceCustomer.isOnTransaction(effect)
            guard needsUser, !effect.isRefundOfSale, effect.kind != .linked,
                subject(of: effect, in: event)?.user == nil,
                !isOfForgottenUser(effect, event)
            else { continue }
            return .unknownUser
        }
        return nil
    }

    private func isOfForgottenUser(_ effect: BillingEffect, _ event: RecordedEvent) -> Bool {
        guard effect.kind != .granted, case .digest(let name)? = subject(of: effect, in: event) else { return false }
        return CustomerIdentity.isForgotten(name)
    }

    /// - Parameter outcome: of an effect on a subscription.
    func result(of event: RecordedEvent, _ outcome: (BillingEffect) -> EventResult.Outcome) -> EventResult {
        // Effects of a future event do not count yet, so the event concerns the customer that it names itself.
        let effects = event.at > latest && fault != .appliesFutureEvents ? [] : event.effects
        let users = effects.compactMap { effect in
            // Messages stay with their first buyer.
            let buyer = effect.kind == .granted ? transaction(effect, event).flatMap(purchase)?.user : nil
            return buyer ?? subject(of: effect, in: event)?.user
        }
        let user = users.first ?? resolve(event.identities, event.key.source)?.user
        if let problem = problem(event) { return EventResult(outcome: .failed, problem: problem, user: user) }
        let outcomes = event.effects.map { effect -> EventResult.Outcome in
            switch effect.kind {
            case .granted: return effect.messages == 0 ? .ignored : .applied
            case .linked where resolve(event.identities, event.key.source)?.user != nil: return .applied
            case .merged where resolve(effect.identities, event.key.source)?.user != nil: return .applied
            case .transferred, .merged, .linked: return hasTransferred(event) ? .applied : .waiting
            case .revoked where isPurchase(effect, event), .reinstated where isPurchase(effect, event): return .applied
            case _ where isOfForgottenUser(effect, event): return .ignored
            case .revoked where effect.isRefundOfSale && subject(of: effect, in: event)?.user == nil: return .ignored
            default: return outcome(effect)
            }
        }
        let best = [EventResult.Outcome.applied, .waiting, .outdated].first(where: outcomes.contains)
        return EventResult(outcome: best ?? .ignored, problem: nil, user: user)
    }

    private func isPurchase(_ effect: BillingEffect, _ event: RecordedEvent) -> Bool {
        transaction(effect, event).map { purchase($0) != nil } ?? false
    }

    /// Whether a transaction got a new owner by the event.
    private func hasTransferred(_ event: RecordedEvent) -> Bool {
        steps.values.contains { $0.dropFirst().contains { $0.event.key == event.key } }
    }
}
