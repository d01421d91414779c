import Postgres
import Usage

/// A UTC day's messages, all instances together.
package struct DayActivity: Sendable, Equatable {
    package var day: CivilDate
    package var messages: Int
    /// Requests that were refused.
    package var blocked: Int

    package init(day: CivilDate, messages: Int, blocked: Int) {
        self.day = day
        self.messages = messages
        self.blocked = blocked
    }

    /// The last `days` days, oldest first; today, by the database's clock, is the last.
    package static func read(
        days: Int,
        on connection: Connection,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> [DayActivity] {
        var parameters = Parameters()
        parameters.append(int32: Int32(days))
        let result = try connection.query(EmbeddedSQL.readDailyActivity, parameters, deadline: deadline)
        return try (0..<result.rowCount).map { row throws(PostgresError) in
            DayActivity(
                day: CivilDate(daysSince1970: try result.int64(row, 0)),
                messages: try result.sum(row, 1, of: StoredColumn("headroom.daily_activity", "messages")),
                blocked: try result.sum(row, 2, of: StoredColumn("headroom.daily_activity", "blocked"))
            )
        }
    }
}
