import Postgres
import Usage

/// The messages of a UTC day, of all instances.
package struct DailyActivity: Sendable, Equatable {
    package var day: CivilDate
    package var messages: Int
    /// The requests that were refused.
    package var blocked: Int

    package init(day: CivilDate, messages: Int, blocked: Int) {
        self.day = day
        self.messages = messages
        self.blocked = blocked
    }

    /// Reads the last `days` days, oldest first. The last one is today, by the database's clock.
    package static func read(
        days: Int,
        on connection: DatabaseConnection,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> [DailyActivity] {
        var parameters = Parameters()
        parameters.append(int32: Int32(days))
        let result = try connection.query(EmbeddedSQL.readDailyActivity, parameters, deadline: deadline)
        return try result.rows { row throws(PostgresError) in
            DailyActivity(
                day: CivilDate(daysSince1970: try row.int64("day")),
                messages: try row.sum("messages", of: "headroom.daily_activity"),
                blocked: try row.sum("blocked", of: "headroom.daily_activity")
            )
        }
    }
}
