/// A store, as far as its events are concerned: what it is called, which types of events it documents, and how an event
/// that was kept is translated. One folder has all of it; `Stores.all` lists it.
public protocol StoreAdapter: Sendable {
    static var source: BillingEvent.Source { get }

    /// Types without subtype or reason. Metrics count by them, and any other type as `other`.
    static var eventTypes: Set<String> { get }

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

/// The stores whose events Headroom takes.
public enum Stores {
    public static let all: [any StoreAdapter.Type] = [
        RevenueCatEvent.self, AppStoreNotification.self, StripeEvent.self,
    ]

    /// `revenuecat, appstore or stripe`, for help and errors.
    public static var names: String {
        let names = all.map { $0.source.rawValue }
        return names.dropLast().joined(separator: ", ") + " or " + (names.last ?? "")
    }

    /// - Returns: nil for a source that is none of the stores'.
    public static func adapter(of source: BillingEvent.Source) -> (any StoreAdapter.Type)? {
        all.first { $0.source == source }
    }
}

extension BillingEvent {
    /// The store's word without subtype or reason, where its documentation has it, else `other`: a bounded number of
    /// words, for counting by.
    public var typeClass: String {
        let word = String(type.prefix { $0 != ":" })
        return Stores.adapter(of: source)?.eventTypes.contains(word) == true ? word : "other"
    }
}
