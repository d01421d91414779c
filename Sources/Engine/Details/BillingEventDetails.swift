import Postgres
import Usage

/// One recorded billing event.
package struct BillingEventDetails: Sendable, Equatable {
    package var name: BillingEventLog.Name
    /// The type, as the store names it.
    package var type: String
    package var happenedAt: Instant
    package var receivedAt: Instant
    /// The user; nil if the event names no known one.
    package var user: UserID?
    package var outcome: String
    /// What is wrong with a failed event, and what to do; nil for others.
    package var problem: String?
    /// Whether the event can be applied again, which needs its contents. They may have been pruned or forgotten.
    package var hasPayload: Bool

    package init(
        name: BillingEventLog.Name,
        type: String,
        happenedAt: Instant,
        receivedAt: Instant,
        user: UserID?,
        outcome: String,
        problem: String?,
        hasPayload: Bool
    ) {
        self.name = name
        self.type = type
        self.happenedAt = happenedAt
        self.receivedAt = receivedAt
        self.user = user
        self.outcome = outcome
        self.problem = problem
        self.hasPayload = hasPayload
    }

    /// - Returns: nil if there is no such event.
    package static func read(
        _ name: BillingEventLog.Name,
        on connection: DatabaseConnection,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> BillingEventDetails? {
        let result = try connection.query(EmbeddedSQL.readBillingEvent, name.parameters, deadline: deadline)
        guard result.rowCount > 0 else { return nil }
        let row = result.firstRow
        return BillingEventDetails(
            name: BillingEventLog.Name(source: try row.text("source"), id: try row.text("id")),
            type: try row.text("type"),
            happenedAt: try row.instant("happened_at"),
            receivedAt: try row.instant("received_at"),
            user: try row.isNull("user_id") ? nil : try row.user("user_id"),
            outcome: try row.text("outcome"),
            problem: try row.textOrNil("problem"),
            hasPayload: try row.bool("has_payload")
        )
    }
}
