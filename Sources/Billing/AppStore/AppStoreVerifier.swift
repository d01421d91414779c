import Crypto
import Synchronization
import Usage

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Shows that what was posted is the App Store's and meant for this app: App Store Server Notifications V2.
public final class AppStoreVerifier: Sendable {
    /// Whose notifications are taken.
    public struct App: Sendable, Equatable {
        public var bundleID: String
        /// Of the app in the App Store; nil: not compared. Sandbox notifications carry none.
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
    private let chains = Mutex<[SHA256Digest: KnownChain]>([:])
    /// Apple uses one chain at a time, and another one every few years.
    private static let chainsMaximum = 16
    private static let algorithm = "ES256"

    /// A chain that was verified once. It stays so, within the time in which all of its certificates are valid.
    private struct KnownChain {
        var key: P256.Signing.PublicKey
        var validity: ClosedRange<Date>
    }

    public init(app: App, root: PinnedRoot) {
        self.app = app
        self.root = root
    }

    /// The payload of one JWS, verified: its chain as of the time at which the payload says it was signed, then its
    /// signature by the chain's first certificate.
    func payload(of compact: String, name: String) async throws(BillingError) -> PayloadFields {
        let signed = try SignedPayload(compact, name: name)
        // "none" and HMAC with a public key as its secret are the classic ways to forge a JWS.
        guard signed.algorithm == AppStoreVerifier.algorithm else {
            throw BillingError(
                .unverified,
                "\(name) must be signed with \(AppStoreVerifier.algorithm) and nothing else"
            )
        }
        let fields = try PayloadFields(signed.payload, path: name)
        let signedAt = try fields.required("signedDate", PayloadFields.instant)
        let key = try await signerKey(of: signed, at: signedAt)
        guard let signature = try? P256.Signing.ECDSASignature(rawRepresentation: signed.signature),
            key.isValidSignature(signature, for: signed.signedBytes)
        else { throw BillingError(.unverified, "\(name)'s signature is not its signer's") }
        return fields
    }

    private func signerKey(
        of signed: SignedPayload,
        at signedAt: Instant
    ) async throws(BillingError) -> P256.Signing.PublicKey {
        let time = Date(timeIntervalSince1970: Double(signedAt.microsecondsSince1970) / 1_000_000)
        // DER certificates are self-delimiting, so no other three have these bytes one after the other.
        let digest = SHA256.hash(data: signed.certificates.flatMap { $0 })
        if let known = chains.withLock({ $0[digest] }), known.validity.contains(time) { return known.key }
        let key: P256.Signing.PublicKey
        do {
            key = try await CertificateChain.signerKey(of: signed.certificates, root: root.certificate, at: time)
        } catch {
            throw BillingError(.unverified, "\(signed.name)'s certificate chain is not good: \(error.reason)")
        }
        if let validity = CertificateChain.validity(of: signed.certificates) {
            chains.withLock { chains in
                if chains.count >= AppStoreVerifier.chainsMaximum { chains.removeAll() }
                chains[digest] = KnownChain(key: key, validity: validity)
            }
        }
        return key
    }
}
