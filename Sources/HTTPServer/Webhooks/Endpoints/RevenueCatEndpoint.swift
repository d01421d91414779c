import Billing
import HTTPTypes
import HeadroomServer

struct RevenueCatEndpoint: WebhookEndpoint {
    static let source = RevenueCatEvent.source
    static let events = "RevenueCat's events"
    static let settings = "revenuecat-authorization or revenuecat-signing-secret"

    let sender: RevenueCatSender
    let environments: AcceptedEnvironments

    init?(_ configuration: WebhookConfiguration) throws(StoreSenders.Unusable) {
        let authorizations = try StoreSenders.texts(
            configuration.revenueCatAuthorizations,
            setting: Settings.revenueCatAuthorizationFile
        )
        let secrets = try StoreSenders.texts(
            configuration.revenueCatSigningSecrets,
            setting: Settings.revenueCatSigningSecretFile
        )
        guard !authorizations.isEmpty || !secrets.isEmpty else { return nil }
        sender = RevenueCatSender(
            authorizations: authorizations,
            signingSecrets: secrets,
            windowSeconds: configuration.revenueCatWindowSeconds
        )
        environments = configuration.acceptedEnvironments
    }

    func checkHead(_ headers: HTTPFields) throws(BillingError) {
        try sender.checkHead(
            authorization: headers[.authorization],
            signature: headers.value(RevenueCatSender.signatureHeader)
        )
    }

    func event(_ request: WebhookRequest) async throws(BillingError) -> BillingEvent {
        try sender.verify(
            authorization: request.headers[.authorization],
            signature: request.headers.value(RevenueCatSender.signatureHeader),
            body: request.body,
            now: request.now
        )
        let event = try RevenueCatEvent.translate(payload: try RevenueCatEvent.sanitized(body: request.body))
        // The dashboard's test is told as the sandbox's, and does nothing.
        // Where an event names no environment it can concern either.
        if event.typeClass != "TEST", event.payload["event"]?["environment"] != nil {
            try environments.check(event.environment)
        }
        return event
    }
}
