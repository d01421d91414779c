#if TLS
import Foundation
import NIOSSL

/// A readable TLS error. The library's own errors name its source lines, and not what to do.
public struct TLSFailure: Error, CustomStringConvertible {
    public let description: String

    package init(_ error: any Error) {
        description = TLSFailure.text(for: error)
    }

    private init(description: String) {
        self.description = description
    }

    /// The connection was closed during the handshake.
    static let closed = TLSFailure(description: "the service closed the connection")

    private static func text(for error: any Error) -> String {
        switch error {
        case let failure as TLSFailure: return failure.description
        case let error as NIOSSLExtraError where error == .failedToValidateHostname:
            return
                "the certificate is for another name; connect by the name in it, or give that name (--tls-server-name)"
        case NIOSSLError.unableToValidateCertificate: return untrusted
        default: break
        }
        let text = String(describing: error)
        for (reason, advice) in known where text.contains(reason) { return advice }
        let reasons = text.matches(of: /OPENSSL_internal:([A-Z0-9_]+)/).map { String($0.1) }
        return reasons.isEmpty ? text : "TLS failed: \(reasons.joined(separator: ", "))"
    }

    private static let untrusted =
        "the certificate is not signed by a trusted CA, or is not valid at this time; name your CA (--tls-ca)"

    /// BoringSSL's names of reasons, the more specific ones first.
    private static let known = [
        ("CERTIFICATE_VERIFY_FAILED", untrusted),
        ("WRONG_VERSION_NUMBER", "the other side does not speak TLS"),
        (
            "CERTIFICATE_REQUIRED",
            "the service requires a client certificate; name one and its key (--tls-certificate, --tls-key)"
        ),
        ("PEER_DID_NOT_RETURN_A_CERTIFICATE", "the client presented no certificate"),
        ("ALERT_UNKNOWN_CA", "the other side does not trust the CA of the certificate"),
        ("ALERT_BAD_CERTIFICATE", "the other side does not accept the certificate"),
        ("ALERT_CERTIFICATE", "the other side does not accept the certificate"),
        ("UNSUPPORTED_PROTOCOL", "the other side offers only versions of TLS before 1.2"),
        ("ALERT_PROTOCOL_VERSION", "the two sides have no version of TLS in common; 1.2 and later will do"),
        ("EOF during handshake", "the connection ended during the TLS handshake"),
    ]
}

extension TLSFailure: LocalizedError {
    public var errorDescription: String? { description }
}
#endif
