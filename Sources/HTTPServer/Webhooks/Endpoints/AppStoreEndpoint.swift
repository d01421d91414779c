import Billing
import ServiceCore
import StoreEvents

struct AppStoreEndpoint: WebhookEndpoint {
    static let source = AppStoreNotification.source
    static let events = "App Store notifications"
    static let settings = "appstore-bundle-id and appstore-root-certificate"

    let verifier: AppStoreVerifier

    init?(_ settings: SettingValues<Settings>) throws(SettingFile.Unusable) {
        let webhooks = settings.webhooks
        guard let bundleID = webhooks.appStoreBundleID, let file = webhooks.appStoreRootCertificate else { return nil }
        let bytes = try file.bytes()
        let root: PinnedRoot
        do {
            root = try PinnedRoot(file: bytes)
        } catch {
            throw file.unusable(because: "\(error)")
        }
        verifier = AppStoreVerifier(
            app: AppStoreVerifier.App(
                bundleID: bundleID,
                appleID: webhooks.appStoreAppleID.map { Int64($0) },
                environments: webhooks.acceptedEnvironments
            ),
            root: root
        )
    }

    func event(_ request: WebhookRequest) async throws(BillingError) -> BillingEvent {
        let payload = try await AppStoreNotification.sanitized(body: request.body, verifier: verifier)
        return try AppStoreNotification.translate(payload: payload)
    }
}
