#if TLS
import TransportSecurity

extension HeadroomClient {
    /// How to connect with TLS. The service's certificate is always checked: it must be signed by a trusted CA, valid
    /// now, and issued for the endpoint's name or address.
    public struct TLS: Sendable {
        let client: ClientTLS

        /// - Parameters:
        ///   - ca: PEM file with the trusted CAs; nil: those of the system.
        ///   - certificate: PEM file with the client certificate; requires `key`.
        ///   - key: PEM file with its key.
        ///   - serverName: the name in the service's certificate, if it is not the endpoint's host. A certificate for
        ///     the endpoint's address is accepted as well.
        /// - Throws: an error with the file or name that cannot be used, and the reason.
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
