import NIOCore

/// Whether a request may have been sent to the name that its Host header says.
///
/// A page of another site can have its own name resolve to this machine (DNS rebinding), and is then the same origin as the
/// chat. The Host header still has its name: only addresses, which no DNS answers, and names that were set are taken.
struct HostCheck: Sendable {
    private let names: Set<String>

    init(names: [String]) {
        self.names = Set(names.map { $0.lowercased() } + ["localhost"])
    }

    func isOurs(_ authority: String?) -> Bool {
        guard let authority else { return false }
        var host = authority.lowercased()
        if host.hasPrefix("[") {
            guard let end = host.firstIndex(of: "]") else { return false }
            host = String(host[..<end].dropFirst())
        } else if let colon = host.lastIndex(of: ":") {
            host = String(host[..<colon])
        }
        return names.contains(host) || host.hasSuffix(".localhost")
            || (try? SocketAddress(ipAddress: host, port: 0)) != nil
    }
}
