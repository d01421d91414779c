import Usage

/// What a store told, in Headroom's words: the one form in which every store's event reaches the database
/// (`headroom.take_store_notification`, docs/reference.md).
///
/// Made from what is kept of the store's payload and from nothing else, so that a replay of a kept event gives the same.
public struct BillingEvent: Codable, Sendable, Equatable {
    public enum Source: String, Codable, Sendable, CaseIterable {
        case revenuecat, appstore
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

/// A store's payload, as it is kept, in Headroom's words.
public protocol StoreAdapter {
    /// - Parameter payload: JSON, exactly what `BillingEvent.payload` was when the event was kept.
    /// - Throws: `BillingError` when that is not what the store's adapter keeps. An event that the adapter knows and
    ///   that lacks something it needs is no error: it comes back with its `problem`.
    static func translate(payload: JSONValue) throws(BillingError) -> BillingEvent
}

extension StoreAdapter {
    public static func translate(payload: some Sequence<UInt8>) throws(BillingError) -> BillingEvent {
        try translate(payload: try JSONValue(parsing: Array(payload)))
    }
}

extension BillingEvent {
    /// Translates a kept payload anew, as `headroom events replay` does.
    public static func translate(
        source: Source,
        payload: some Sequence<UInt8>
    ) throws(BillingError) -> BillingEvent {
        switch source {
        case .revenuecat: try RevenueCatEvent.translate(payload: payload)
        case .appstore: try AppStoreNotification.translate(payload: payload)
        }
    }
}
