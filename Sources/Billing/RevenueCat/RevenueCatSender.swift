import Crypto
import Usage

/// Shows that a request is RevenueCat's: by the static Authorization header, by a signature of the body, or by both,
/// whatever is configured.
///
/// The header and the signature are RevenueCat's (`TimedSignature`). The time is that of the delivery: a repetition is
/// signed anew.
public struct RevenueCatSender: Sendable {
    public static let signatureHeader = "X-RevenueCat-Webhook-Signature"

    private let authorizations: [SHA256Digest]
    /// nil: no signature is asked for.
    private let signature: TimedSignature?

    /// - Parameters:
    ///   - authorizations: values of the Authorization header; any of them will do, so that one can be replaced.
    ///   - signingSecrets: the same for signatures. Empty: none is asked for.
    ///   - windowSeconds: how far the time in a signature may be from this machine's clock.
    public init(authorizations: [String], signingSecrets: [String], windowSeconds: Int) {
        precondition(!authorizations.isEmpty || !signingSecrets.isEmpty, "nothing would show who sends")
        self.authorizations = authorizations.map { SHA256.hash(data: Array($0.utf8)) }
        signature =
            signingSecrets.isEmpty
            ? nil
            : TimedSignature(
                header: RevenueCatSender.signatureHeader,
                secrets: signingSecrets,
                windowSeconds: windowSeconds
            )
    }

    /// Refuses a head that no body could make RevenueCat's, before the body is read.
    ///
    /// - Throws: `BillingError`, unverified.
    public func checkHead(authorization: String?, signature: String?) throws(BillingError) {
        if !authorizations.isEmpty, !isAuthorized(authorization) {
            throw BillingError(
                .unverified,
                "the Authorization header is not the configured one; compare it with revenuecat-authorization"
            )
        }
        _ = try self.signature?.parts(of: signature)
    }

    /// - Throws: `BillingError`, unverified.
    public func verify(
        authorization: String?,
        signature: String?,
        body: [UInt8],
        now: Instant
    ) throws(BillingError) {
        try checkHead(authorization: authorization, signature: signature)
        try self.signature?.verify(signature, body: body, now: now)
    }

    /// Digests are compared, all of them and each in a time that does not depend on what is in it: neither the length
    /// nor the beginning of a secret can be found out. "Bearer" before it is a habit that need not be configured.
    private func isAuthorized(_ authorization: String?) -> Bool {
        guard let authorization else { return false }
        var candidates = [SHA256.hash(data: Array(authorization.utf8))]
        if authorization.hasPrefix("Bearer ") {
            candidates.append(SHA256.hash(data: Array(authorization.dropFirst("Bearer ".count).utf8)))
        }
        var isAuthorized = false
        for candidate in candidates {
            // The comparison of two digests is constant in time (swift-crypto).
            for expected in authorizations where candidate == expected { isAuthorized = true }
        }
        return isAuthorized
    }
}
