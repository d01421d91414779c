import Usage

/// Who somebody is: a user, or a customer of a store whose user is not known yet.
enum Person: Hashable, Sendable {
    case user(UserID)
    case digest(String)

    var user: UserID? {
        if case .user(let user) = self { user } else { nil }
    }
}

/// Which digests of a store are which users: as the newest event says that names a digest beside a UUID.
struct Identities {
    private struct Name: Hashable {
        var source: String
        var digest: String
    }

    private var users: [Name: UserID] = [:]

    /// - Parameter events: in the order in which they happened.
    init(_ events: [RecordedEvent]) {
        for event in events {
            var learned: Set<Name> = []
            for list in event.identityLists {
                guard case .user(let user)? = Identities.named(in: list) else { continue }
                for identity in list where identity.hasPrefix(CustomerIdentity.digestPrefix) {
                    let name = Name(source: event.key.source, digest: identity)
                    // Within an event the first list decides.
                    if learned.insert(name).inserted { users[name] = user }
                }
            }
        }
    }

    /// The first whom a list names without a digest: a user, or somebody who is forgotten.
    private static func named(in list: [String]) -> Person? {
        for identity in list {
            if let user = UserID(identity) { return .user(user) }
            if CustomerIdentity.isForgotten(identity) { return .digest(identity) }
        }
        return nil
    }

    /// The first user, else the user of the first digest that is known, else the first digest.
    func person(_ identities: [String], source: String) -> Person? {
        if let person = Identities.named(in: identities) { return person }
        for identity in identities {
            if let user = users[Name(source: source, digest: identity)] { return .user(user) }
        }
        return identities.first.map { .digest($0) }
    }

    /// Whether one of the identities is this person's.
    func isNamed(_ person: Person, in identities: [String], source: String) -> Bool {
        identities.contains { identity in
            switch person {
            case .digest(let digest): identity == digest
            case .user(let user):
                UserID(identity) == user || users[Name(source: source, digest: identity)] == user
            }
        }
    }
}

extension RecordedEvent {
    /// Each list of names that belong to one person.
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

/// A transaction's owner from an instant on.
struct OwnershipStep: Equatable {
    var person: Person
    var since: Instant
    /// The event that says so.
    var event: RecordedEvent.Key
}

/// Whose each transaction was and is.
///
/// An event of a transaction names its owner at that instant; a transfer gives away all that its giver owns then, and so
/// does an alias, for the others' are the first one's from then on. All of it is read in the order in which it happened,
/// so it does not matter in which order it arrived.
struct Ownership {
    struct Transaction: Hashable {
        var source: String
        var name: String
    }

    private struct Move {
        var at: Instant
        var event: RecordedEvent.Key
        var place: Int
        var from: [String]
        var to: Person?
        var transaction: Transaction?
    }

    private(set) var steps: [Transaction: [OwnershipStep]] = [:]

    /// - Parameter events: in the order in which they happened.
    init(_ events: [RecordedEvent], _ identities: Identities) {
        let moves = events.flatMap { Ownership.moves(of: $0, identities) }
        // Each transaction is looked at with its own claims and the transfers of its source only.
        var claims: [Transaction: [Int]] = [:]
        var transfers: [String: [Int]] = [:]
        for (place, move) in moves.enumerated() {
            if let transaction = move.transaction {
                claims[transaction, default: []].append(place)
            } else {
                transfers[move.event.source, default: []].append(place)
            }
        }
        for (transaction, places) in claims {
            var steps: [OwnershipStep] = []
            for place in (places + (transfers[transaction.source] ?? [])).sorted() {
                let move = moves[place]
                guard let person = move.to, person != steps.last?.person else { continue }
                if move.transaction == nil {
                    guard let owner = steps.last?.person,
                        identities.isNamed(owner, in: move.from, source: transaction.source)
                    else { continue }
                }
                steps.append(OwnershipStep(person: person, since: move.at, event: move.event))
            }
            self.steps[transaction] = steps
        }
    }

    private static func moves(of event: RecordedEvent, _ identities: Identities) -> [Move] {
        let source = event.key.source
        // What the event names beside its transaction comes before the transfers in it.
        let claims = Set(
            event.effects.compactMap { effect in
                effect.kind == .granted ? nil : effect.transaction.map { Transaction(source: source, name: $0) }
            }
        ).map { transaction in
            Move(
                at: event.at,
                event: event.key,
                place: 0,
                from: [],
                to: identities.person(event.identities, source: source),
                transaction: transaction
            )
        }
        let transfers = event.effects.enumerated().compactMap { number, effect -> Move? in
            let (from, to): ([String], [String])
            switch effect.kind {
            case .transferred: (from, to) = (effect.from ?? [], effect.to ?? [])
            case .merged: (from, to) = (effect.identities ?? [], effect.identities ?? [])
            default: return nil
            }
            return Move(
                at: event.at,
                event: event.key,
                place: number + 1,
                from: from,
                to: identities.person(to, source: source)
            )
        }
        return claims + transfers
    }

    func owner(_ transaction: Transaction) -> Person? {
        steps[transaction]?.last?.person
    }
}
