import Billing
import HTTPTypes
import HeadroomServer

struct StripeEndpoint: WebhookEndpoint {
    static let source = StripeEvent.source
    static let events = "Stripe's events"
    static let settings = "stripe-signing-secret"

    let signature: StripeSignature
    let refundRevokes: Bool
    let environments: AcceptedEnvironments

    init?(_ configuration: WebhookConfiguration) throws(StoreSenders.Unusable) {
        let stripe = configuration.stripe
        let secrets = try StoreSenders.texts(stripe.signingSecrets, setting: Settings.stripeSigningSecretFile)
        guard !secrets.isEmpty else { return nil }
        signature = StripeSignature(secrets: secrets, windowSeconds: stripe.windowSeconds)
        refundRevokes = stripe.refundRevokes
        environments = configuration.acceptedEnvironments
    }

    func checkHead(_ headers: HTTPFields) throws(BillingError) {
        try signature.checkForm(headers.value(StripeSignature.header))
    }

    func event(_ request: WebhookRequest) async throws(BillingError) -> BillingEvent {
        // Before anything of the body is parsed.
        try signature.verify(request.headers.value(StripeSignature.header), body: request.body, now: request.now)
        let kept = try StripeEvent.sanitized(body: request.body, refundRevokes: refundRevokes)
        let event = try StripeEvent.translate(payload: kept)
        try environments.check(event.environment)
        return event
    }
}
