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
    /// Of users' names; nil where users are UUIDs only.
    let namespace: UserNamespace?

    init?(_ configuration: WebhookConfiguration) throws(SettingFile.Unusable) {
        let stripe = configuration.stripe
        let secrets = try SettingFile.texts(stripe.signingSecrets, setting: Settings.stripeSigningSecretFile)
        guard !secrets.isEmpty else { return nil }
        signature = StripeVerifier(secrets: secrets, windowSeconds: stripe.windowSeconds)
        refundRevokes = stripe.refundRevokes
        environments = configuration.acceptedEnvironments
        namespace = configuration.userNamespace
    }

    func checkHead(_ headers: HTTPFields) throws(BillingError) {
        try signature.checkForm(headers.value(StripeVerifier.header))
    }

    func event(_ request: WebhookRequest) async throws(BillingError) -> BillingEvent {
        // Before the body is parsed.
        try signature.verify(request.headers.value(StripeVerifier.header), body: request.body, now: request.now)
        let payload = try StripeEvent.sanitized(body: request.body, refundRevokes: refundRevokes, in: namespace)
        let event = try StripeEvent.translate(payload: payload)
        try environments.check(event.environment)
        return event
    }
}
