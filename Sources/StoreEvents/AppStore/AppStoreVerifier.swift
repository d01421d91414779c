import Billing
import Crypto
import Synchronization
import Usage

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Verifies that a notification comes from the App Store and is for this app: App Store Server Notifications V2.
public final class AppStoreVerifier: Sendable {
    /// The app whose notifications are accepted.
    public struct App: Sendable, Equatable {
        public var bundleID: String
        /// The app's id in the App Store. Nil is not compared: sandbox notifications have none.
        public var appleID: Int64?
        public var environments: AcceptedEnvironments

        public init(bundleID: String, appleID: Int64?, environments: AcceptedEnvironments) {
            self.bundleID = bundleID
            self.appleID = appleID
            self.environments = environments
        }
    }

    let app: App
    private let root: PinnedRoot
    /// Verified chains, by the digest of their certificates.
    private let chains = Mutex<[SHA256Digest: CertificateChain.Verified]>([:])
    /// Apple uses one chain at a time, and another one every few years.
    private static let chainsMaximum = 16
    private static let algorithm = "ES256"

    public init(app: App, root: PinnedRoot) {
        self.app = app
        self.root = root
    }

    /// Returns the payload of a JWS. It is decoded only after verifying the header's algorithm, then the header's
    /// certificate chain, then the signature by the chain's first certificate. The whole chain must have been valid at
    /// the payload's time of signing.
    func payload(of compact: String, name: String) async throws(BillingError) -> PayloadFields {
        let signed = try SignedPayload(compact, name: name)
        // Accepting "none", or HMAC with the public key as its secret, would allow forged signatures.
        guard signed.algorithm == AppStoreVerifier.algorithm else {
            throw BillingError(
                .unverified,
                "\(name) must be signed with \(AppStoreVerifier.algorithm) and nothing else"
            )
        }
        let chain: CertificateChain.Verified
        do {
            chain = try await verifiedChain(signed.certificates)
        } catch {
            throw .badChain(name, error)
        }
        guard let signature = try? P256.Signing.ECDSASignature(rawRepresentation: signed.signature),
            chain.signerKey.isValidSignature(signature, for: signed.signedBytes)
        else { throw BillingError(.unverified, "\(name)'s signature is not its signer's") }
        let fields = try PayloadFields(try signed.payload(), path: name)
        let signedAt = try fields.required("signedDate", PayloadFields.instant)
        let time = Date(timeIntervalSince1970: Double(signedAt.microsecondsSince1970) / 1_000_000)
        guard chain.validity.contains(time) else {
            throw .badChain(name, CertificateChainError("a certificate in it was not valid at the time of signing"))
        }
        return fields
    }

    private func verifiedChain(
        _ certificates: [[UInt8]]
    ) async throws(CertificateChainError) -> CertificateChain.Verified {
        // DER is self-delimiting, so no other certificates have the same concatenated bytes.
        let digest = SHA256.hash(data: certificates.flatMap { $0 })
        if let cached = chains.withLock({ $0[digest] }) { return cached }
        let chain = try await CertificateChain.verify(certificates, root: root.certificate)
        chains.withLock { chains in
            if chains.count >= AppStoreVerifier.chainsMaximum { chains.removeAll() }
            chains[digest] = chain
        }
        return chain
    }
}

extension BillingError {
    fileprivate static func badChain(_ name: String, _ error: CertificateChainError) -> BillingError {
        BillingError(.unverified, "\(name)'s certificate chain is not good: \(error.reason)")
    }
}
