import Crypto
import SwiftASN1
@_spi(FixedExpiryValidationTime) import X509

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The three certificates of an App Store signature: signer, intermediate, root.
enum CertificateChain {
    static let length = 3

    /// A verified chain.
    struct Verified {
        let signerKey: P256.Signing.PublicKey
        /// The time when all certificates are valid. Signatures of another time are not accepted.
        let validity: ClosedRange<Date>
    }

    /// Verifies that a chain is signed from the pinned root down, is valid as a whole at some time, has certificate
    /// authorities where required, and has Apple's marker extensions. Every registered developer has certificates under
    /// the same root; only those with the markers sign for the App Store.
    ///
    /// - Parameter encoded: the certificates as DER, the signer first.
    /// - Throws: an error that describes what is wrong with the chain.
    static func verify(_ encoded: [[UInt8]], root: Certificate) async throws(CertificateChainError) -> Verified {
        let certificates = try decode(encoded)
        guard certificates.count == length, certificates[2] == root else {
            throw CertificateChainError("it does not end at the certificate in appstore-root-certificate")
        }
        guard let key = P256.Signing.PublicKey(certificates[0].publicKey) else {
            throw CertificateChainError("the signer's key is not of the curve P-256")
        }
        let validity = try validity(of: certificates)
        var verifier = Verifier(rootCertificates: CertificateStore([root])) {
            // All certificates are valid throughout `validity`. The time of signing is compared with it after decoding
            // the payload.
            RFC5280Policy(fixedExpiryValidationTime: validity.lowerBound)
            KeyUsePolicy()
            AppleMarkerPolicy()
        }
        let result = await verifier.validate(leaf: certificates[0], intermediates: CertificateStore([certificates[1]]))
        switch result {
        // The verifier finds any chain to the root; it must be the received one.
        case .validCertificate(let chain) where Array(chain) == certificates:
            return Verified(signerKey: key, validity: validity)
        case .validCertificate: throw CertificateChainError("its certificates do not sign each other in their order")
        case .couldNotValidate(let failures): throw CertificateChainError(reason(failures.last?.policyFailureReason))
        }
    }

    /// Returns the time when all of the certificates are valid.
    ///
    /// - Throws: if there is no such time.
    private static func validity(of certificates: [Certificate]) throws(CertificateChainError) -> ClosedRange<Date> {
        guard let begin = certificates.map(\.notValidBefore).max(), let end = certificates.map(\.notValidAfter).min(),
            begin <= end
        else { throw CertificateChainError("its certificates are never valid at the same time") }
        return begin...end
    }

    static func decode(_ encoded: [[UInt8]]) throws(CertificateChainError) -> [Certificate] {
        var certificates: [Certificate] = []
        for bytes in encoded {
            guard let certificate = try? Certificate(derEncoded: bytes) else {
                throw CertificateChainError("it holds something that is no certificate")
            }
            certificates.append(certificate)
        }
        return certificates
    }

    /// Replaces texts of RFC5280Policy, because they repeat names in the certificates, which the sender chooses.
    private static func reason(_ reason: PolicyFailureReason?) -> String {
        guard let text = reason?.description else { return "no certificate in it signs the one before" }
        return text.hasPrefix("RFC5280Policy")
            ? "a certificate in it signs what it may not sign, as a certificate authority" : text
    }
}

struct CertificateChainError: Error {
    let reason: String

    init(_ reason: String) {
        self.reason = reason
    }
}

/// Checks Apple's marker extensions of the signer and the intermediate, with the object identifiers that Apple's
/// libraries use; Apple's certification practice statements document them.
private struct AppleMarkerPolicy: VerifierPolicy {
    /// "Mac App Store Receipt Signing".
    private static let signer: ASN1ObjectIdentifier = [1, 2, 840, 113635, 100, 6, 11, 1]
    /// "Worldwide Developer Relations".
    private static let intermediate: ASN1ObjectIdentifier = [1, 2, 840, 113635, 100, 6, 2, 1]

    /// The presence of a marker is all there is to check.
    let verifyingCriticalExtensions: [ASN1ObjectIdentifier] = [signer, intermediate]

    func chainMeetsPolicyRequirements(chain: UnverifiedCertificateChain) -> PolicyEvaluationResult {
        guard chain.count == CertificateChain.length else {
            return .failsToMeetPolicy(reason: "it must be three certificates long")
        }
        guard chain[0].extensions.contains(where: { $0.oid == AppleMarkerPolicy.signer }) else {
            return .failsToMeetPolicy(reason: "the signer has not the mark of the App Store")
        }
        guard chain[1].extensions.contains(where: { $0.oid == AppleMarkerPolicy.intermediate }) else {
            return .failsToMeetPolicy(reason: "the intermediate has not the mark of Apple's developer relations")
        }
        return .meetsPolicy
    }
}

/// Checks the key usage extension, if there is one; RFC5280Policy does not.
private struct KeyUsePolicy: VerifierPolicy {
    let verifyingCriticalExtensions: [ASN1ObjectIdentifier] = [.X509ExtensionID.keyUsage]

    func chainMeetsPolicyRequirements(chain: UnverifiedCertificateChain) -> PolicyEvaluationResult {
        for (index, certificate) in chain.enumerated() {
            guard let use = try? certificate.extensions.keyUsage else {
                if certificate.extensions[oid: .X509ExtensionID.keyUsage] == nil { continue }
                return .failsToMeetPolicy(reason: "a certificate's key usage cannot be read")
            }
            guard index == 0 ? use.digitalSignature : use.keyCertSign else {
                return .failsToMeetPolicy(reason: "a certificate's key may not be used to sign what it signs")
            }
        }
        return .meetsPolicy
    }
}
