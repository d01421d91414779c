import Billing
import ServiceCore
import StoreEvents

struct AppStoreEndpoint: WebhookEndpoint {
    static let source = AppStoreNotification.source
    static let events = "App Store notifications"
    static let settings = "appstore-bundle-id and appstore-root-certificate"

    let verifier: AppStoreVerifier

    init?(_ configuration: WebhookConfiguration) throws(SettingFile.Unusable) {
        guard let app = configuration.appStore else { return nil }
        let bytes = try SettingFile.bytes(app.rootCertificate, setting: Settings.appStoreRootCertificate)
        let root: PinnedRoot
        do {
            root = try PinnedRoot(file: bytes)
        } catch {
            throw SettingFile.Unusable(
                description: "\(app.rootCertificate) cannot be appstore-root-certificate: \(error)"
            )
        }
        verifier = AppStoreVerifier(
            app: AppStoreVerifier.App(
                bundleID: app.bundleID,
                appleID: app.appleID,
                environments: configuration.acceptedEnvironments
            ),
            root: root
        )
    }

    func event(_ request: WebhookRequest) async throws(BillingError) -> BillingEvent {
        let payload = try await AppStoreNotification.sanitized(body: request.body, verifier: verifier)
        return try AppStoreNotification.translate(payload: payload)
    }
}
