import Usage

/// What `SUBSCRIBE` takes: `usage:` and a user. The name stays as the peer spelled it, because client libraries find
/// their subscription by it.
public struct UsageChannel: Hashable, Sendable {
    public let user: UserID
    public let name: String

    private static let prefix = "usage:"

    public init(_ user: UserID) {
        self.user = user
        name = "\(UsageChannel.prefix)\(user)"
    }

    /// Nil unless it is a channel's name. The user may be in either case.
    public init?(_ name: String) {
        guard name.hasPrefix(UsageChannel.prefix), let user = UserID(String(name.dropFirst(UsageChannel.prefix.count)))
        else {
            return nil
        }
        self.user = user
        self.name = name
    }
}
