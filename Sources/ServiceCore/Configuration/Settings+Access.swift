/// Tokens, TLS and protected mode.
extension Settings {
    static let authentication = Setting<Authentication>(
        "authentication",
        default: .auto,
        "whether requests need a token. auto: once a token has ever been created; required: always; off: never"
    )
    static let authenticationTimeout = Setting<Duration>(
        "authentication-timeout-ms",
        default: 10_000,
        100...600_000,
        "if a token is required, a connection that has not authenticated within this time is closed"
    )
    static let connectionsPerTokenMaximum = Setting<Int?>(
        "connections-per-token-maximum",
        1...1_000_000,
        "maximum number of open connections that use one token. A further AUTH is answered -OVERLOADED. If it is not "
            + "set, only connections-maximum applies"
    )
    static let tlsCertificate = Setting<String?>(
        "tls-certificate",
        "path",
        "PEM file with the service's certificate, followed by the intermediate certificates. If it is set, the port "
            + "accepts only TLS. SIGHUP reads this file, tls-key and tls-client-ca again"
    )
    static let tlsKey = Setting<String?>(
        "tls-key",
        "path",
        "PEM file with the private key of tls-certificate, without a passphrase. Set both or neither"
    )
    static let tlsClientCA = Setting<String?>(
        "tls-client-ca",
        "path",
        "PEM file with CA certificates. If it is set, clients must present a certificate that is signed by one of "
            + "these CAs"
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
        "yes: the service may listen without TLS or tokens on an address that other machines can reach. Use it only if "
            + "no untrusted machine can reach that address"
    )

    public static let ofAccess: [any SettingDefinition] = [
        authentication, authenticationTimeout, connectionsPerTokenMaximum, tlsCertificate, tlsKey, tlsClientCA,
        tlsHandshakeTimeout, trustedNetwork,
    ]
}
