import Postgres
import Usage

/// Lists, shows and replays notifications for the commands, with the rights of the database login. It blocks; run it on
/// a thread of its own.
public struct NotificationLog: ~Copyable {
    public struct Entry: Sendable {
        public var id: String
        public var createdAt: Instant
        public var user: String
        public var period: String
        public var plan: String
        /// What is used so far: `period`, `window`, `model` or `member`.
        public var allowance: String
        /// The name in headroom.plan_limits of a model, the id of a member; nil for others.
        public var part: String?
        public var tier: String
        public var status: Status
        public var attempts: Int
        /// The time of the next attempt; nil unless the notification is pending.
        public var nextAttemptAt: Instant?
        public var deliveredAt: Instant?
        /// The reason why the last attempt failed; nil if none has.
        public var problem: String?
    }

    public enum Status: String, Sendable, CaseIterable {
        case pending, delivered, failed, skipped

        /// The letter in `headroom.notifications`.
        fileprivate var letter: String { String(rawValue.prefix(1)) }
    }

    private static let timeout = Duration.seconds(30)
    private let connection: DatabaseConnection

    /// - Throws: if the database cannot be reached.
    public init(database: DatabaseTopology) throws(PostgresError) {
        connection = try DatabaseConnection.connect(.command("notifications", database))
    }

    deinit {
        connection.close()
    }

    /// The newest `limit` notifications, oldest first.
    ///
    /// - Parameter status: the status to list; nil means all.
    public func list(_ status: Status?, of user: UserID?, limit: Int) throws(PostgresError) -> [Entry] {
        var parameters = Parameters()
        parameters.append(text: status?.letter)
        parameters.append(text: user?.description)
        parameters.append(int64: Int64(limit))
        return try query(EmbeddedSQL.listNotifications, parameters).rows { row throws(PostgresError) in
            let letter = try row.text("status")
            let status = Status.allCases.first { $0.letter == letter } ?? .failed
            let source = "headroom.notifications"
            return Entry(
                id: try row.text("id"),
                createdAt: try row.instant("created_at", of: source),
                user: try row.text("user_id"),
                period: try row.text("billing_period"),
                plan: try row.text("plan"),
                allowance: try row.text("allowance"),
                part: try row.textOrNil("part"),
                tier: try row.text("tier"),
                status: status,
                attempts: try row.int32("attempts"),
                nextAttemptAt: status == .pending ? try row.instant("next_attempt_at", of: source) : nil,
                deliveredAt: try row.instantOrNil("delivered_at", of: source),
                problem: try row.textOrNil("problem")
            )
        }
    }

    /// A notification as JSON, indented and in one line; nil if there is none with this id.
    public func show(_ id: String) throws(PostgresError) -> (indented: String, compact: String)? {
        var parameters = Parameters()
        parameters.append(text: id)
        let result = try query(EmbeddedSQL.showNotification, parameters)
        guard result.rowCount > 0 else { return nil }
        return (try result.firstRow.text("pretty"), try result.firstRow.text("compact"))
    }

    /// Makes notifications pending again.
    ///
    /// - Parameter ids: the notifications; nil means all that have failed.
    /// - Returns: the ids of those that are pending now.
    public func replay(_ ids: [String]?) throws(PostgresError) -> [String] {
        var parameters = Parameters()
        if let ids {
            parameters.appendTexts(count: ids.count) { ids[$0] }
        } else {
            parameters.appendNull(.textArray)
        }
        return try query(EmbeddedSQL.replayNotifications, parameters).rows { row throws(PostgresError) in
            try row.text("id")
        }
    }

    private func query(_ sql: String, _ parameters: borrowing Parameters) throws(PostgresError) -> QueryResult {
        try connection.query(sql, parameters, deadline: .now + NotificationLog.timeout)
    }
}
