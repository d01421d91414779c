import Usage

/// Shows that a request is Stripe's: by its signature, with the secret that Stripe shows for the endpoint
/// (https://docs.stripe.com/webhooks/signature). Each delivery is signed anew, a repetition too.
public struct StripeSignature: Sendable {
    public static let header = "Stripe-Signature"

    private let signature: TimedSignature

    /// - Parameters:
    ///   - secrets: of the endpoint, `whsec_…`; any of them will do, so that one can be rolled. Not empty.
    ///   - windowSeconds: how far the time in a signature may be from this machine's clock, in either direction.
    public init(secrets: [String], windowSeconds: Int) {
        signature = TimedSignature(header: StripeSignature.header, secrets: secrets, windowSeconds: windowSeconds)
    }

    /// Refuses a header that no body could make genuine, before the body is read.
    ///
    /// - Throws: `BillingError`, unverified.
    public func checkForm(_ value: String?) throws(BillingError) {
        _ = try signature.parts(of: value)
    }

    /// - Parameters:
    ///   - value: the header field's; nil where it is missing.
    ///   - body: the bytes that came, before anything was read of them.
    /// - Throws: `BillingError`, unverified.
    public func verify(_ value: String?, body: [UInt8], now: Instant) throws(BillingError) {
        try signature.verify(value, body: body, now: now)
    }
}
