/// Tokens, TLS and protected mode.
extension Settings {
    static let authentication = Setting<Authentication>(
        "authentication",
        default: .auto,
        "whether requests need a token: once any token was created, always, or never"
    )
    static let authenticationTimeout = Setting<Duration>(
        "authentication-timeout-ms",
        default: 10_000,
        100...600_000,
        "where a token is required, a connection that has not authenticated after this long is closed"
    )
    static let connectionsPerTokenMaximum = Setting<Int?>(
        "connections-per-token-maximum",
        1...1_000_000,
        "connections that one token may have; one more AUTH is answered -OVERLOADED. Not set: connections-maximum"
    )
    static let tlsCertificate = Setting<String?>(
        "tls-certificate",
        "path",
        "PEM file with the service's certificate, then the intermediate ones; the port then speaks TLS only. SIGHUP reloads "
            + "it, tls-key and tls-client-ca"
    )
    static let tlsKey = Setting<String?>(
        "tls-key",
        "path",
        "PEM file with the key of tls-certificate, without a passphrase; set both or neither"
    )
    static let tlsClientCA = Setting<String?>(
        "tls-client-ca",
        "path",
        "PEM file with CAs; clients must present a certificate of one of them"
    )
    static let tlsHandshakeTimeout = Setting<Duration>(
        "tls-handshake-timeout-ms",
        default: 10_000,
        100...3_600_000,
        "a connection whose TLS handshake is not complete after this long is closed"
    )
    static let trustedNetwork = Setting<Bool>(
        "trusted-network",
        (false, "no"),
        (true, "yes"),
        "yes: listen without TLS or tokens on an address that other machines can reach, because the network protects it"
    )

    static let ofAccess: [any SettingDefinition] = [
        authentication, authenticationTimeout, connectionsPerTokenMaximum, tlsCertificate, tlsKey, tlsClientCA,
        tlsHandshakeTimeout, trustedNetwork,
    ]
}
