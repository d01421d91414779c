/// The address at which a PostgreSQL server listens.
public struct ServerAddress: Hashable, Sendable, CustomStringConvertible {
    public let host: String
    public let port: Int32

    public init(host: String, port: Int32) {
        self.host = host
        self.port = port
    }

    /// - Parameter text: host:port, or a host alone, whose port is PostgreSQL's default.
    public init?(_ text: String) {
        let colon = text.lastIndex(of: ":")
        let host = text[..<(colon ?? text.endIndex)]
        guard !host.isEmpty, !host.contains("/") else { return nil }
        guard let port = colon.map({ Int32(text[text.index(after: $0)...]) }) ?? 5_432, (1...65_535).contains(port)
        else { return nil }
        self.init(host: String(host), port: port)
    }

    public var description: String { "\(host):\(port)" }
}
