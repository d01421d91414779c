import Billing
import HTTPTypes
import ServiceCore
import StoreEvents
import Usage

struct RevenueCatEndpoint: WebhookEndpoint {
    static let source = RevenueCatEvent.source
    static let events = "RevenueCat's events"
    static let settings = "revenuecat-authorization or revenuecat-signing-secret"

    let verifier: RevenueCatVerifier
    let environments: AcceptedEnvironments
    /// The namespace of users' names; nil where users are UUIDs only.
    let namespace: UserNamespace?

    init?(_ settings: SettingValues<Settings>) throws(SettingFile.Unusable) {
        let webhooks = settings.webhooks
        let authorizations = try webhooks.revenueCatAuthorizations.texts()
        let secrets = try webhooks.revenueCatSigningSecrets.texts()
        guard !authorizations.isEmpty || !secrets.isEmpty else { return nil }
        verifier = RevenueCatVerifier(
            authorizations: authorizations,
            signingSecrets: secrets,
            windowSeconds: webhooks.revenueCatWindowSeconds
        )
        environments = webhooks.acceptedEnvironments
        namespace = settings.counting.userNamespace
    }

    func checkHead(_ headers: HTTPFields) throws(BillingError) {
        try verifier.checkHead(
            authorization: headers[.authorization],
            signature: headers.value(RevenueCatVerifier.signatureHeader)
        )
    }

    func event(_ request: WebhookRequest) async throws(BillingError) -> BillingEvent {
        try verifier.verify(
            authorization: request.headers[.authorization],
            signature: request.headers.value(RevenueCatVerifier.signatureHeader),
            body: request.body,
            now: request.now
        )
        let payload = try RevenueCatEvent.sanitized(body: request.body, in: namespace)
        let event = try RevenueCatEvent.translate(payload: payload)
        try RevenueCatEvent.check(event, environments: environments)
        return event
    }
}
