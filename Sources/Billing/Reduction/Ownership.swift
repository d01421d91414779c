import Usage

/// A user, or a customer of a store whose user is not known yet.
enum Customer: Hashable, Sendable {
    case user(UserID)
    case digest(String)

    var user: UserID? {
        if case .user(let user) = self { user } else { nil }
    }
}

/// Maps the digests of each source to users, by the newest event that names a digest together with a UUID.
struct Identities {
    private struct Name: Hashable {
        var source: String
        var digest: String
    }

    private var users: [Name: UserID] = [:]

    /// - Parameter events: in the order in which they happened.
    init(_ events: [RecordedEvent]) {
        for event in events {
            var assigned: Set<Name> = []
            for list in event.identityLists {
                guard case .user(let user)? = Identities.named(in: list) else { continue }
                for identity in list where identity.hasPrefix(CustomerIdentity.digestPrefix) {
                    let name = Name(source: event.key.source, digest: identity)
                    // Within an event the first list counts.
                    if assigned.insert(name).inserted { users[name] = user }
                }
            }
        }
    }

    /// The first user, or forgotten user, in a list.
    private static func named(in list: [String]) -> Customer? {
        for identity in list {
            if let user = UserID(identity) { return .user(user) }
            if CustomerIdentity.isForgotten(identity) { return .digest(identity) }
        }
        return nil
    }

    /// The first user, else the user of the first mapped digest, else the first digest.
    func customer(_ identities: [String], source: String) -> Customer? {
        if let customer = Identities.named(in: identities) { return customer }
        for identity in identities {
            if let user = users[Name(source: source, digest: identity)] { return .user(user) }
        }
        return identities.first.map { .digest($0) }
    }

    /// Whether one of the identities belongs to the customer.
    func isNamed(_ customer: Customer, in identities: [String], source: String) -> Bool {
        identities.contains { identity in
            switch customer {
            case .digest(let digest): identity == digest
            case .user(let user):
                UserID(identity) == user || users[Name(source: source, digest: identity)] == user
            }
        }
    }
}

extension RecordedEvent {
    /// Lists of identities, each of one customer.
    fileprivate var identityLists: [[String]] {
        [identities]
            + effects.flatMap { effect -> [[String]] in
                switch effect.kind {
                case .transferred: [effect.to ?? [], effect.from ?? []]
                case .merged: [effect.identities ?? []]
                default: []
                }
            }
    }
}

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
}

extension BidirectionalCollection<OwnershipStep> {
    /// The last user among the owners. Nil if a user who was forgotten came later.
    var lastUser: UserID? {
        for step in reversed() {
            switch step.customer {
            case .user(let user): return user
            case .digest(let name): if CustomerIdentity.isForgotten(name) { return nil }
            }
        }
        return nil
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

    private(set) var steps: [Transaction: [OwnershipStep]] = [:]
    /// The transactions of each source that have an owner.
    private var owned: [String: [Transaction]] = [:]
    private var moves: Set<Move> = []

    /// - Parameter events: in the order in which they happened.
    init(_ events: [RecordedEvent], _ identities: Identities) {
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
        for transaction in owned[source] ?? [] {
            guard let path = steps[transaction], let owner = path.last?.customer,
                identities.isNamed(owner, in: change.from, source: source)
            else { continue }
            owners[transaction] = receiver
            guard !change.isAlias, let giver = path.lastUser else { continue }
            let isWayBack = moves.contains(Move(source: source, giver: receiver, receiver: .user(giver)))
            // It returns from a name without a user.
            if isWayBack, !path.contains(where: { $0.customer == receiver }) { owners[transaction] = .user(giver) }
        }
        return owners
    }

    private mutating func move(_ transaction: Transaction, to receiver: Customer, _ event: OwnershipStep.Position) {
        let path = steps[transaction] ?? []
        if path.isEmpty { owned[transaction.source, default: []].append(transaction) }
        for giver in [path.last?.customer, path.lastUser.map { .user($0) }].compactMap(\.self) {
            moves.insert(Move(source: transaction.source, giver: giver, receiver: receiver))
        }
        steps[transaction, default: []].append(OwnershipStep(customer: receiver, event: event))
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
        steps[transaction]?.last { $0.event < event }?.customer
    }
}
