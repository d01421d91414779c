import Billing
import JSON

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A JWS in compact form (RFC 7515): header, payload and signature. `init` decodes only the header, which names the
/// certificates; call `payload()` after verification.
struct SignedPayload {
    /// The JWS's name in errors: `signedPayload`, `data.signedTransactionInfo`.
    let name: String
    let algorithm: String?
    /// The certificates as DER, the signing one first.
    let certificates: [[UInt8]]
    private let encodedPayload: Substring.UTF8View
    /// The signed bytes: the first two parts as received.
    let signedBytes: [UInt8]
    let signature: [UInt8]

    /// - Throws: malformed, not UTF-8 or too large, if this is no JWS; unverified, if the App Store does not create
    ///   such.
    init(_ compact: String, name: String) throws(BillingError) {
        let parts = compact.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3 else {
            throw .malformed("\(name) is not a JWS: it must have three parts with dots between them")
        }
        self.name = name
        let header = try SignedPayload.object(parts[0], "\(name)'s header")
        encodedPayload = parts[1]
        guard let signature = SignedPayload.decode(urlSafe: parts[2]) else {
            throw .malformed("\(name)'s signature is not base64url")
        }
        self.signature = signature
        signedBytes = Array(parts[0]) + [UInt8(ascii: ".")] + Array(parts[1])
        guard header["crit"] == nil else {
            throw BillingError(.unverified, "\(name)'s header requires an extension (crit) that is not supported")
        }
        algorithm = header["alg"]?.string
        certificates = try SignedPayload.certificates(header["x5c"], name)
    }

    /// - Throws: malformed, not UTF-8 or too large, if it is not an acceptable JSON object.
    func payload() throws(BillingError) -> JSONValue {
        try SignedPayload.object(encodedPayload, "\(name)'s payload")
    }

    /// Decodes the certificates. It checks their number first, so that a header with thousands of them is not decoded.
    private static func certificates(_ value: JSONValue?, _ name: String) throws(BillingError) -> [[UInt8]] {
        guard case .array(let elements)? = value, elements.count == CertificateChain.length else {
            throw BillingError(
                .unverified,
                "\(name)'s header must carry exactly \(CertificateChain.length) certificates (x5c)"
            )
        }
        var certificates: [[UInt8]] = []
        for element in elements {
            guard let bytes = element.string.flatMap({ Data(base64Encoded: $0) }) else {
                throw .malformed("\(name)'s certificates (x5c) are not base64")
            }
            certificates.append(Array(bytes))
        }
        return certificates
    }

    private static func object(_ part: Substring.UTF8View, _ what: String) throws(BillingError) -> JSONValue {
        guard let bytes = decode(urlSafe: part) else { throw .malformed("\(what) is not base64url") }
        let value = try JSONValue(received: bytes, as: what)
        guard case .object = value else { throw .malformed("\(what) must be a JSON object") }
        return value
    }

    /// Decodes Base64 for URLs. It rejects padding and other alphabets, so that each token has one spelling.
    private static func decode(urlSafe part: Substring.UTF8View) -> [UInt8]? {
        var text: [UInt8] = []
        text.reserveCapacity(part.count + 2)
        for byte in part {
            switch byte {
            case UInt8(ascii: "-"): text.append(UInt8(ascii: "+"))
            case UInt8(ascii: "_"): text.append(UInt8(ascii: "/"))
            case UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="): return nil
            default: text.append(byte)
            }
        }
        while !text.count.isMultiple(of: 4) { text.append(UInt8(ascii: "=")) }
        return Data(base64Encoded: Data(text)).map { Array($0) }
    }
}
