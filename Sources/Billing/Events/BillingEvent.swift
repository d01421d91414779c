import JSON
import Usage

/// An event of a store or of another billing system, in Headroom's own form.
///
/// It is translated from the stored payload and nothing else, so that a replay gives the same event.
public struct BillingEvent: Sendable, Equatable {
    /// The sender's name in commands, paths and the database: see `DirectEvent.isSource`. Each store's folder declares
    /// its own.
    public struct Source: RawRepresentable, Sendable, Hashable {
        public let rawValue: String

        public init(rawValue: String) {
            self.rawValue = rawValue
        }
    }

    /// Stores have these two; other billing systems may name their own.
    public struct Environment: RawRepresentable, Sendable, Hashable {
        public static let production = Environment(rawValue: "production")
        public static let sandbox = Environment(rawValue: "sandbox")

        public let rawValue: String

        public init(rawValue: String) {
            self.rawValue = rawValue
        }
    }

    public var source: Source
    /// The sender's id of the event: 1 to 255 characters, the same in each repetition.
    public var id: String
    /// The sender's name of the type, with its subtype or reason: `RENEWAL`, `CANCELLATION: UNSUBSCRIBE`,
    /// `DID_RENEW: BILLING_RECOVERY`.
    public var type: String
    /// When it happened, not when it was sent.
    public var at: Instant
    /// The store's environment; nil if the event does not name it.
    public var environment: Environment?
    /// The identities of the customer, best first. See `CustomerIdentity`.
    public var identities: [String]
    /// The effects in the order in which they take effect. An event without any is stored and changes nothing.
    public var effects: [BillingEffect]
    /// The effects for each further item of a subscription, or line of an invoice. The mapping decides which apply.
    public var alternatives: [[BillingEffect]] = []
    /// What is stored for support and replay. From a store's event, that is only ids, dates and values of enumerations.
    public var payload: JSONValue
    /// Why a genuine event could not be translated. It is stored and listed as failed; a replay tries again.
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
    /// The transactions in `headroom.subscriptions` of a plan set by an operator, and of a trial that a message began.
    package static let reservedTransactions: Set = ["operator", "first message"]

    /// Lists of identities, each of one customer.
    private var identityLists: [[String]] {
        [identities] + effects.flatMap { [$0.from, $0.to, $0.identities].compactMap { $0 } }
    }

    /// The names that find the customer in `headroom.customer_names`.
    public var customerNames: [String] {
        let names = identityLists.joined().map { identity in
            UserID(identity).map { "user:\($0)" } ?? "\(source.rawValue):\(identity)"
        }
        let transactions = effects.compactMap(\.transaction).map { "\(source.rawValue):transaction:\($0)" }
        return Set((names + transactions).map { ExactText($0) }).sorted().map(\.text)
    }

    /// The users that the event may affect. An event without effects and with a single identity affects none.
    public var users: [UserID] {
        guard !effects.isEmpty || identities.count > 1 else { return [] }
        return Array(Set(identityLists.compactMap { $0.lazy.compactMap { UserID($0) }.first })).sorted()
    }

    /// The first user that the event names; for a transfer, the user who receives it. Nil if it names none.
    public var namedUser: UserID? {
        identityLists.reversed().lazy.compactMap { $0.lazy.compactMap { UserID($0) }.first }.first
    }

    public var products: [String] {
        ([effects] + alternatives).joined().flatMap { effect in
            [effect.product, effect.alternateProduct, effect.nextProduct].compactMap(\.self)
        }
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
        switch mapping.resolve([effects] + alternatives, at: at) {
        case .success(let resolved): recorded.effects = resolved
        case .failure(.unmapped(let products)): recorded.problem = .unmappedProduct(products)
        case .failure(.malformed(let text)): recorded.problem = .malformed(text)
        }
        return recorded
    }
}
