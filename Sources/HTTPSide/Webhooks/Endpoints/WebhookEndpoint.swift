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

    /// Verifies a request, keeps what may be kept of it and translates that.
    ///
    /// - Throws: `BillingError` where nothing may be kept.
    func event(_ request: WebhookRequest) async throws(BillingError) -> BillingEvent
}

/// What a store posted, before anything was read of it.
struct WebhookRequest: Sendable {
    var headers: HTTPFields
    var body: [UInt8]
    /// This machine's time: signatures have one in them.
    var now: Instant

    func header(_ name: String) -> String? {
        HTTPField.Name(name).flatMap { headers[$0] }
    }
}
