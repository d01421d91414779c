/// Tokens, TLS and protected mode.
extension Settings {
    static let authentication = Setting<Authentication>(
        "authentication",
        default: .auto,
        "whether requests need a token. auto: once one has ever been created; required: always; off: never"
    )
    static let authenticationTimeout = Setting<Duration>(
        "authentication-timeout-ms",
        default: 10_000,
        100...600_000,
        "where a token is required, a connection that has not authenticated within this time is closed"
    )
    static let connectionsPerTokenMaximum = Setting<Int?>(
        "connections-per-token-maximum",
        1...1_000_000,
        "maximum open connections with one token; a further AUTH is answered -OVERLOADED"
    )
    static let tlsCertificate = Setting<String?>(
        "tls-certificate",
        "path",
        "PEM file with the certificate, followed by the intermediate ones; the port then accepts only TLS. SIGHUP "
            + "reads it, tls-key and tls-client-ca again"
    )
    static let tlsKey = Setting<String?>(
        "tls-key",
        "path",
        "PEM file with the private key of tls-certificate, without a passphrase. Set both or neither"
    )
    static let tlsClientCA = Setting<String?>(
        "tls-client-ca",
        "path",
        "PEM file with CA certificates. Clients must then present a certificate that one of them has signed"
    )
    static let tlsHandshakeTimeout = Setting<Duration>(
        "tls-handshake-timeout-ms",
        default: 10_000,
        100...3_600_000,
        "a connection is closed if its TLS handshake is not complete within this time"
    )
    static let trustedNetwork = Setting<Bool>(
        "trusted-network",
        (false, "no"),
        (true, "yes"),
        "yes: other machines may reach the service without TLS or tokens. Only for networks without untrusted machines"
    )

    public static let ofAccess: [any SettingDefinition] = [
        authentication, authenticationTimeout, connectionsPerTokenMaximum, tlsCertificate, tlsKey, tlsClientCA,
        tlsHandshakeTimeout, trustedNetwork,
    ]
}
