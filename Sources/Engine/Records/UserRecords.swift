import Postgres
import Usage

/// What is on record about a user beside usage: subscriptions, what stores told, and what was changed by whom.
package struct UserRecords: Sendable, Equatable {
    package struct Subscription: Sendable, Equatable {
        package var transaction: String
        package var plan: String
        package var startedAt: Instant?
        package var expiresAt: Instant?
        package var graceUntil: Instant?
        package var billingIssueAt: Instant?
        package var unsubscribedAt: Instant?
        package var revokedAt: Instant?
        package var product: String?
        package var nextPlan: String?

        package init(transaction: String, plan: String) {
            self.transaction = transaction
            self.plan = plan
        }
    }

    package struct Event: Sendable, Equatable {
        package var at: Instant
        package var source: String
        /// As the store names it.
        package var type: String
        package var outcome: String
        /// What it said, or where it brought the user.
        package var detail: String?
        /// Why it could not be applied.
        package var problem: String?

        package init(at: Instant, source: String, type: String, outcome: String, detail: String?, problem: String?) {
            self.at = at
            self.source = source
            self.type = type
            self.outcome = outcome
            self.detail = detail
            self.problem = problem
        }
    }

    /// Each newest first.
    package var subscriptions: [Subscription]
    package var events: [Event]
    package var changes: [AuditTrailReader.Event]

    package init(subscriptions: [Subscription] = [], events: [Event] = [], changes: [AuditTrailReader.Event] = []) {
        self.subscriptions = subscriptions
        self.events = events
        self.changes = changes
    }

    package var isEmpty: Bool { subscriptions.isEmpty && events.isEmpty && changes.isEmpty }
}

extension UserRecords {
    /// Reads them in a session of its own, each list up to `limit`. Only indexes on the user are used.
    package static func read(
        of user: UserID,
        limit: Int,
        on connection: Connection,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> UserRecords {
        func rows(_ sql: String) throws(PostgresError) -> QueryResult {
            var parameters = Parameters()
            parameters.append(uuid: (user.high, user.low))
            parameters.append(int64: Int64(limit))
            return try connection.query(sql, parameters, deadline: deadline)
        }
        let subscriptions = try rows(EmbeddedSQL.readUserSubscriptions)
        let events = try rows(EmbeddedSQL.readUserEvents)
        let changes = try rows(EmbeddedSQL.readAuditTrail)
        return UserRecords(
            subscriptions: try (0..<subscriptions.rowCount).map { row throws(PostgresError) in
                try Subscription(subscriptions, row)
            },
            events: try (0..<events.rowCount).map { row throws(PostgresError) in try Event(events, row) },
            changes: try (0..<changes.rowCount).reversed().map { row throws(PostgresError) in
                try AuditTrailReader.Event(changes, row)
            }
        )
    }
}

extension UserRecords.Subscription {
    fileprivate init(_ result: QueryResult, _ row: Int) throws(PostgresError) {
        func instant(_ column: Int, _ name: String) throws(PostgresError) -> Instant? {
            try result.instantOrNil(row, column, of: StoredColumn("headroom.subscriptions", name))
        }
        self.init(transaction: result.text(row, 0), plan: result.text(row, 1))
        startedAt = try instant(2, "started_at")
        expiresAt = try instant(3, "expires_at")
        graceUntil = try instant(4, "grace_until")
        billingIssueAt = try instant(5, "billing_issue_at")
        unsubscribedAt = try instant(6, "unsubscribed_at")
        revokedAt = try instant(7, "revoked_at")
        product = result.textOrNil(row, 8)
        nextPlan = result.textOrNil(row, 9)
    }
}

extension UserRecords.Event {
    fileprivate init(_ result: QueryResult, _ row: Int) throws(PostgresError) {
        self.init(
            at: Instant(microsecondsSince1970: try result.timestamp(row, 0)),
            source: result.text(row, 1),
            type: result.text(row, 2),
            outcome: result.text(row, 3),
            detail: result.textOrNil(row, 4),
            problem: result.textOrNil(row, 5)
        )
    }
}

extension QueryResult {
    func textOrNil(_ row: Int, _ column: Int) -> String? {
        isNull(row, column) ? nil : text(row, column)
    }
}
