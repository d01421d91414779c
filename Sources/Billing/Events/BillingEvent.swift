import Usage

/// An event in Headroom's words, of a store or of another billing system.
///
/// Made from what is kept of its sender's payload and from nothing else, so that a replay of a kept event gives the
/// same.
public struct BillingEvent: Sendable, Equatable {
    /// Its sender's name in commands, paths and the database: see `DirectEvent.isSource`. Each store's folder declares
    /// its own.
    public struct Source: RawRepresentable, Sendable, Hashable {
        public let rawValue: String

        public init(rawValue: String) {
            self.rawValue = rawValue
        }
    }

    /// A store's are these two; another billing system may name its own.
    public struct Environment: RawRepresentable, Sendable, Hashable {
        public static let production = Environment(rawValue: "production")
        public static let sandbox = Environment(rawValue: "sandbox")

        public let rawValue: String

        public init(rawValue: String) {
            self.rawValue = rawValue
        }
    }

    public var source: Source
    /// Its sender's name for the event: 1 to 255 characters, the same whenever it is sent again.
    public var id: String
    /// As its sender names it, with its subtype or reason: `RENEWAL`, `CANCELLATION: UNSUBSCRIBE`,
    /// `DID_RENEW: BILLING_RECOVERY`.
    public var type: String
    /// When it happened, not when it was sent.
    public var at: Instant
    /// Nil where another billing system does not say; a store always does.
    public var environment: Environment?
    /// The names of its customer, best first. See `CustomerIdentity`.
    public var identities: [String]
    /// In the order in which they take effect. Empty: the event is acknowledged and kept, and changes nothing.
    public var effects: [BillingEffect]
    /// What is kept for support and replay: of a store's event, ids, dates and words of the store's own lists, nothing
    /// else.
    public var payload: JSONValue
    /// Why a genuine event could not be understood. It is kept and listed as failed; a replay tries again.
    public var problem: String?

    public init(
        source: Source,
        id: String,
        type: String,
        at: Instant,
        environment: Environment? = nil,
        identities: [String] = [],
        effects: [BillingEffect] = [],
        payload: JSONValue,
        problem: String? = nil
    ) {
        self.source = source
        self.id = id
        self.type = type
        self.at = at
        self.environment = environment
        self.identities = identities
        self.effects = effects
        self.payload = payload
        self.problem = problem
    }
}

extension BillingEvent {
    /// The rows of a set plan, and of a trial that a message began, in `headroom.subscriptions`.
    private static let reservedTransactions: Set = ["operator", "first message"]

    /// An event that is recorded, read anew from what is kept of its sender's words.
    ///
    /// - Parameter source: a store's name, or the name that a billing system goes by in `DirectEvent`.
    public init(source: String, payload: [UInt8]) throws(BillingError) {
        if let adapter = Stores.adapter(of: Source(rawValue: source)) {
            self = try adapter.translate(payload: payload)
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
            UserID(identity).map { "user:\($0)" } ?? "\(source.rawValue):\(identity)"
        }
        let transactions = effects.compactMap(\.transaction).map { "\(source.rawValue):transaction:\($0)" }
        return Array(Set(people + transactions)).sorted()
    }

    /// The users who may get something by it. An event without effects that names one identity only concerns no user.
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
            key: RecordedEvent.Key(source: source.rawValue, id: id),
            at: at,
            receivedAt: receivedAt,
            environment: environment?.rawValue,
            identities: identities,
            effects: effects,
            problem: problem.map { .malformed($0) }
        )
        guard problem == nil else { return recorded }
        if effects.contains(where: { BillingEvent.reservedTransactions.contains($0.transaction ?? "") }) {
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
