import NIOCore
import Testing

@testable import ServiceCore

@Suite("Protected mode")
struct ProtectedModeTests {
    private func check(
        _ host: String,
        hasTLS: Bool = false,
        requiresAuthentication: Bool = false,
        networkIsTrusted: Bool = false,
        resolvesTo addresses: [String]? = nil
    ) throws {
        let mode = ProtectedMode(hasTLS: hasTLS, networkIsTrusted: networkIsTrusted) { name in
            guard let addresses else { return try ProtectedMode.addresses(of: name) }
            return try addresses.map { try SocketAddress(ipAddress: $0, port: 0) }
        }
        try mode.check(ListenAddress(host: host, port: 6_747), requiresAuthentication: requiresAuthentication)
    }

    private func isRefused(_ host: String, resolvesTo addresses: [String]? = nil) -> Bool {
        do {
            try check(host, resolvesTo: addresses)
            return false
        } catch {
            return error is ProtectedMode.Refused
        }
    }

    @Test(
        "allows loopback addresses without TLS and tokens",
        arguments: ["127.0.0.1", "127.0.0.2", "127.255.255.255", "::1", "::ffff:127.0.0.1", "localhost"]
    )
    func loopback(host: String) throws { #expect(!isRefused(host)) }

    @Test(
        "refuses any other address without TLS and tokens",
        arguments: [
            "0.0.0.0", "::", "10.0.0.1", "192.168.1.7", "126.255.255.255", "128.0.0.1", "8.8.8.8", "fe80::1", "::2",
            "1::1",
            "2001:db8::7f00:1", "::ffff:10.0.0.1", "::127.0.0.1", "0127.0.0.1",
        ]
    )
    func reachable(host: String) { #expect(isRefused(host)) }

    @Test("refuses a name when any of its addresses is not loopback")
    func names() {
        #expect(!isRefused("headroom.test", resolvesTo: ["127.0.0.1", "::1"]))
        #expect(isRefused("headroom.test", resolvesTo: ["127.0.0.1", "10.0.0.1"]))
        #expect(isRefused("headroom.test", resolvesTo: ["10.0.0.1", "::1"]))
    }

    @Test("allows any address with both TLS and tokens, or on a trusted network")
    func protected() throws {
        for hasTLS in [false, true] {
            for requiresAuthentication in [false, true] {
                let isAllowed = hasTLS && requiresAuthentication
                let outcome = Result {
                    try check("0.0.0.0", hasTLS: hasTLS, requiresAuthentication: requiresAuthentication)
                }
                #expect(((try? outcome.get()) != nil) == isAllowed, "\(hasTLS) \(requiresAuthentication)")
                try check(
                    "0.0.0.0",
                    hasTLS: hasTLS,
                    requiresAuthentication: requiresAuthentication,
                    networkIsTrusted: true
                )
            }
        }
    }

    @Test("names the missing protection and the remedies in its error")
    func errorMessage() throws {
        func message(hasTLS: Bool, requiresAuthentication: Bool) -> String {
            let error = #expect(throws: ProtectedMode.Refused.self) {
                try check("0.0.0.0", hasTLS: hasTLS, requiresAuthentication: requiresAuthentication)
            }
            return error?.description ?? ""
        }
        let both = message(hasTLS: false, requiresAuthentication: false)
        #expect(both.contains("listen=0.0.0.0:6747") && both.contains("no protection by TLS and tokens."))
        for remedy in ["--listen 127.0.0.1:6747", "tls-certificate", "headroom token create", "trusted-network=yes"] {
            #expect(both.contains(remedy))
        }
        #expect(message(hasTLS: true, requiresAuthentication: false).contains("no protection by tokens."))
        #expect(message(hasTLS: false, requiresAuthentication: true).contains("no protection by TLS."))
    }

    @Test("names the setting whose address it refuses")
    func setting() {
        let mode = ProtectedMode(hasTLS: false, networkIsTrusted: false)
        let address = ListenAddress(host: "::", port: 6_748)
        let error = #expect(throws: ProtectedMode.Refused.self) {
            try mode.check(address, setting: Settings.http, requiresAuthentication: false)
        }
        #expect(error?.description.contains("http=[::]:6748") == true)
        #expect(error?.description.contains("--http 127.0.0.1:6748") == true)
    }

    @Test("reports a host name that cannot be resolved")
    func unknownName() {
        let error = #expect(throws: ProtectedMode.Refused.self) { try check("no-such-host.invalid") }
        #expect(error?.description.contains("no-such-host.invalid") == true)
    }
}
