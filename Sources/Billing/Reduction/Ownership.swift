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

/// The owner of a transaction since an instant.
struct OwnershipStep: Equatable {
    var customer: Customer
    var since: Instant
    /// The event that names the owner.
    var event: RecordedEvent.Key
}

/// The present and earlier owners of each transaction.
///
/// An event of a transaction names the owner at that instant. A transfer moves all transactions that its giver owns
/// then, and an alias moves those of the other identities to the first. Events are evaluated in the order in which they
/// happened, so the order of arrival does not matter.
struct Ownership {
    struct Transaction: Hashable {
        @ExactText var source: String
        @ExactText var name: String
    }

    private struct Change {
        var at: Instant
        var event: RecordedEvent.Key
        var from: [String]
        var to: Customer?
        var transaction: Transaction?
    }

    private(set) var steps: [Transaction: [OwnershipStep]] = [:]

    /// - Parameter events: in the order in which they happened.
    init(_ events: [RecordedEvent], _ identities: Identities) {
        let changes = events.flatMap { Ownership.changes(of: $0, identities) }
        // Only its own claims and the transfers of its source concern a transaction.
        var claims: [Transaction: [Int]] = [:]
        var transfers: [String: [Int]] = [:]
        for (index, change) in changes.enumerated() {
            if let transaction = change.transaction {
                claims[transaction, default: []].append(index)
            } else {
                transfers[change.event.source, default: []].append(index)
            }
        }
        for (transaction, indexes) in claims {
            var steps: [OwnershipStep] = []
            for index in (indexes + (transfers[transaction.source] ?? [])).sorted() {
                let change = changes[index]
                guard let customer = change.to, customer != steps.last?.customer else { continue }
                if change.transaction == nil {
                    guard let owner = steps.last?.customer,
                        identities.isNamed(owner, in: change.from, source: transaction.source)
                    else { continue }
                }
                steps.append(OwnershipStep(customer: customer, since: change.at, event: change.event))
            }
            self.steps[transaction] = steps
        }
    }

    private static func changes(of event: RecordedEvent, _ identities: Identities) -> [Change] {
        let source = event.key.source
        // The claims of an event come before its transfers.
        let claims = Set(
            event.effects.compactMap { effect in
                effect.kind == .granted ? nil : effect.transaction.map { Transaction(source: source, name: $0) }
            }
        ).map { transaction in
            Change(
                at: event.at,
                event: event.key,
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
                at: event.at,
                event: event.key,
                from: from,
                to: identities.customer(to, source: source)
            )
        }
        return claims + transfers
    }

    func owner(_ transaction: Transaction) -> Customer? {
        steps[transaction]?.last?.customer
    }
}
