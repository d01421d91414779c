import Crypto
import Usage

/// Shows that a request is RevenueCat's: by the static Authorization header, by a signature of the body, or by both,
/// whatever is configured.
///
/// The header and the signature are RevenueCat's: `X-RevenueCat-Webhook-Signature: t=<seconds since 1970>,v1=<hex>`,
/// HMAC-SHA256 over `<t>.<body>`. The time is that of the delivery: a repetition is signed anew.
public struct RevenueCatSender: Sendable {
    public static let signatureHeader = "X-RevenueCat-Webhook-Signature"
    /// While a secret is replaced, a delivery carries two.
    private static let signaturesMaximum = 8

    private let authorizations: [SHA256Digest]
    private let signingKeys: [SymmetricKey]
    private let windowSeconds: Int64

    /// - Parameters:
    ///   - authorizations: values of the Authorization header; any of them will do, so that one can be replaced.
    ///   - signingSecrets: the same for signatures. Empty: none is asked for.
    ///   - windowSeconds: how far the time in a signature may be from this machine's clock.
    public init(authorizations: [String], signingSecrets: [String], windowSeconds: Int) {
        precondition(!authorizations.isEmpty || !signingSecrets.isEmpty, "nothing would show who sends")
        self.authorizations = authorizations.map { SHA256.hash(data: Array($0.utf8)) }
        signingKeys = signingSecrets.map { SymmetricKey(data: Array($0.utf8)) }
        self.windowSeconds = Int64(windowSeconds)
    }

    /// - Throws: `BillingError`, unverified.
    public func verify(
        authorization: String?,
        signature: String?,
        body: [UInt8],
        now: Instant
    ) throws(BillingError) {
        if !authorizations.isEmpty, !isAuthorized(authorization) {
            throw BillingError(
                .unverified,
                "the Authorization header is not the configured one; compare it with revenuecat-authorization"
            )
        }
        if !signingKeys.isEmpty { try verify(signature: signature, body: body, now: now) }
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

    private func verify(signature: String?, body: [UInt8], now: Instant) throws(BillingError) {
        guard let signature else {
            throw BillingError(.unverified, "the header \(RevenueCatSender.signatureHeader) is missing")
        }
        guard let parts = SignatureParts(signature) else {
            throw BillingError(
                .unverified,
                "\(RevenueCatSender.signatureHeader) must have the form t=<seconds>,v1=<64 hexadecimal digits>"
            )
        }
        let signed = Array("\(parts.time).".utf8) + body
        var isGenuine = false
        for key in signingKeys {
            for code in parts.codes.prefix(RevenueCatSender.signaturesMaximum)
            where HMAC<SHA256>.isValidAuthenticationCode(code, authenticating: signed, using: key) {
                isGenuine = true
            }
        }
        guard isGenuine else {
            throw BillingError(.unverified, "the signature does not belong to this body and a configured secret")
        }
        // After the signature: only RevenueCat learns about this machine's clock.
        guard (now.secondsSince1970 - parts.time).magnitude <= windowSeconds.magnitude else {
            throw BillingError(
                .unverified,
                "the signature was made more than \(windowSeconds) seconds from now; is this machine's clock right?"
            )
        }
    }
}

/// `t=1591121855,v1=5d2c…,v1=…`; other parts are left alone.
private struct SignatureParts {
    private(set) var time: Int64 = 0
    private(set) var codes: [[UInt8]] = []

    init?(_ header: String) {
        guard header.utf8.count <= 1_024 else { return nil }
        var hasTime = false
        for part in header.split(separator: ",") {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2 else { return nil }
            switch pair[0].drop(while: { $0 == " " }) {
            case "t":
                guard !hasTime, let seconds = SignatureParts.seconds(pair[1]) else { return nil }
                time = seconds
                hasTime = true
            case "v1":
                guard let code = SignatureParts.bytes(pair[1]) else { return nil }
                codes.append(code)
            default: continue
            }
        }
        guard hasTime, !codes.isEmpty else { return nil }
    }

    /// As it was signed: digits alone, or two texts would stand for one time.
    private static func seconds(_ text: Substring) -> Int64? {
        guard (1...12).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            text == "0" || !text.hasPrefix("0")
        else { return nil }
        return Int64(text)
    }

    private static func bytes(_ text: Substring) -> [UInt8]? {
        let digits = text.utf8.compactMap { byte in
            byte < 0x80 ? Character(Unicode.Scalar(byte)).hexDigitValue : nil
        }
        guard digits.count == 64, text.utf8.count == 64 else { return nil }
        return stride(from: 0, to: 64, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }
}
