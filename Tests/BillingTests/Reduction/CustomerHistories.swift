import TestSupport
import Usage

@testable import Billing

/// Random histories of few customers, transactions and instants, so that many combinations occur.
struct CustomerHistories {
    /// `gone` is not among them.
    static let plans: [String: Plan.Cycle] = [
        "paid": .monthly, "pro": .monthly, "trial": .trial(days: 3), "taste": .trial(days: 7),
        "week": .weekly, "day": .daily, "free": .lifetime,
    ]
    static let allowances = ["paid": 800, "trial": 100, "taste": 100, "week": 200, "day": 30, "free": 0]
    static let now = instant(44)
    static let renewalLeewaySeconds: Int64 = 24 * 60 * 60

    /// Instants are 12 hours apart, from the 20th of a month on.
    private static func instant(_ number: Int) -> Instant {
        at("2026-01-20T00:00:00Z").advanced(bySeconds: Int64(number) * 12 * 60 * 60)
    }

    private var random: SeededGenerator
    private var userCount = 1
    private var sources: [String] = []
    private var transactions: [String] = []
    /// The number of different instants in a history.
    private var instants = 40

    init(seed: UInt64) { random = SeededGenerator(seed: seed) }

    mutating func next() -> CustomerHistory {
        userCount = Int.random(in: 1...4, using: &random)
        sources = random.chance(60) ? ["appstore"] : ["appstore", "revenuecat"]
        transactions = (0..<Int.random(in: 1...3, using: &random)).map { "T\($0)" }
        instants = random.element(of: [6, 20, 40])
        var history = CustomerHistory(
            events: [],
            plans: CustomerHistories.plans,
            allowances: CustomerHistories.allowances,
            renewalLeewaySeconds: CustomerHistories.renewalLeewaySeconds
        )
        for number in 0..<userCount where random.chance(50) { history.users[user(number)] = record() }
        let isOrdinary = random.chance(50)
        for number in 0..<Int.random(in: 1...10, using: &random) {
            history.events.append(event(number, isOrdinary: isOrdinary))
        }
        return history
    }

    mutating func shuffled(_ events: [RecordedEvent]) -> [RecordedEvent] { events.shuffled(using: &random) }

    private func user(_ number: Int) -> UserID { TestSupport.user(UInt64(number)) }

    private mutating func instant() -> Instant {
        CustomerHistories.instant(Int.random(in: 0..<instants, using: &random))
    }

    private mutating func instant(percent: Int) -> Instant? { random.chance(percent) ? instant() : nil }

    private mutating func record() -> UserRecord {
        var record = UserRecord()
        if random.chance(50) {
            record.declaredAt = instant()
            record.declaredPlan = random.element(of: ["paid", "pro", "day", nil])
            record.declaredAnchorDay = random.element(of: [1, 5, 31])
            record.declaredPreviousPlan = random.element(of: ["paid", "pro", nil])
        }
        if random.chance(50) {
            let start = instant()
            record.trial = UserRecord.Trial(startedAt: start, endsAt: start.advanced(bySeconds: 3 * 24 * 60 * 60))
        }
        record.trialUsedUpAt = instant(percent: 15)
        record.presentTrialUsedUpAt = instant(percent: 25)
        for name in ["operator", "first message"] where random.chance(20) {
            var subscription = StoreSubscription(transaction: name)
            subscription.plan = random.element(of: ["paid", "pro", "day", "trial", "free"])
            subscription.startedAt = instant()
            subscription.expiresAt = instant(percent: 50)
            record.otherSubscriptions.append(subscription)
        }
        return record
    }
}

// MARK: Events

extension CustomerHistories {
    /// - Parameter isOrdinary: without transfers, aliases and problems, so that subscriptions have longer stories.
    private mutating func event(_ number: Int, isOrdinary: Bool) -> RecordedEvent {
        if random.chance(isOrdinary ? 0 : 6) { return link(number) }
        let at = random.chance(2) ? CustomerHistories.instant(Int.random(in: 45...49, using: &random)) : instant()
        let isTransfer = random.chance(isOrdinary ? 0 : 30)
        let count = random.element(of: isTransfer ? [1, 1, 2] : [0, 1, 1, 1, 1, 1, 1, 1, 2])
        let effects = (0..<count).map { index in
            isTransfer && index == 0 ? transfer() : effect(isOrdinary: isOrdinary)
        }
        // Ids do not order as events are made.
        let id = "\(random.element(of: ["a", "b", "B"]))\(number)"
        return RecordedEvent(
            key: RecordedEvent.Key(source: random.element(of: sources), id: id),
            at: at,
            receivedAt: random.chance(80) ? at : random.chance(30) ? at.advanced(bySeconds: -60) : instant(),
            appliedAt: instant(percent: 50),
            environment: random.element(of: ["production", "sandbox", nil]),
            identities: isTransfer && random.chance(80) ? [] : identities(isOrdinary: isOrdinary),
            effects: effects,
            problem: random.chance(isOrdinary ? 1 : 6) ? .unmappedProduct("unknown") : nil
        )
    }

    private mutating func link(_ number: Int) -> RecordedEvent {
        let at = instant()
        let user = user(Int.random(in: 0..<userCount, using: &random)).description
        let digest = "sha256:\(Int.random(in: 0..<3, using: &random))"
        let transaction = random.chance(70) ? random.element(of: transactions + ["G0"]) : nil
        return RecordedEvent(
            key: RecordedEvent.Key(source: random.element(of: sources), id: "link:\(number)"),
            at: at,
            receivedAt: at,
            appliedAt: instant(percent: 50),
            identities: transaction != nil && random.chance(50) ? [user] : [user, digest],
            effects: [BillingEffect(.linked, transaction: transaction)]
        )
    }

    private mutating func identities(isOrdinary: Bool) -> [String] {
        let first = user(Int.random(in: 0..<userCount, using: &random)).description
        let other = user(Int.random(in: 0..<userCount, using: &random)).description
        let digest = "sha256:\(Int.random(in: 0..<3, using: &random))"
        return switch Int.random(in: 0..<(isOrdinary ? 12 : 16), using: &random) {
        case 0..<7: [first]
        case 7: [digest, first]
        case 8: []
        case 9..<12: isOrdinary ? [user(0).description] : [digest]
        case 12: [digest]
        case 13: ["sha256:3", digest]
        case 14: [first, digest]
        default: [other, digest, first]
        }
    }

    private mutating func transfer() -> BillingEffect {
        if random.chance(30) { return .merged(identities(isOrdinary: false) + identities(isOrdinary: false)) }
        return .transferred(from: identities(isOrdinary: false), to: identities(isOrdinary: false))
    }

    private mutating func effect(isOrdinary: Bool) -> BillingEffect {
        let kind: BillingEffect.Kind = random.element(of: [
            .purchased, .purchased, .purchased, .renewed, .renewed, .renewed, .cancelled, .uncancelled, .gracePeriod,
            .billingRetry, .expired, .expired, .revoked, .reinstated, .productChanged, .productChanged, .extended,
            .temporary, .granted,
        ])
        // Now and then a purchase of messages has the name of a subscription.
        let isBoughtOnce = kind == .granted || (kind == .revoked || kind == .reinstated) && random.chance(40)
        let own = isBoughtOnce && random.chance(90) ? ["G0", "G1"] : transactions
        var effect = BillingEffect(kind, transaction: random.element(of: own))
        if kind == .granted {
            effect.messages = random.element(of: [0, 50, 100])
            return effect
        }
        effect.product = random.element(of: ["monthly", "large", nil])
        effect.expires = instant(percent: 70)
        effect.started = instant(percent: 20)
        if random.chance(10) { effect.isUnpaid = true }
        if random.chance(40) {
            var sale = BillingEffect.Sale(store: random.element(of: ["app_store", nil]))
            if random.chance(50) { (sale.price, sale.currency) = ("9.99", "USD") }
            if random.chance(20) { sale.renews = false }
            effect.sale = sale
        }
        if kind == .gracePeriod || kind == .billingRetry { effect.graceUntil = instant(percent: 40) }
        if random.chance(10) { effect.anchorDay = random.element(of: [7, 30]) }
        if random.chance(kind == .purchased ? 95 : 50) {
            effect.plan = random.element(
                of: ["paid", "paid", "pro", "week", "day", "free", "trial", "trial", "taste", "gone"]
            )
        }
        if kind == .productChanged, random.chance(60) {
            effect.plan = nil
            effect.nextPlan = random.element(of: ["paid", "pro", "trial", nil])
            effect.nextProduct = random.element(of: ["monthly", "large", nil])
        }
        if effect.plan == "trial" || effect.plan == "taste" {
            effect.period = .trial
            effect.regularPlan = random.element(of: ["paid", "pro", nil])
        }
        return effect
    }
}

// MARK: Failing histories

extension CustomerHistory {
    /// The smallest history for which `fails` holds.
    func shrunk(while fails: (CustomerHistory) -> Bool) -> CustomerHistory {
        var smallest = self
        var isSmaller = true
        while isSmaller {
            let candidate = smallest.smaller.first(where: fails)
            isSmaller = candidate != nil
            smallest = candidate ?? smallest
        }
        return smallest
    }

    /// The history without one event, one effect, or the record of one user.
    private var smaller: [CustomerHistory] {
        var smaller: [CustomerHistory] = []
        func add(_ change: (inout CustomerHistory) -> Void) {
            var history = self
            change(&history)
            smaller.append(history)
        }
        for index in events.indices { add { $0.events.remove(at: index) } }
        for user in users.keys { add { $0.users[user] = nil } }
        for user in users.keys where users[user]?.trial != nil { add { $0.users[user]?.trial = nil } }
        for user in users.keys where users[user]?.declaredAt != nil { add { $0.users[user]?.declaredAt = nil } }
        for index in events.indices {
            for effect in events[index].effects.indices where events[index].effects.count > 1 {
                add { $0.events[index].effects.remove(at: effect) }
            }
            if !events[index].identities.isEmpty { add { $0.events[index].identities.removeFirst() } }
        }
        return smaller
    }

    /// One line per event and user.
    var summary: String {
        let events = events.sorted { $0.at < $1.at }.map { event in
            let effects = event.effects.map(\.summary).joined(separator: "; ")
            let problem = event.problem.map { " \($0)" } ?? ""
            let received =
                (event.receivedAt == event.at ? "" : " received \(event.receivedAt)")
                + (event.appliedAt.map { " applied \($0)" } ?? "")
            let key = "\(event.key.source) \(event.key.id)"
            return "\(key) \(event.at)\(received) \(event.identities): \(effects)\(problem)"
        }
        let users = users.map { user, record in
            let trial = record.trial.map { "trial \($0.startedAt) to \($0.endsAt)" }
            let usedUp = record.trialUsedUpAt.map { "used up \($0)" }
            let present = record.presentTrialUsedUpAt.map { "now used up \($0)" }
            let declared = record.declaredAt.map { "declared \($0) \(record.declaredPlan ?? "-")" }
            let others = record.otherSubscriptions.map { "\($0)" }
            let facts = [declared, trial, usedUp, present].compactMap(\.self) + others
            return "\(user): \(facts.joined(separator: ", "))"
        }
        return (events + users.sorted()).joined(separator: "\n")
    }
}

extension BillingEffect {
    fileprivate var summary: String {
        let identityLists: [String: [String]?] = ["from": from, "to": to, "of": identities]
        let instants: [String: Instant?] = ["started": started, "expires": expires, "grace": graceUntil]
        let names: [String: String?] = [
            "plan": plan, "regular": regularPlan, "next": nextPlan, "product": product, "next product": nextProduct,
        ]
        let fields =
            identityLists.compactMap { name, value in value.map { "\(name) \($0)" } }
            + instants.compactMap { name, value in value.map { "\(name) \($0)" } }
            + names.compactMap { name, value in value.map { "\(name) \($0)" } }
            + [messages.map { "messages \($0)" }, anchorDay.map { "anchor \($0)" }].compactMap(\.self)
        return ([kind.rawValue] + [transaction].compactMap(\.self) + fields.sorted()).joined(separator: " ")
    }
}

extension CustomerState {
    /// The state without empty lists and default users.
    func simplified(for history: CustomerHistory) -> CustomerState {
        var state = self
        // PaymentSimulationTests are about the periods.
        state.subscriptions = subscriptions.filter { !$0.value.isEmpty }.mapValues { list in
            list.map { subscription in
                var subscription = subscription
                subscription.periods = nil
                return subscription
            }
        }
        state.users = state.users.filter { user, value in
            history.users[user] != nil || value != UserState(anchorDay: 1, previousPlan: nil, trialStartedAt: nil)
        }
        return state
    }
}

/// The parts of two states that differ, as text.
func difference(_ one: CustomerState, _ other: CustomerState) -> String {
    func lines<Value>(_ name: String, _ one: Value, _ other: Value) -> [String] where Value: Equatable {
        one == other ? [] : ["\(name):\n    \(one)\n    \(other)"]
    }
    func entries<Key: Hashable, Value: Equatable>(
        _ name: String,
        _ one: [Key: Value],
        _ other: [Key: Value]
    ) -> [String] {
        Set(one.keys).union(other.keys).flatMap { key in lines("\(name) \(key)", one[key], other[key]) }.sorted()
    }
    let all =
        entries("subscriptions of", one.subscriptions, other.subscriptions)
        + entries("user", one.users, other.users) + lines("purchases", one.purchases, other.purchases)
        + lines("transfers", one.transfers, other.transfers) + entries("result of", one.results, other.results)
    return all.joined(separator: "\n")
}
