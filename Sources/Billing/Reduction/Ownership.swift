import Usage

/// The owner of a transaction since an event.
struct OwnershipStep: Equatable {
    /// An event's position in the order in which events happened.
    struct Position: Hashable, Comparable {
        var at: Instant
        var key: RecordedEvent.Key

        static func < (lhs: Position, rhs: Position) -> Bool {
            lhs.at == rhs.at ? lhs.key < rhs.key : lhs.at < rhs.at
        }
    }

    var customer: Customer
    /// The event that names the owner.
    var event: Position
    /// The last user among the owners so far; nil if a user who was forgotten came later.
    var lastUser: UserID?
    /// The first user among the owners.
    var buyer: UserID?

    init(_ customer: Customer, _ event: Position, after previous: OwnershipStep?) {
        self.customer = customer
        self.event = event
        buyer = previous?.buyer ?? customer.user
        switch customer {
        case .user(let user): lastUser = user
        case .digest(let name): lastUser = CustomerIdentity.isForgotten(name) ? nil : previous?.lastUser
        }
    }
}

/// The present and earlier owners of each transaction.
///
/// An event of a transaction names the owner at that instant. A transfer moves the transactions that its giver owns
/// then, and an alias moves those of the other identities to the first. Events are evaluated in the order in which they
/// happened, so the order of arrival does not matter.
///
/// On a way back (a transfer to somebody who once gave the giver a transaction) only transactions that the receiver
/// owned before are moved: what the giver has bought stays the giver's. Names without a user are transparent, so that
/// `user → anonymous id → other user` is a transfer from user to user.
struct Ownership {
    struct Transaction: Hashable {
        @ExactText var source: String
        @ExactText var name: String
    }

    private struct Change {
        var event: OwnershipStep.Position
        var from: [String]
        var to: Customer?
        var transaction: Transaction?
        var isAlias = false
    }

    private struct Move: Hashable {
        var source: String
        var giver: Customer
        var receiver: Customer
    }

    /// The owners of each transaction, in the order in which they owned it.
    private(set) var steps: [Transaction: [OwnershipStep]] = [:]
    /// The transactions that a customer owns now, and those that the customer ever owned. A transfer reads only those
    /// of its customers, so that its cost does not grow with the customer's history.
    private var owned: [Customer: Set<Transaction>] = [:]
    private var everOwned: [Customer: Set<Transaction>] = [:]
    private var moves: Set<Move> = []
    private let meter: WorkMeter?

    /// - Parameter events: the events in the order in which they happened.
    init(_ events: [RecordedEvent], _ identities: Identities, meter: WorkMeter? = nil) {
        self.meter = meter
        for event in events {
            for change in Ownership.changes(of: event, identities) {
                guard let customer = change.to else { continue }
                let owners =
                    if let transaction = change.transaction {
                        [transaction: customer]
                    } else {
                        owners(by: change, to: customer, identities)
                    }
                for (transaction, owner) in owners where self.owner(transaction) != owner {
                    move(transaction, to: owner, change.event)
                }
            }
        }
    }

    /// The new owner of each transaction that a transfer or an alias concerns.
    private func owners(
        by change: Change,
        to receiver: Customer,
        _ identities: Identities
    ) -> [Transaction: Customer] {
        let source = change.event.key.source
        var owners: [Transaction: Customer] = [:]
        for giver in identities.customers(named: change.from, source: source) {
            for transaction in owned[giver] ?? [] where transaction.source == source {
                meter?.steps += 1
                owners[transaction] = receiver
                guard !change.isAlias, let user = steps[transaction]?.last?.lastUser else { continue }
                let isWayBack = moves.contains(Move(source: source, giver: receiver, receiver: .user(user)))
                // It returns from a name without a user.
                if isWayBack, everOwned[receiver]?.contains(transaction) != true { owners[transaction] = .user(user) }
            }
        }
        return owners
    }

    private mutating func move(_ transaction: Transaction, to receiver: Customer, _ event: OwnershipStep.Position) {
        let last = steps[transaction]?.last
        for giver in [last?.customer, last?.lastUser.map { .user($0) }].compactMap(\.self) {
            moves.insert(Move(source: transaction.source, giver: giver, receiver: receiver))
        }
        if let last { owned[last.customer]?.remove(transaction) }
        owned[receiver, default: []].insert(transaction)
        everOwned[receiver, default: []].insert(transaction)
        steps[transaction, default: []].append(OwnershipStep(receiver, event, after: last))
    }

    private static func changes(of event: RecordedEvent, _ identities: Identities) -> [Change] {
        let source = event.key.source
        let position = OwnershipStep.Position(at: event.at, key: event.key)
        // The claims of an event come before its transfers.
        let claims = Set(
            event.effects.compactMap { effect in
                effect.kind == .granted ? nil : effect.transaction.map { Transaction(source: source, name: $0) }
            }
        ).map { transaction in
            Change(
                event: position,
                from: [],
                to: identities.customer(event.identities, source: source),
                transaction: transaction
            )
        }
        let transfers = event.effects.compactMap { effect -> Change? in
            let (from, to): ([String], [String])
            switch effect.kind {
            case .transferred: (from, to) = (effect.from ?? [], effect.to ?? [])
            case .merged: (from, to) = (effect.identities ?? [], effect.identities ?? [])
            default: return nil
            }
            return Change(
                event: position,
                from: from,
                to: identities.customer(to, source: source),
                isAlias: effect.kind == .merged
            )
        }
        return claims + transfers
    }

    func owner(_ transaction: Transaction) -> Customer? {
        steps[transaction]?.last?.customer
    }

    /// The owner just before an event.
    func owner(_ transaction: Transaction, before event: OwnershipStep.Position) -> Customer? {
        guard let path = steps[transaction] else { return nil }
        // The steps are in the order of their events.
        var (low, high) = (0, path.count)
        while low < high {
            meter?.steps += 1
            let middle = (low + high) / 2
            if path[middle].event < event { low = middle + 1 } else { high = middle }
        }
        return low > 0 ? path[low - 1].customer : nil
    }

    /// The transactions that the user ever owned.
    func transactions(of user: UserID) -> Set<Transaction> {
        let transactions = everOwned[.user(user)] ?? []
        meter?.steps += transactions.count
        return transactions
    }
}

/// Counts what a reduction visits, for the test that its work grows with the number of events and not faster.
final class WorkMeter {
    var steps = 0
}
