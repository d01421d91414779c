import Billing
import HTTPTypes
import ServiceCore
import Usage

/// Verifies and decodes the events of one store, `POST /webhooks/<source>`. `WebhookEndpoints.types` lists all.
protocol WebhookEndpoint: Sendable {
    static var source: BillingEvent.Source { get }
    /// The subject of "… are not accepted: set …".
    static var events: String { get }
    /// The end of that sentence: the required settings.
    static var settings: String { get }

    /// Reads the files that the settings name.
    ///
    /// - Returns: nil if the store has no settings.
    /// - Throws: if a file cannot be used.
    init?(_ settings: SettingValues<Settings>) throws(SettingFile.Unusable)

    /// Rejects a request that cannot be the store's, whatever its body. Called before the body is read.
    ///
    /// - Throws: `BillingError`, unverified.
    func checkHead(_ headers: HTTPFields) throws(BillingError)

    /// Verifies a request, removes personal data from it, and translates the rest. Parses no more than verification
    /// needs before that succeeds.
    ///
    /// - Throws: `BillingError` if nothing of the request may be stored.
    func event(_ request: WebhookRequest) async throws(BillingError) -> BillingEvent
}

extension WebhookEndpoint {
    /// Checks nothing, as for each store whose requests cannot be verified by their head.
    func checkHead(_ headers: HTTPFields) throws(BillingError) {}
}

extension HTTPFields {
    func value(_ name: String) -> String? {
        HTTPField.Name(name).flatMap { self[$0] }
    }
}

/// A store's request, unverified.
struct WebhookRequest: Sendable {
    var headers: HTTPFields
    var body: [UInt8]
    /// This machine's time, which is compared with the time in signatures.
    var now: Instant
}
