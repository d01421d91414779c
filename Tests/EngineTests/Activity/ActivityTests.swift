import Logging
import Postgres
import Synchronization
import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("Daily activity")
struct ActivityTests {
    /// The counts of an engine.
    private final class Counts: Sendable {
        private let value = Mutex(Activity())
        var activity: Activity { value.withLock { $0 } }

        func add(_ messages: UInt64, _ blocked: UInt64) {
            value.withLock { $0 = $0 + Activity(messages: messages, blocked: blocked) }
        }
    }

    private func recorder(_ conninfo: String, _ counted: Counts) -> ActivityRecorder {
        ActivityRecorder(database: DatabaseTopology(conninfo), timeout: waitLimit, logger: .silent) {
            counted.activity
        }
    }

    private let days = "select day, messages, blocked from headroom.daily_activity order by day"

    @Test("adds the counts of several instances to the UTC day of the database's clock")
    func days() async throws {
        let database = try await TestDatabase.fresh(at: at("2026-11-30T23:59:59Z"))
        try await database.psql.execute("set timezone = 'Pacific/Auckland'")
        let counted = [Counts(), Counts()]
        let recorders = counted.map { recorder(database.conninfo, $0) }
        counted[0].add(5, 1)
        counted[1].add(10, 0)
        for recorder in recorders { try await recorder.record() }
        counted[0].add(1, 0)
        for recorder in recorders { try await recorder.record() }
        #expect(try await database.psql.rows(days) == ["2026-11-30|16|1"])
        try await database.moveClock(to: at("2026-12-01T00:00:00Z"))
        counted[1].add(0, 3)
        for recorder in recorders { try await recorder.record() }
        #expect(try await database.psql.rows(days) == ["2026-11-30|16|1", "2026-12-01|0|3"])
    }

    @Test("sends nothing to the database while nothing was counted")
    func idle() async throws { try await recorder("host=/nonexistent", Counts()).record() }

    @Test("is written later if the database was unavailable, and not again if the reply was lost")
    func losses() async throws {
        let database = try await TestDatabase.fresh()
        let proxy = try await database.proxy()
        defer { proxy.close() }
        let counted = Counts()
        let recorder = recorder(database.conninfo(through: proxy), counted)
        counted.add(5, 1)
        proxy.refusesConnections = true
        await #expect(throws: PostgresError.self) { try await recorder.record() }
        #expect(try await database.psql.rows(days) == [])
        proxy.refusesConnections = false
        try await recorder.record()
        counted.add(2, 0)
        proxy.arm(.reply("add_daily_activity"))
        await #expect(throws: PostgresError.self) { try await recorder.record() }
        try await recorder.record()
        let sums = "select sum(messages) || '|' || sum(blocked) from headroom.daily_activity"
        #expect(try await database.psql.text(sums) == "7|1")
    }

    @Test("is read with a row for each day, also days without messages")
    func reading() async throws {
        let database = try await TestDatabase.fresh(at: at("2026-03-01T12:00:00Z"))
        let counted = Counts()
        counted.add(5, 1)
        try await recorder(database.conninfo, counted).record()
        try await database.psql.execute(
            "insert into headroom.daily_activity values ('2026-02-27', 9, 2), ('2026-01-01', 8, 1)"
        )
        let rows = try await database.psql.run { connection in
            try DailyActivity.read(days: 4, on: connection, deadline: .now + waitLimit)
        }
        let expected = [(2, 26, 0, 0), (2, 27, 9, 2), (2, 28, 0, 0), (3, 1, 5, 1)].map {
            month,
            day,
            messages,
            blocked in
            DailyActivity(day: CivilDate(year: 2026, month: month, day: day), messages: messages, blocked: blocked)
        }
        #expect(rows == expected)
    }
}
