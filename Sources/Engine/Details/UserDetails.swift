import Postgres
import Usage

/// A user's subscriptions, store events and audit trail.
package struct UserDetails: Sendable, Equatable {
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
        package var name: BillingEventLog.Name
        /// The type, as the store names it.
        package var type: String
        package var outcome: String
        /// The change that the event made, or the plan and state that the user has by it.
        package var detail: String?
        /// The reason why it could not be applied; nil if it was.
        package var problem: String?

        package init(
            at: Instant,
            name: BillingEventLog.Name,
            type: String,
            outcome: String,
            detail: String?,
            problem: String?
        ) {
            self.at = at
            self.name = name
            self.type = type
            self.outcome = outcome
            self.detail = detail
            self.problem = problem
        }
    }

    /// The subscriptions, newest first, as are the events and the changes.
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

extension UserDetails {
    /// Reads the details in a session of its own, each list up to `limit`. Only indexes on the user are used.
    package static func read(
        of user: UserID,
        limit: Int,
        on connection: DatabaseConnection,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> UserDetails {
        func rows(_ sql: String) throws(PostgresError) -> QueryResult {
            var parameters = Parameters()
            parameters.append(uuid: (user.high, user.low))
            parameters.append(int64: Int64(limit))
            return try connection.query(sql, parameters, deadline: deadline)
        }
        let subscriptions = try rows(EmbeddedSQL.readUserSubscriptions)
        let events = try rows(EmbeddedSQL.readUserEvents)
        let changes = try rows(EmbeddedSQL.readAuditTrail)
        return UserDetails(
            subscriptions: try subscriptions.rows { row throws(PostgresError) in try Subscription(row) },
            events: try events.rows { row throws(PostgresError) in try Event(row) },
            changes: try changes.rows { row throws(PostgresError) in try AuditTrailReader.Event(row) }.reversed()
        )
    }
}

extension UserDetails.Subscription {
    fileprivate init(_ row: ResultRow) throws(PostgresError) {
        let table = "headroom.subscriptions"
        self.init(transaction: try row.text("original_transaction_id"), plan: try row.text("plan"))
        startedAt = try row.instantOrNil("started_at", of: table)
        expiresAt = try row.instantOrNil("expires_at", of: table)
        graceUntil = try row.instantOrNil("grace_until", of: table)
        billingIssueAt = try row.instantOrNil("billing_issue_at", of: table)
        unsubscribedAt = try row.instantOrNil("unsubscribed_at", of: table)
        revokedAt = try row.instantOrNil("revoked_at", of: table)
        product = try row.textOrNil("product")
        nextPlan = try row.textOrNil("next_plan")
    }
}

extension UserDetails.Event {
    fileprivate init(_ row: ResultRow) throws(PostgresError) {
        self.init(
            at: try row.instant("happened_at"),
            name: BillingEventLog.Name(source: try row.text("source"), id: try row.text("id")),
            type: try row.text("type"),
            outcome: try row.text("outcome"),
            detail: try row.textOrNil("detail"),
            problem: try row.textOrNil("problem")
        )
    }
}
