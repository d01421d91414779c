import Billing
import HTTPTypes
import ServiceCore
import StoreEvents
import Usage

struct StripeEndpoint: WebhookEndpoint {
    static let source = StripeEvent.source
    static let events = "Stripe's events"
    static let settings = "stripe-signing-secret"

    let signature: StripeVerifier
    let refundRevokes: Bool
    let environments: AcceptedEnvironments
    /// The namespace of users' names; nil where users are UUIDs only.
    let namespace: UserNamespace?

    init?(_ settings: SettingValues<Settings>) throws(SettingFile.Unusable) {
        let webhooks = settings.webhooks
        let secrets = try webhooks.stripeSigningSecrets.texts()
        guard !secrets.isEmpty else { return nil }
        signature = StripeVerifier(secrets: secrets, windowSeconds: webhooks.stripeWindowSeconds)
        refundRevokes = webhooks.stripeRefundRevokes
        environments = webhooks.acceptedEnvironments
        namespace = settings.counting.userNamespace
    }

    func checkHead(_ headers: HTTPFields) throws(BillingError) {
        try signature.checkForm(headers.value(StripeVerifier.header))
    }

    func event(_ request: WebhookRequest) async throws(BillingError) -> BillingEvent {
        // The signature is verified before the body is parsed.
        try signature.verify(request.headers.value(StripeVerifier.header), body: request.body, now: request.now)
        let payload = try StripeEvent.sanitized(body: request.body, refundRevokes: refundRevokes, in: namespace)
        let event = try StripeEvent.translate(payload: payload)
        try environments.check(event.environment)
        return event
    }
}
