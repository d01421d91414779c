import Billing
import HTTPTypes
import HeadroomServer
import Usage

/// Where a store's events arrive, `POST /webhooks/<source>`, and what shows that a request is the store's.
///
/// `StoreSenders.all` lists them; nothing else names a store.
protocol WebhookEndpoint: Sendable {
    static var source: BillingEvent.Source { get }
    /// Begins "… are not taken here: set …".
    static var events: String { get }
    /// Ends it: the names of the settings without which there is no endpoint.
    static var settings: String { get }

    /// Reads the files that the settings name.
    ///
    /// - Returns: nil where nothing is set for the store.
    /// - Throws: when a file cannot be used.
    init?(_ configuration: WebhookConfiguration) throws(StoreSenders.Unusable)

    /// Refuses what cannot be the store's whatever the body. Called before any of the body is read.
    ///
    /// - Throws: `BillingError`, unverified.
    func checkHead(_ headers: HTTPFields) throws(BillingError)

    /// Verifies a request before anything is parsed that is not needed for it, keeps what may be kept of it and translates
    /// that.
    ///
    /// - Throws: `BillingError` where nothing may be kept.
    func event(_ request: WebhookRequest) async throws(BillingError) -> BillingEvent
}

extension WebhookEndpoint {
    /// Nothing in the head shows whose a request is.
    func checkHead(_ headers: HTTPFields) throws(BillingError) {}
}

extension HTTPFields {
    func value(_ name: String) -> String? {
        HTTPField.Name(name).flatMap { self[$0] }
    }
}

/// What a store posted, before anything was read of it.
struct WebhookRequest: Sendable {
    var headers: HTTPFields
    var body: [UInt8]
    /// This machine's time: signatures have one in them.
    var now: Instant
}
