/// Who a peer says it is.
public struct Credentials: Sendable, Equatable {
    /// Nil: whoever the token is for.
    public var name: String?
    public var token: Secret

    /// - Parameter name: `default` is what client libraries say for somebody who was given a password only.
    public init(name: String?, token: Secret) {
        self.name = name == "default" ? nil : name
        self.token = token
    }
}

/// A text that is never shown: printing, logging or dumping it, or what holds it, leaves a placeholder.
public struct Secret: Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public let text: String

    public init(_ text: String) {
        self.text = text
    }

    public var description: String { "(secret)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
