import Usage

/// A limit of messages in a time that begins with a message, such as 80 in three hours.
public struct WindowStatus: Sendable, Hashable {
    /// Messages allowed in a window.
    public var limit: Int
    /// Messages counted in the open window.
    public var used: Int
    /// Messages that may still be sent in the window. 0 without access.
    public var remaining: Int
    /// When the open window ends. Nil if none is open: the next message opens one.
    public var resets: Instant?

    public init(limit: Int, used: Int, remaining: Int, resets: Instant? = nil) {
        self.limit = limit
        self.used = used
        self.remaining = remaining
        self.resets = resets
    }
}

/// The messages with the model that the request names.
public struct ModelUsage: Sendable, Hashable {
    public var name: ModelName
    /// Messages allowed with the model: of the limits for the period and for a shorter time, the fuller one. Nil if the
    /// plan has none.
    public var limit: Int?
    /// Messages counted. Nil if the plan does not count the model's messages.
    public var used: Int?
    /// Messages that may still be sent with the model; nil if `limit` is nil. 0 without access.
    public var remaining: Int?
    /// When the limit's messages come back.
    public var resets: Instant?

    public init(name: ModelName, limit: Int? = nil, used: Int? = nil, remaining: Int? = nil, resets: Instant? = nil) {
        self.name = name
        self.limit = limit
        self.used = used
        self.remaining = remaining
        self.resets = resets
    }
}

/// The messages of the member that the request names.
public struct MemberUsage: Sendable, Hashable {
    public var id: UserID
    /// Messages allowed to the member: of the limits for the period and for a shorter time, the fuller one. Nil if the
    /// plan has none.
    public var limit: Int?
    /// Messages counted. Nil if the plan does not count those of members.
    public var used: Int?
    /// Messages that the member may still send; nil if `limit` is nil. 0 without access.
    public var remaining: Int?

    public init(id: UserID, limit: Int? = nil, used: Int? = nil, remaining: Int? = nil) {
        self.id = id
        self.limit = limit
        self.used = used
        self.remaining = remaining
    }
}
