import Billing
import JSON

/// A store's events: its name, the types it documents, and the translation of stored payloads. Each store has a folder;
/// `Stores.all` lists the adapters.
public protocol StoreAdapter: Sendable {
    static var source: BillingEvent.Source { get }

    /// The types without subtype or reason, as values of a metric label. Any other type counts as `other`.
    static var eventTypes: Set<String> { get }

    /// Those of `eventTypes` that may have effects. An event of another type is recorded whatever its fields are.
    static var typesWithEffects: Set<String> { get }

    /// - Parameter payload: `BillingEvent.payload` as it was stored.
    /// - Throws: `BillingError` for a payload that this adapter never stores. A known event that lacks a field is no
    ///   error: it is returned with its `problem`.
    static func translate(payload: JSONValue) throws(BillingError) -> BillingEvent
}

extension StoreAdapter {
    /// The event's fields as they are read for storing.
    static func readable(_ fields: PayloadFields, type: String) -> PayloadFields {
        typesWithEffects.contains(type) ? fields : fields.lenient
    }

    public static func translate(payload: some Sequence<UInt8>) throws(BillingError) -> BillingEvent {
        try translate(payload: try JSONValue(received: Array(payload)))
    }
}

/// The stores whose events Headroom accepts.
public enum Stores {
    public static let all: [any StoreAdapter.Type] = [
        RevenueCatEvent.self, AppStoreNotification.self, StripeEvent.self,
    ]

    /// `revenuecat, appstore or stripe`, for help and errors.
    public static var names: String {
        let names = all.map { $0.source.rawValue }
        return names.dropLast().joined(separator: ", ") + " or " + (names.last ?? "")
    }

    /// - Returns: nil for a source that is not a store.
    public static func adapter(of source: BillingEvent.Source) -> (any StoreAdapter.Type)? {
        all.first { $0.source == source }
    }
}

extension BillingEvent {
    /// Translates the stored payload of a recorded event.
    ///
    /// - Parameter source: a store's name, or a billing system's name in `DirectEvent`.
    public init(source: String, payload: [UInt8]) throws(BillingError) {
        if let adapter = Stores.adapter(of: Source(rawValue: source)) {
            self = try adapter.translate(payload: payload)
        } else {
            self = try DirectEvent.parse(body: payload)
        }
    }

    /// The type without subtype or reason if the store documents it, else `other`: a bounded number of values, for
    /// metrics.
    public var typeClass: String {
        let name = String(type.prefix { $0 != ":" })
        return Stores.adapter(of: source)?.eventTypes.contains(name) == true ? name : "other"
    }
}
