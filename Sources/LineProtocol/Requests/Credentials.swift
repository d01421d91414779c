/// A token that a peer presents, and the name that it expects the token to have.
public struct Credentials: Sendable, Equatable {
    /// The name that the token must have; nil for any name.
    public var name: String?
    public var token: Secret

    /// - Parameter name: `default` means nil, because client libraries send it if only a password is set.
    public init(name: String?, token: Secret) {
        self.name = name == "default" ? nil : name
        self.token = token
    }
}

/// A text that is never shown: printing, logging or dumping it, or a value that contains it, shows a placeholder.
public struct Secret: Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public let text: String

    public init(_ text: String) {
        self.text = text
    }

    public var description: String { "(secret)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
