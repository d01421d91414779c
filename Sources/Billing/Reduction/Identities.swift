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

    /// - Parameter events: the events in the order in which they happened.
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

    /// All customers to whom one of the identities belongs.
    func customers(named identities: [String], source: String) -> Set<Customer> {
        var customers: Set<Customer> = []
        for identity in identities {
            customers.insert(.digest(identity))
            if let user = UserID(identity) ?? users[Name(source: source, digest: identity)] {
                customers.insert(.user(user))
            }
        }
        return customers
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
