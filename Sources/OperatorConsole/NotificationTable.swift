/// `headroom events list`: what stores sent, and what became of it.
public struct NotificationTable: Sendable {
    /// A row of headroom.billing_events. Instants are ISO 8601, UTC.
    public struct Notification: Sendable, Equatable, Encodable {
        public let source: String
        public let id: String
        public let type: String
        public let at: String
        public let receivedAt: String
        public let user: String?
        public let outcome: String
        public let problem: String?
        public let attempts: Int

        public init(
            source: String,
            id: String,
            type: String,
            at: String,
            receivedAt: String,
            user: String?,
            outcome: String,
            problem: String?,
            attempts: Int
        ) {
            self.source = source
            self.id = id
            self.type = type
            self.at = at
            self.receivedAt = receivedAt
            self.user = user
            self.outcome = outcome
            self.problem = problem
            self.attempts = attempts
        }

        private enum CodingKeys: String, CodingKey {
            case source, id, type, at
            case receivedAt = "received_at"
            case user, outcome, problem, attempts
        }

        /// With a null where there is nothing: every notification has the same names.
        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(source, forKey: .source)
            try container.encode(id, forKey: .id)
            try container.encode(type, forKey: .type)
            try container.encode(at, forKey: .at)
            try container.encode(receivedAt, forKey: .receivedAt)
            try container.encode(user, forKey: .user)
            try container.encode(outcome, forKey: .outcome)
            try container.encode(problem, forKey: .problem)
            try container.encode(attempts, forKey: .attempts)
        }
    }

    /// What became of a notification that was read anew.
    public struct Replay: Sendable, Equatable, Encodable {
        public let source: String
        public let id: String
        public let outcome: String
        public let problem: String?

        public init(source: String, id: String, outcome: String, problem: String?) {
            self.source = source
            self.id = id
            self.outcome = outcome
            self.problem = problem
        }

        private enum CodingKeys: String, CodingKey {
            case source, id, outcome, problem
        }

        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(source, forKey: .source)
            try container.encode(id, forKey: .id)
            try container.encode(outcome, forKey: .outcome)
            try container.encode(problem, forKey: .problem)
        }

        public var text: String {
            printable("\(source) \(id) \(outcome)" + (problem.map { ": \($0)" } ?? ""))
        }
    }

    public let notifications: [Notification]

    public init(_ notifications: [Notification]) {
        self.notifications = notifications
    }

    public var text: String {
        var table = TextTable([.left, .left, .left, .left, .left, .left, .left])
        table.add("at", "source", "id", "type", "user", "outcome", "problem")
        for notification in notifications {
            table.add(
                notification.at,
                notification.source,
                printable(notification.id),
                printable(notification.type),
                notification.user ?? "-",
                notification.outcome,
                printable(notification.problem ?? "-")
            )
        }
        return table.lines.joined(separator: "\n")
    }

    /// JSON in several lines, as a terminal may show it.
    public static func shown(_ indented: String) -> String {
        indented.split(separator: "\n", omittingEmptySubsequences: false).map { printable(String($0)) }
            .joined(separator: "\n")
    }
}
