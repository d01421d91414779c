import TransportSecurity

/// What a client needs to be let in.
public struct ClientAccess: Sendable {
    /// nil: in plain text.
    public var tls: ClientTLS?
    public var token: ClientToken?

    public static let open = ClientAccess()

    public init(tls: ClientTLS? = nil, token: ClientToken? = nil) {
        self.tls = tls
        self.token = token
    }
}

/// A secret that says who asks. Printing or dumping it shows nothing of it.
public struct ClientToken: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// To be sent, and for nothing else.
    public let secret: String

    /// What no token has: a text that is empty, longer than the first request may be, or that is several words.
    public struct Malformed: Error, CustomStringConvertible {
        public let description =
            "a token is one word of letters, digits and signs, as `headroom token create` showed it"
    }

    private static let lengthMaximum = 256

    /// - Parameter text: the token, with a line end or without.
    public init(_ text: String) throws(Malformed) {
        let secret = text.last?.isNewline == true ? String(text.dropLast()) : text
        let isWord = secret.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
        guard isWord, (1...ClientToken.lengthMaximum).contains(secret.utf8.count) else { throw Malformed() }
        self.secret = secret
    }

    public var description: String { "a token" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
