/// Where a port is opened: `host:port`, or `[::1]:port`.
public struct ListenAddress: Sendable, Equatable, CustomStringConvertible {
    public var host: String
    /// The port; 0 picks a free one.
    public var port: Int

    public init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    public init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else {
            return nil
        }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            return nil
        }
        guard !host.isEmpty else { return nil }
        self.init(host: String(host), port: Int(port))
    }

    public var description: String {
        host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    /// The same port for a program on this machine: a wildcard address cannot be connected to.
    package var onThisMachine: ListenAddress {
        switch host {
        case "0.0.0.0": ListenAddress(host: "127.0.0.1", port: port)
        case "::": ListenAddress(host: "::1", port: port)
        default: self
        }
    }

    /// The command that sends a request to this port, to be printed for a reader. `CA` and `TOKEN` stand for what only
    /// the reader has.
    package func askCommand(_ request: String, speaksTLS: Bool, requiresToken: Bool = false) -> String {
        let target = onThisMachine
        let isDefault = target.description == Settings.listen.defaultText
        let words = [
            requiresToken ? "HEADROOM_TOKEN=TOKEN" : nil, "headroom ask", isDefault ? nil : "--target \(target)",
            speaksTLS ? "--tls-ca CA" : nil, "'\(request)'",
        ]
        return words.compactMap(\.self).joined(separator: " ")
    }
}
