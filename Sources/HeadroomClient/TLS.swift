#if TLS
import TransportSecurity

extension HeadroomClient {
    /// How to connect with TLS. The service's certificate is always checked: signed by a CA that is known, valid now, and for
    /// the name or the address that was connected to.
    public struct TLS: Sendable {
        let client: ClientTLS

        /// - Parameters:
        ///   - ca: PEM file with the CAs to know, instead of the system's.
        ///   - certificate: PEM file with the certificate to present; goes with `key`.
        ///   - key: PEM file with its key.
        ///   - serverName: the name in the service's certificate, where it is not the endpoint's host. A certificate for the
        ///     address that was connected to is taken as well.
        /// - Throws: an error that says which file or name cannot be used, and why.
        public init(
            ca: String? = nil,
            certificate: String? = nil,
            key: String? = nil,
            serverName: String? = nil
        ) throws {
            client = try ClientTLS(.init(ca: ca, certificate: certificate, key: key), serverName: serverName)
        }
    }
}
#endif
