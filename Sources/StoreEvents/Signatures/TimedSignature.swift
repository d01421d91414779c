import Billing
import Crypto
import Usage

/// Verifies that a body was signed with a shared secret, at a time close to now.
///
/// The scheme of Stripe and RevenueCat: a header `t=<seconds since 1970>,v1=<hex>[,v1=<hex>…]`, where each `v1` is
/// HMAC-SHA256 over `<t>.<body>`. One of them has to match. Other schemes are ignored, so that a sender cannot choose a
/// weaker one.
struct TimedSignature: Sendable {
    /// While a secret is replaced, a delivery has a signature for each.
    private static let codesMaximum = 8

    private let header: String
    private let keys: [SymmetricKey]
    private let windowSeconds: Int64

    /// - Parameters:
    ///   - header: the header's name, for errors.
    ///   - secrets: several, so that one can be replaced.
    ///   - windowSeconds: the largest difference between the time in a signature and this machine's clock.
    init(header: String, secrets: [String], windowSeconds: Int) {
        precondition(!secrets.isEmpty, "no signature could be verified")
        self.header = header
        keys = secrets.map { SymmetricKey(data: Array($0.utf8)) }
        self.windowSeconds = Int64(windowSeconds)
    }

    /// - Parameters:
    ///   - value: the header's value; nil if it is missing.
    ///   - body: the unparsed bytes.
    /// - Throws: `BillingError`, unverified.
    func verify(_ value: String?, body: [UInt8], now: Instant) throws(BillingError) {
        let parts = try parts(of: value)
        let signed = Array("\(parts.time).".utf8) + body
        var isGenuine = false
        // All are compared, each in constant time (swift-crypto), so that timing reveals nothing about a secret.
        for key in keys {
            for code in parts.codes.prefix(TimedSignature.codesMaximum)
            where HMAC<SHA256>.isValidAuthenticationCode(code, authenticating: signed, using: key) {
                isGenuine = true
            }
        }
        guard isGenuine else {
            throw BillingError(.unverified, "the signature does not belong to this body and a configured secret")
        }
        // This comes after the signature, so that only the store learns about this machine's clock.
        guard (now.secondsSince1970 - parts.time).magnitude <= windowSeconds.magnitude else {
            throw BillingError(
                .unverified,
                "the signature was made more than \(windowSeconds) seconds from now; is this machine's clock right?"
            )
        }
    }

    /// - Throws: `BillingError`, unverified, if the header is missing or malformed.
    func parts(of value: String?) throws(BillingError) -> SignatureParts {
        guard let value else {
            throw BillingError(.unverified, "the header \(header) is missing")
        }
        guard let parts = SignatureParts(value) else {
            throw BillingError(
                .unverified,
                "\(header) must have the form t=<seconds>,v1=<64 hexadecimal digits>"
            )
        }
        return parts
    }
}

/// The parsed header: `t=1591121855,v1=5d2c…,v1=…`; other parts are ignored.
struct SignatureParts {
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

    /// Parses digits without leading zeros: other spellings of the same time were not signed.
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
