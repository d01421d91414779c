/// `headroom notifications list`: notifications and whether they are delivered.
public struct NotificationTable: Sendable {
    /// A row of headroom.notifications. Instants are ISO 8601, UTC.
    public struct Notification: Sendable, Equatable, Encodable {
        public let id: String
        public let createdAt: String
        public let user: String
        public let period: String
        public let plan: String
        /// What is used so far: `period`, `window`, `model` or `member`.
        public let allowance: String
        /// The model or the member.
        public let part: String?
        public let tier: String
        public let status: String
        public let attempts: Int
        public let nextAttemptAt: String?
        public let deliveredAt: String?
        public let problem: String?

        public init(
            id: String,
            createdAt: String,
            user: String,
            period: String,
            plan: String,
            allowance: String,
            part: String?,
            tier: String,
            status: String,
            attempts: Int,
            nextAttemptAt: String?,
            deliveredAt: String?,
            problem: String?
        ) {
            self.id = id
            self.createdAt = createdAt
            self.user = user
            self.period = period
            self.plan = plan
            self.allowance = allowance
            self.part = part
            self.tier = tier
            self.status = status
            self.attempts = attempts
            self.nextAttemptAt = nextAttemptAt
            self.deliveredAt = deliveredAt
            self.problem = problem
        }

        /// Every notification has the same names: a missing value is null.
        public func encode(to encoder: any Encoder) throws {
            let values: [String: FieldValue] = [
                "id": .text(id), "created_at": .text(createdAt), "user": .text(user), "period": .text(period),
                "plan": .text(plan), "allowance": .text(allowance), "part": FieldValue(part), "tier": .text(tier),
                "status": .text(status), "attempts": .integer(attempts), "next_attempt_at": FieldValue(nextAttemptAt),
                "delivered_at": FieldValue(deliveredAt), "problem": FieldValue(problem),
            ]
            try values.encode(to: encoder)
        }
    }

    public let notifications: [Notification]

    public init(_ notifications: [Notification]) {
        self.notifications = notifications
    }

    /// - Parameter width: of the terminal; nil: none, so each notification is a line.
    public func text(width: Int?) -> String {
        var table = TextTable([.left, .left, .left, .left, .left, .left, .left, .left, .right, .left, .left])
        table.add(
            "created",
            "id",
            "user",
            "period",
            "plan",
            "allowance",
            "tier",
            "status",
            "attempts",
            "next attempt",
            "problem"
        )
        for each in notifications {
            table.add(
                each.createdAt,
                each.id,
                each.user,
                printable(each.period),
                printable(each.plan),
                [each.allowance, each.part].compactMap(\.self).joined(separator: " "),
                each.tier,
                each.status,
                "\(each.attempts)",
                each.nextAttemptAt ?? "-",
                printable(each.problem ?? "-")
            )
        }
        return table.records(width: width)
    }
}
