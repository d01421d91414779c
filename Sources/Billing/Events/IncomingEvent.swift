import Usage

/// An event as it is applied: a store's, or one that a billing system sends in Headroom's own words.
public struct IncomingEvent: Sendable, Equatable {
    public var key: RecordedEvent.Key
    /// As its sender names it: `RENEWAL`, `DID_RENEW: BILLING_RECOVERY`.
    public var type: String
    /// When it happened.
    public var at: Instant
    public var environment: String?
    /// Whom it names, best first. See `CustomerIdentity`.
    public var identities: [String]
    /// In the order in which they take effect.
    public var effects: [BillingEffect]
    /// What is kept of the sender's own words, for a replay.
    public var payload: JSONValue
    /// Why a genuine event could not be understood; it is recorded as failed.
    public var problem: String?

    public init(
        key: RecordedEvent.Key,
        type: String,
        at: Instant,
        environment: String? = nil,
        identities: [String],
        effects: [BillingEffect],
        payload: JSONValue,
        problem: String? = nil
    ) {
        self.key = key
        self.type = type
        self.at = at
        self.environment = environment
        self.identities = identities
        self.effects = effects
        self.payload = payload
        self.problem = problem
    }

    public init(_ event: BillingEvent) {
        self.init(
            key: RecordedEvent.Key(source: event.source.rawValue, id: event.id),
            type: event.type,
            at: event.at,
            environment: event.environment.rawValue,
            identities: event.identities,
            effects: event.effects,
            payload: event.payload,
            problem: event.problem
        )
    }
}

extension IncomingEvent {
    /// The rows of a set plan, and of a trial that a message began, in `headroom.subscriptions`.
    private static let reservedTransactions: Set = ["operator", "first message"]

    /// An event that is recorded, read anew from what is kept of its sender's words.
    ///
    /// - Parameter source: a store's name, or the name that a billing system goes by in `DirectEvent`.
    public init(source: String, payload: [UInt8]) throws(BillingError) {
        if let adapter = Stores.adapter(of: BillingEvent.Source(rawValue: source)) {
            self.init(try adapter.translate(payload: payload))
        } else {
            self = try DirectEvent.parse(body: payload)
        }
    }

    /// Lists of names, each of one person.
    private var identityLists: [[String]] {
        [identities] + effects.flatMap { [$0.from, $0.to, $0.identities].compactMap { $0 } }
    }

    /// What its customer is found by, as `headroom.customer_names` has it.
    public var customerNames: [String] {
        let people = identityLists.joined().map { identity in
            UserID(identity).map { "user:\($0)" } ?? "\(key.source):\(identity)"
        }
        let transactions = effects.compactMap(\.transaction).map { "\(key.source):transaction:\($0)" }
        return Array(Set(people + transactions)).sorted()
    }

    /// The users whom it may give something. An event without effects that names one identity only concerns no user.
    public var users: [UserID] {
        guard !effects.isEmpty || identities.count > 1 else { return [] }
        return Array(Set(identityLists.compactMap { $0.lazy.compactMap { UserID($0) }.first })).sorted()
    }

    public var products: [String] {
        effects.flatMap { [$0.product, $0.alternateProduct, $0.nextProduct].compactMap { $0 } }
    }

    public var entitlements: [String] { effects.flatMap { $0.entitlements ?? [] } }

    /// The event as it is recorded, with the plans of its products.
    public func recorded(by mapping: ProductMapping, receivedAt: Instant) -> RecordedEvent {
        var recorded = RecordedEvent(
            key: key,
            at: at,
            receivedAt: receivedAt,
            environment: environment,
            identities: identities,
            effects: effects,
            problem: problem.map { .malformed($0) }
        )
        guard problem == nil else { return recorded }
        if effects.contains(where: { IncomingEvent.reservedTransactions.contains($0.transaction ?? "") }) {
            recorded.problem = .malformed("its transaction has a name that Headroom itself uses")
            return recorded
        }
        var resolved: [BillingEffect] = []
        for effect in effects {
            switch effect.resolved(by: mapping, at: at) {
            case .success(let effect): resolved.append(effect)
            case .failure(.unmapped(let product)):
                recorded.problem = .unmappedProduct(product)
                return recorded
            case .failure(.malformed(let text)):
                recorded.problem = .malformed(text)
                return recorded
            }
        }
        recorded.effects = resolved
        return recorded
    }
}
