import Postgres
import Usage

/// All plans, and the store events that failed.
package struct BillingOverview: Sendable, Equatable {
    package struct FailedEvent: Sendable, Equatable {
        package var name: BillingEventLog.Name
        /// The type, as the store names it.
        package var type: String
        package var receivedAt: Instant
        /// The user; nil if the event names no known one.
        package var user: UserID?
        /// What is wrong and what to do.
        package var problem: String

        package init(
            name: BillingEventLog.Name,
            type: String,
            receivedAt: Instant,
            user: UserID?,
            problem: String
        ) {
            self.name = name
            self.type = type
            self.receivedAt = receivedAt
            self.user = user
            self.problem = problem
        }
    }

    /// Failed events are counted up to this number, so that counting many of them is not slow.
    package static let failedCountMaximum = 10_000

    /// The plans, by name.
    package var plans: [Plan]
    /// The failed events, newest first.
    package var failedEvents: [FailedEvent]
    /// The number of failed events; there may be more if it is `failedCountMaximum`.
    package var failedCount: Int

    package init(plans: [Plan] = [], failedEvents: [FailedEvent] = [], failedCount: Int = 0) {
        self.plans = plans
        self.failedEvents = failedEvents
        self.failedCount = failedCount
    }

    /// - Parameter limit: the most failed events in the list.
    package static func read(
        limit: Int,
        on connection: DatabaseConnection,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> BillingOverview {
        let plans = try PlanCatalog(connection.query(EmbeddedSQL.readPlans, deadline: deadline)).all
        var parameters = Parameters()
        parameters.append(int64: Int64(limit))
        parameters.append(int64: Int64(failedCountMaximum))
        let failed = try connection.query(EmbeddedSQL.readFailedEvents, parameters, deadline: deadline)
        return BillingOverview(
            plans: plans,
            failedEvents: try failed.rows { row throws(PostgresError) in try FailedEvent(row) },
            failedCount: failed.rowCount == 0 ? 0 : Int(try failed.firstRow.int64("failed"))
        )
    }
}

extension BillingOverview.FailedEvent {
    fileprivate init(_ row: ResultRow) throws(PostgresError) {
        self.init(
            name: BillingEventLog.Name(source: try row.text("source"), id: try row.text("id")),
            type: try row.text("type"),
            receivedAt: try row.instant("received_at"),
            user: try row.isNull("user_id") ? nil : try row.user("user_id"),
            problem: try row.text("problem")
        )
    }
}
