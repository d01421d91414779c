import Crypto
import Foundation
import JSON
import SwiftASN1
import X509

@testable import Billing
@testable import StoreEvents

/// A root, an intermediate and a signer like Apple's. Tests can change each property.
struct TestAuthority {
    struct Issued {
        var certificate: Certificate
        var key: Certificate.PrivateKey

        var der: [UInt8] {
            var serializer = DER.Serializer()
            // Serializing a new certificate does not fail.
            try! serializer.serialize(certificate)
            return serializer.serializedBytes
        }
    }

    /// The properties of a certificate, by default like Apple's.
    struct Recipe {
        var begins = TestAuthority.time(-86_400 * 365)
        var ends = TestAuthority.time(86_400 * 365)
        var isAuthority = true
        var pathLength: Int?
        var mark: ASN1ObjectIdentifier?
        var use: KeyUsage?
        /// A critical extension that the verifier does not support.
        var strangeExtensionIsCritical = false
    }

    static let signerMark: ASN1ObjectIdentifier = [1, 2, 840, 113635, 100, 6, 11, 1]
    static let intermediateMark: ASN1ObjectIdentifier = [1, 2, 840, 113635, 100, 6, 2, 1]
    /// The default time of signing.
    static let now: TimeInterval = 1_795_280_400

    static func time(_ seconds: TimeInterval) -> Date { Date(timeIntervalSince1970: now + seconds) }

    var root: Issued
    var intermediate: Issued
    var signer: Issued
    let signerKey = P256.Signing.PrivateKey()

    init(
        root rootMaking: Recipe = Recipe(),
        intermediate intermediateMaking: Recipe = Recipe(mark: intermediateMark),
        signer signerMaking: Recipe = Recipe(isAuthority: false, mark: signerMark)
    ) throws {
        root = try TestAuthority.issue("Test Root", rootMaking, by: nil)
        intermediate = try TestAuthority.issue("Test Intermediate", intermediateMaking, by: root)
        signer = try TestAuthority.issue("Test Signer", signerMaking, by: intermediate, signerKey: signerKey)
    }

    /// - Parameter signerKey: nil for an authority.
    static func issue(
        _ name: String,
        _ making: Recipe,
        by issuer: Issued?,
        signerKey: P256.Signing.PrivateKey? = nil
    ) throws -> Issued {
        // Apple's authorities have keys on P-384, and its signers on P-256.
        let key: Certificate.PrivateKey =
            signerKey.map { Certificate.PrivateKey($0) } ?? Certificate.PrivateKey(P384.Signing.PrivateKey())
        let subject = try DistinguishedName { CommonName(name) }
        let extensions = try Certificate.Extensions {
            Critical(
                making.isAuthority
                    ? BasicConstraints.isCertificateAuthority(maxPathLength: making.pathLength)
                    : .notCertificateAuthority
            )
            Critical(
                making.use
                    ?? (making.isAuthority
                        ? KeyUsage(keyCertSign: true, cRLSign: true) : KeyUsage(digitalSignature: true))
            )
            if let mark = making.mark { Certificate.Extension(oid: mark, critical: false, value: [0x05, 0x00]) }
            if making.strangeExtensionIsCritical {
                Certificate.Extension(oid: [1, 2, 840, 113635, 100, 6, 99], critical: true, value: [0x05, 0x00])
            }
        }
        let certificate = try Certificate(
            version: .v3,
            serialNumber: Certificate.SerialNumber(),
            publicKey: key.publicKey,
            notValidBefore: making.begins,
            notValidAfter: making.ends,
            issuer: issuer?.certificate.subject ?? subject,
            subject: subject,
            extensions: extensions,
            issuerPrivateKey: issuer?.key ?? key
        )
        return Issued(certificate: certificate, key: key)
    }

    var chain: [[UInt8]] { [signer.der, intermediate.der, root.der] }

    func verifier(
        bundleID: String = AppStorePayload.bundleID,
        appleID: Int64? = nil,
        environments: AcceptedEnvironments = .production
    ) throws -> AppStoreVerifier {
        AppStoreVerifier(
            app: AppStoreVerifier.App(bundleID: bundleID, appleID: appleID, environments: environments),
            root: try PinnedRoot(file: root.der)
        )
    }

    /// A JWS, by default like the App Store's.
    func sign(_ payload: JSONValue, algorithm: String = "ES256", chain: [[UInt8]]? = nil) throws -> String {
        let header = JSONValue.object([
            "alg": .string(algorithm),
            "x5c": .array((chain ?? self.chain).map { .string(Data($0).base64EncodedString()) }),
        ])
        return try sign(header: header, payload: Array(payload.jsonText.utf8))
    }

    func sign(header: JSONValue, payload: [UInt8]) throws -> String {
        let signed = "\(TestAuthority.urlSafe(Array(header.jsonText.utf8))).\(TestAuthority.urlSafe(payload))"
        let signature = try signerKey.signature(for: Array(signed.utf8))
        return "\(signed).\(TestAuthority.urlSafe(Array(signature.rawRepresentation)))"
    }

    static func urlSafe(_ bytes: [UInt8]) -> String {
        Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }
}
