import Usage

/// An argument of `SUBSCRIBE`: `usage:` and a user. The name keeps the peer's spelling, because client libraries look
/// up their subscription by it.
public struct UsageChannel: Hashable, Sendable {
    public let user: UserID
    public let name: String

    private static let prefix = "usage:"

    public init(_ user: UserID) {
        self.user = user
        name = "\(UsageChannel.prefix)\(user)"
    }

    /// Parses a channel's name; nil for any other text. The user may be in upper or lower case, or named in the
    /// namespace.
    public init?(_ name: String, in namespace: UserNamespace? = nil) {
        guard name.hasPrefix(UsageChannel.prefix),
            let user = UserID(String(name.dropFirst(UsageChannel.prefix.count)), in: namespace)
        else {
            return nil
        }
        self.user = user
        self.name = name
    }
}
