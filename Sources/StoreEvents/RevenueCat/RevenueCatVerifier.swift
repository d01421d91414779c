import Billing
import Crypto
import Usage

/// Verifies that a request comes from RevenueCat: by the static Authorization header, by a signature of the body
/// (`TimedSignature`), or by both, as configured. RevenueCat signs each delivery with its time, also repetitions.
public struct RevenueCatVerifier: Sendable {
    public static let signatureHeader = "X-RevenueCat-Webhook-Signature"

    private let authorizations: [SHA256Digest]
    /// What verifies a signature; nil if none is required.
    private let signature: TimedSignature?

    /// - Parameters:
    ///   - authorizations: accepted values of the Authorization header; several, so that one can be replaced.
    ///   - signingSecrets: the same for signatures. Empty: no signature is required.
    ///   - windowSeconds: the largest difference between the time in a signature and this machine's clock.
    public init(authorizations: [String], signingSecrets: [String], windowSeconds: Int) {
        precondition(
            !authorizations.isEmpty || !signingSecrets.isEmpty,
            "no header and no secret would verify the sender"
        )
        self.authorizations = authorizations.map { SHA256.hash(data: Array($0.utf8)) }
        signature =
            signingSecrets.isEmpty
            ? nil
            : TimedSignature(
                header: RevenueCatVerifier.signatureHeader,
                secrets: signingSecrets,
                windowSeconds: windowSeconds
            )
    }

    /// Rejects a request by its header alone, before the body is read.
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

    /// Compares with all digests in constant time, so that timing reveals neither the length nor the beginning of a
    /// secret. A "Bearer" prefix is accepted although it is not configured.
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
