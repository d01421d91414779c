/// Messages that an operator grants beyond a plan's allowance, once for each key.
public struct Grant: Sendable, Equatable {
    /// When messages that are not used end.
    public enum End: Sendable, Equatable {
        /// The limit of the current period is raised.
        case withPeriod
        /// They become a balance, from which messages are taken in any period.
        case at(Instant)
        case never
    }

    public var messages: Int
    public var key: MessageKey
    /// The reason goes into the audit log.
    public var reason: String?
    public var end: End

    public init(_ messages: Int, key: MessageKey, reason: String? = nil, end: End = .withPeriod) {
        self.messages = messages
        self.key = key
        self.reason = reason
        self.end = end
    }
}

extension Grant.End {
    /// The value of `expires=`, of which nil is no option.
    public var text: String? {
        switch self {
        case .withPeriod: nil
        case .at(let instant): instant.text
        case .never: "never"
        }
    }
}
