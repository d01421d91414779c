import TransportSecurity

/// How a client connects to a service: with TLS or in plain text, with or without a token.
public struct ClientAccess: Sendable {
    /// How the service is verified, and with which certificate this client shows itself; nil means plain text.
    public var tls: ClientTLS?
    public var token: ClientToken?

    /// Access in plain text, without a token.
    public static let open = ClientAccess()

    public init(tls: ClientTLS? = nil, token: ClientToken? = nil) {
        self.tls = tls
        self.token = token
    }
}

/// A token of this client. Printing or dumping it does not show the secret.
public struct ClientToken: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The secret, which is only sent, and never shown.
    public let secret: String

    /// The text is empty, too long for the first request, or not one word of printable ASCII.
    public struct Malformed: Error, CustomStringConvertible {
        public let description =
            "a token is one word of letters, digits and punctuation, as `headroom token create` showed it"
    }

    private static let lengthMaximum = 256

    /// - Parameter text: the token, with or without a line end.
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
