import NIOCore

/// Whether a request may have been sent to the name that its Host header says.
///
/// Where no token is required, whoever reaches the port may see everything, and that is this machine. A page of another
/// site in a browser on this machine reaches it as well, by letting its own name resolve to 127.0.0.1 (DNS rebinding):
/// the browser then takes us for that site. The Host header still has the site's name, and names are not taken here, but
/// for those that mean this machine, the one that the setting `http` says, plain addresses, which no DNS answers, and names
/// without a dot, as containers have them among each other: those belong to a network, and to nobody on the internet.
struct HostCheck: Sendable {
    /// From the setting.
    let configuredHost: String

    func isOurs(_ authority: String?) -> Bool {
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

    /// Without the port, and without the brackets of an IPv6 address.
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
