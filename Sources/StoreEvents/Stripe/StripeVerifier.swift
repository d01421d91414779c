import Billing
import Usage

/// Verifies that a request comes from Stripe: by its signature, with the secret of the webhook endpoint
/// (https://docs.stripe.com/webhooks/signature). Stripe signs each delivery, also repetitions.
public struct StripeVerifier: Sendable {
    public static let header = "Stripe-Signature"

    private let signature: TimedSignature

    /// - Parameters:
    ///   - secrets: the secrets of the endpoint, `whsec_…`: at least one, and several while one is replaced.
    ///   - windowSeconds: the largest difference between the time in a signature and this machine's clock.
    public init(secrets: [String], windowSeconds: Int) {
        signature = TimedSignature(header: StripeVerifier.header, secrets: secrets, windowSeconds: windowSeconds)
    }

    /// Rejects a request by its header alone, before the body is read.
    ///
    /// - Throws: `BillingError`, unverified.
    public func checkForm(_ value: String?) throws(BillingError) {
        _ = try signature.parts(of: value)
    }

    /// - Parameters:
    ///   - value: the header's value; nil if it is missing.
    ///   - body: the unparsed bytes.
    /// - Throws: `BillingError`, unverified.
    public func verify(_ value: String?, body: [UInt8], now: Instant) throws(BillingError) {
        try signature.verify(value, body: body, now: now)
    }
}
