import Postgres
import Usage

/// What is on record about everybody beside usage: the plans that there are, and the store events that failed.
package struct OverviewRecords: Sendable, Equatable {
    package struct FailedEvent: Sendable, Equatable {
        package var source: String
        /// As the store names it.
        package var type: String
        package var receivedAt: Instant
        /// Nil if the event names no known user.
        package var user: UserID?
        /// What was wrong and what to do.
        package var problem: String

        package init(source: String, type: String, receivedAt: Instant, user: UserID?, problem: String) {
            self.source = source
            self.type = type
            self.receivedAt = receivedAt
            self.user = user
            self.problem = problem
        }
    }

    /// Failed events are counted up to this number, so that many of them do not make the count slow.
    package static let failedCountMaximum = 10_000

    /// By name.
    package var plans: [Plan]
    /// Newest first.
    package var failedEvents: [FailedEvent]
    /// `failedCountMaximum` means that there may be more.
    package var failedCount: Int

    package init(plans: [Plan] = [], failedEvents: [FailedEvent] = [], failedCount: Int = 0) {
        self.plans = plans
        self.failedEvents = failedEvents
        self.failedCount = failedCount
    }

    /// - Parameter limit: of the list of failed events.
    package static func read(
        limit: Int,
        on connection: Connection,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> OverviewRecords {
        let plans = PlanCatalog(try connection.query(EmbeddedSQL.readPlans, deadline: deadline)).all
        var parameters = Parameters()
        parameters.append(int64: Int64(limit))
        parameters.append(int64: Int64(failedCountMaximum))
        let failed = try connection.query(EmbeddedSQL.readFailedEvents, parameters, deadline: deadline)
        return OverviewRecords(
            plans: plans,
            failedEvents: try (0..<failed.rowCount).map { row throws(PostgresError) in try FailedEvent(failed, row) },
            failedCount: failed.rowCount == 0 ? 0 : Int(try failed.int64(0, 5))
        )
    }
}

extension OverviewRecords.FailedEvent {
    fileprivate init(_ result: QueryResult, _ row: Int) throws(PostgresError) {
        var user: UserID?
        if !result.isNull(row, 3) {
            let (high, low) = try result.uuid(row, 3)
            user = UserID(high: high, low: low)
        }
        self.init(
            source: result.text(row, 0),
            type: result.text(row, 1),
            receivedAt: Instant(microsecondsSince1970: try result.timestamp(row, 2)),
            user: user,
            problem: result.textOrNil(row, 4) ?? ""
        )
    }
}
