import Foundation
import JSON

@testable import Billing
@testable import StoreEvents

/// Fuzzes the decoder of the App Store's notifications. A JWS decodes to the parts from which it was encoded; no
/// certificate causes a trap.
enum SignedPayloadTarget {
    /// The input: a JWS's header, payload and signature, not yet base64url-encoded, separated by zero bytes.
    static func checkParts(_ input: [UInt8]) throws(Violation) {
        let parts = input.split(separator: 0, maxSplits: 2, omittingEmptySubsequences: false).map(Array.init)
        guard parts.count == 3 else { return }
        let signed = "\(urlSafe(parts[0])).\(urlSafe(parts[1]))"
        let compact = "\(signed).\(urlSafe(parts[2]))"
        let result = BillingTarget.attempt { () throws(BillingError) in try SignedPayload(compact, name: "part") }
        guard case .success(let payload) = result else {
            if case .failure(let error) = result { try BillingTarget.checkRefusal(error) }
            return
        }
        try requireEqual(payload.signature, parts[2], "the signature")
        try requireEqual(payload.signedBytes, Array(signed.utf8), "the signed bytes")
        try requireEqual(payload.certificates.count, CertificateChain.length, "certificates")
        let actual = BillingTarget.attempt { () throws(BillingError) in try payload.payload() }
        let expected = BillingTarget.attempt { () throws(JSONError) in try JSONValue(parsing: parts[1]) }
        switch (actual, expected) {
        case (.success(let actual), .success(let expected)): try requireEqual(actual, expected, "the payload")
        case (.success, .failure(let error)):
            throw Violation(description: "a payload was accepted instead of refused: \(error)")
        case (.failure(let error), .success(.object)): throw Violation(description: "a payload was refused: \(error)")
        case (.failure(let error), _): try BillingTarget.checkRefusal(error)
        }
    }

    /// The input: the body of an HTTP request.
    static func checkPosted(_ input: [UInt8]) throws(Violation) {
        let result = BillingTarget.attempt { () throws(BillingError) in
            try SignedPayload(try AppStoreNotification.signedPayload(of: input), name: "signedPayload")
        }
        if case .failure(let error) = result { try BillingTarget.checkRefusal(error) }
    }

    /// The input: a certificate in DER.
    static func checkCertificates(_ input: [UInt8]) throws(Violation) {
        guard let reason = refusal(of: input) else { return }
        try BillingTarget.checkRefusal(BillingError(.unverified, reason))
    }

    private static func refusal(of certificate: [UInt8]) -> String? {
        do throws(CertificateChainError) {
            _ = try CertificateChain.decode([certificate])
            return nil
        } catch {
            return error.reason
        }
    }

    private static func urlSafe(_ bytes: [UInt8]) -> String {
        Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }
}
