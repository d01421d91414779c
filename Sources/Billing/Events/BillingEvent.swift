import Usage

/// A store's event in Headroom's words.
///
/// Made from what is kept of the store's payload and from nothing else, so that a replay of a kept event gives the same.
public struct BillingEvent: Codable, Sendable, Equatable {
    /// A store's name in commands, paths and the database: lower-case letters. Each store's folder declares its own.
    public struct Source: RawRepresentable, Codable, Sendable, Hashable {
        public let rawValue: String

        public init(rawValue: String) {
            self.rawValue = rawValue
        }
    }

    public enum Environment: String, Codable, Sendable, CaseIterable {
        case production, sandbox
    }

    public var source: Source
    /// The store's name for the event: 1 to 255 characters, the same whenever it is sent again.
    public var id: String
    /// As the store names it, with its subtype or reason: `RENEWAL`, `CANCELLATION: UNSUBSCRIBE`,
    /// `DID_RENEW: BILLING_RECOVERY`.
    public var type: String
    /// When it happened, not when it was sent.
    public var at: Instant
    public var environment: Environment
    /// Who it may be, best first. See `CustomerIdentity`.
    public var identities: [String]
    /// In the order in which they take effect. Empty: the event is acknowledged and kept, and changes nothing.
    public var effects: [BillingEffect]
    /// What is kept for support and replay: ids, dates and words of the store's own lists, nothing else.
    public var payload: JSONValue
    /// Why a genuine event could not be understood. It is kept and listed as failed; a replay tries again.
    public var problem: String?

    public init(
        source: Source,
        id: String,
        type: String,
        at: Instant,
        environment: Environment,
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
