import Billing
import X509

/// The root certificate that every chain of the App Store must end at.
public struct PinnedRoot: Sendable, Equatable {
    let certificate: Certificate

    /// - Parameter file: a certificate in PEM or in DER form, as Apple publishes it.
    /// - Throws: an error that describes what is wrong with it.
    public init(file: [UInt8]) throws(BillingError) {
        let text = String(validating: file, as: UTF8.self)
        let certificate =
            if let text, text.contains("-----BEGIN") {
                try? Certificate(pemEncoded: text)
            } else {
                try? Certificate(derEncoded: file)
            }
        guard let certificate else {
            throw .malformed(
                "it holds no certificate, neither in PEM form (-----BEGIN CERTIFICATE-----) nor in DER form"
            )
        }
        guard case .isCertificateAuthority? = try? certificate.extensions.basicConstraints,
            certificate.issuer == certificate.subject,
            certificate.publicKey.isValidSignature(certificate.signature, for: certificate)
        else {
            throw .malformed("its certificate is not a root: it must be a certificate authority that signed itself")
        }
        self.certificate = certificate
    }
}
