import NIOCore

/// Protects a service without tokens against DNS rebinding.
///
/// Such a service listens on this machine only, but a page of another site in a browser on this machine can reach it:
/// the site lets its own name resolve to 127.0.0.1, and the browser takes the service for that site. The Host header
/// still has the site's name. So only these names are accepted: localhost, the name in the setting `http`, IP
/// addresses, which are not resolved by DNS, and names without a dot, as in container networks, which do not exist on
/// the internet.
struct HostCheck: Sendable {
    /// The host of the setting `http`.
    let configuredHost: String

    func isLocal(_ authority: String?) -> Bool {
        guard let authority, let host = HostCheck.host(of: authority.lowercased()), !host.isEmpty else { return false }
        if HostCheck.isOneLabel(host) || host.hasSuffix(".localhost") || host == configuredHost.lowercased() {
            return true
        }
        return (try? SocketAddress(ipAddress: host, port: 0)) != nil
    }

    private static func isOneLabel(_ host: String) -> Bool {
        host.utf8.allSatisfy {
            switch $0 {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
            case UInt8(ascii: "-"), UInt8(ascii: "_"): true
            default: false
            }
        }
    }

    /// Returns the host without the port and the brackets of an IPv6 address.
    private static func host(of authority: String) -> String? {
        if authority.hasPrefix("[") {
            guard let end = authority.firstIndex(of: "]") else { return nil }
            return String(authority[authority.index(after: authority.startIndex)..<end])
        }
        let parts = authority.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count <= 2 else { return nil }
        return String(parts[0])
    }
}
