/// The settings of tokens, TLS and protected mode.
package struct AccessSettings: SettingGroup {
    package let authentication = Setting<Authentication>("authentication", default: "auto", .cases) {
        "whether requests need a token. auto: once one has ever been created; required: always; off: never"
    }
    package let authenticationTimeout =
        Setting("authentication-timeout-ms", default: 10_000, .milliseconds(100...600_000)) {
            "where a token is required, a connection that has not authenticated within this time is closed"
        }
    package let connectionsPerTokenMaximum = Setting("connections-per-token-maximum", .number(1...1_000_000)) {
        "maximum open connections with one token; a further AUTH is answered -OVERLOADED"
    }
    package let tlsCertificate = Setting("tls-certificate", .text("path")) {
        "PEM file with the certificate, followed by the intermediate ones; the port then accepts only TLS. SIGHUP "
            + "reads it, tls-key and tls-client-ca again"
    }
    package let tlsKey = Setting("tls-key", .text("path")) {
        "PEM file with the private key of tls-certificate, without a passphrase. Set both or neither"
    }
    package let tlsClientCA = Setting("tls-client-ca", .text("path")) {
        "PEM file with CA certificates. Clients must then present a certificate that one of them has signed"
    }
    package let tlsHandshakeTimeout =
        Setting("tls-handshake-timeout-ms", default: 10_000, .milliseconds(100...3_600_000)) {
            "a connection is closed if its TLS handshake is not complete within this time"
        }
    package let trustedNetwork = Setting("trusted-network", default: "no", .words([("no", false), ("yes", true)])) {
        "yes: other machines may reach the service without TLS or tokens. Only for networks without untrusted machines"
    }

    package static func check(_ values: SettingValues<AccessSettings>) throws(InvalidSetting) {
        guard (values.tlsCertificate == nil) == (values.tlsKey == nil) else {
            throw InvalidSetting(text: "tls-certificate and tls-key go together: set both, or neither")
        }
        guard values.tlsClientCA == nil || values.tls != nil else {
            throw InvalidSetting(text: "tls-client-ca needs tls-certificate and tls-key")
        }
    }
}

extension SettingValues<AccessSettings> {
    /// The files of TLS; nil: the ports speak plain text.
    var tls: TLSFiles? {
        guard let certificate = self.tlsCertificate, let key = self.tlsKey else { return nil }
        return TLSFiles(certificate: certificate, key: key, clientCA: self.tlsClientCA)
    }
}
