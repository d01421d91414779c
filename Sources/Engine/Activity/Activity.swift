/// Counts of requests by outcome.
public struct Activity: Sendable, Equatable {
    /// The messages that were counted, each once.
    public var messages: UInt64
    /// The requests to count or hold messages that were denied.
    public var blocked: UInt64

    public init(messages: UInt64 = 0, blocked: UInt64 = 0) {
        self.messages = messages
        self.blocked = blocked
    }

    public static func + (one: Activity, other: Activity) -> Activity {
        Activity(messages: one.messages &+ other.messages, blocked: one.blocked &+ other.blocked)
    }

    public static func - (one: Activity, other: Activity) -> Activity {
        Activity(messages: one.messages &- other.messages, blocked: one.blocked &- other.blocked)
    }
}
