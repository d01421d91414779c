import JSON
import Usage

/// An operator says to which user a transaction, or a customer of a store, belongs.
///
/// The link is recorded as an event of the store, and applied as all events are. `headroom.link_customer` records it
/// before the customer's other events are read.
public struct CustomerLink: Sendable, Equatable {
    public enum Subject: Sendable, Hashable {
        /// The original transaction.
        case transaction(String)
        /// The digest of the store's id of the customer. See `CustomerIdentity`.
        case customer(String)
    }

    /// The type under which a link is listed among the store's events.
    public static let type = "LINK"

    public var key: RecordedEvent.Key
    public var at: Instant
    /// The user's UUID, or its replacement if the user was forgotten.
    public var user: String
    public var subject: Subject
    /// The digests under which the store's events name the customer. It is nil until the link is applied for the first
    /// time.
    public var digests: [String]?

    /// - Parameter payload: the payload of an event as it is stored.
    /// - Returns: nil if the event is no link.
    public init?(source: String, payload: JSONValue) {
        func text(_ name: String) -> String? { payload["link"]?[name]?.string }
        guard let id = text("id"), let at = text("at").flatMap({ Instant($0) }), let user = text("user") else {
            return nil
        }
        key = RecordedEvent.Key(source: source, id: id)
        self.at = at
        self.user = user
        if let transaction = text("transaction") {
            subject = .transaction(transaction)
        } else if let digest = text("customer") {
            subject = .customer(digest)
        } else {
            return nil
        }
        if case .array(let digests)? = payload["link"]?["digests"] {
            self.digests = digests.compactMap(\.string)
        }
    }

    public var event: BillingEvent {
        var members: [String: JSONValue] = [
            "id": .string(key.id), "at": .string(at.preciseText), "user": .string(user),
        ]
        var effect = BillingEffect(.linked)
        var named: [String] = []
        switch subject {
        case .transaction(let name):
            effect.transaction = name
            members["transaction"] = .string(name)
        case .customer(let digest):
            named = [digest]
            members["customer"] = .string(digest)
        }
        members["digests"] = digests.map { .array($0.map { .string($0) }) }
        return BillingEvent(
            source: BillingEvent.Source(rawValue: key.source),
            id: key.id,
            type: CustomerLink.type,
            at: at,
            identities: CustomerIdentity.distinct([user] + named + (digests ?? [])),
            effects: [effect],
            payload: .object(["link": .object(members)])
        )
    }
}

extension RecordedEvent {
    public var isLink: Bool { effects.contains { $0.kind == .linked } }
}

// MARK: What the store says

extension CustomerLink {
    /// What a customer's recorded events say about a link.
    public struct Finding: Equatable {
        public enum Owner: Equatable {
            /// None of the store's own events names a user.
            case nobody
            case user(UserID)
            /// The store's own events name a user who was forgotten.
            case forgottenUser
        }

        /// The user that the store's own events name. A link contradicts them only if it names another one.
        public var owner: Owner
        /// The owner by all events, links included.
        public var presentOwner: UserID?
        /// The digests under which the store's events name the customer, without those of a user.
        public var digests: [String]

        /// Says why a link with this user would contradict the store's own events. It is nil if it does not.
        public func refusal(of user: UserID) -> String? {
            switch owner {
            case .nobody: nil
            case .user(let owner) where owner == user: nil
            case .user(let owner):
                "it belongs to the user \(owner), whom the store's own events name. Only its sender can give it to another "
                    + "user: RevenueCat by a TRANSFER, a billing system of your own by an event of kind transferred"
            case .forgottenUser:
                "the store's own events name a user who was forgotten; it belongs to the next user whom they name"
            }
        }
    }

    /// - Parameter events: the customer's events, in any order. The link itself does not count.
    public func finding(in events: [RecordedEvent]) -> Finding {
        let events = events.filter { $0.key != key }.sorted(by: RecordedEvent.isBefore)
        let own = events.filter { !$0.isLink }
        let identities = Identities(own)
        let digests: [String] =
            switch subject {
            case .customer(let digest): [digest]
            case .transaction: own.filter(isNamed).flatMap(\.identities)
            }
        let owner: Finding.Owner =
            switch customer(own, identities) {
            case .user(let user)?: .user(user)
            case .digest(let name)? where CustomerIdentity.isForgotten(name): .forgottenUser
            default: .nobody
            }
        return Finding(
            owner: owner,
            presentOwner: customer(events, Identities(events))?.user,
            digests: CustomerIdentity.distinct(digests).filter { digest in
                digest.hasPrefix(CustomerIdentity.digestPrefix)
                    && identities.customer([digest], source: key.source)?.user == nil
            }
        )
    }

    /// - Parameter events: the events in the order in which they happened.
    private func customer(_ events: [RecordedEvent], _ identities: Identities) -> Customer? {
        switch subject {
        case .customer(let digest): return identities.customer([digest], source: key.source)
        case .transaction(let name):
            let transaction = Ownership.Transaction(source: key.source, name: name)
            if let owner = Ownership(events, identities).owner(transaction) { return owner }
            // A purchase of messages has a buyer, and no owner.
            let buyers = events.filter(isNamed).compactMap { identities.customer($0.identities, source: key.source) }
            return buyers.first { $0.user != nil } ?? buyers.first
        }
    }

    /// Whether an event is about the link's transaction.
    private func isNamed(in event: RecordedEvent) -> Bool {
        guard case .transaction(let name) = subject, event.key.source == key.source else { return false }
        return event.effects.contains { $0.transaction.map { ExactText($0) } == ExactText(name) }
    }
}
