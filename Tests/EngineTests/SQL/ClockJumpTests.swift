import Postgres
import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("A clock that was years ahead", .serialized)
struct ClockJumpTests {
    private static let present = at("2026-11-10T12:00:00Z")
    private static let ahead = at("2030-05-03T12:00:00Z")
    private static let back = at("2026-11-10T13:00:00Z")

    private func withStore(_ body: @Sendable (TestDatabase, EngineHarness) async throws -> Void) async throws {
        let database = try await TestDatabase.fresh(at: Self.present)
        let harness = EngineHarness(database.conninfo, lanes: 1)
        try await harness.running { try await body(database, harness) }
    }

    @Test("leaves no second allowance: its messages count in the month that is open when it is right again")
    func month() async throws {
        try await withStore { database, harness in
            try await database.psql.execute("select set_plan('\(ada)', 'paid')")
            #expect(try await harness.execute(ada, .consume(500)).isAllowed)
            try await database.moveClock(to: Self.ahead)
            let ahead = try await harness.execute(ada, .consume(200)).answer
            #expect(ahead?.snapshot.period.label == "2030-05" && ahead?.snapshot.used == 200)
            try await database.moveClock(to: Self.back)
            let read = try await harness.execute(ada, .usage).answer
            #expect(read?.snapshot.period.label == "2026-11" && read?.snapshot.used == 700)
            let next = try await harness.execute(ada, .consume(100)).answer
            #expect(next?.status == .allowed && next?.snapshot.used == 800)
            #expect(try await harness.execute(ada, .consume(1)).answer?.status == .blocked(.limitReached))
            let rows = try await database.psql.rows("select billing_period, message_count from message_usage")
            #expect(rows == ["2026-11|800"])
            let trail = try await database.psql.text("select detail from audit_trail where action = 'update'")
            #expect(trail == "count 500 → 700, limit 800, period 2026-11")
            // The month of the jump begins with a full allowance when it really comes.
            try await database.moveClock(to: Self.ahead)
            #expect(try await harness.execute(ada, .consume(1)).answer?.snapshot.used == 1)
        }
    }

    @Test("does not block a user for years who used everything while it was ahead")
    func usedUp() async throws {
        try await withStore { database, harness in
            try await database.psql.execute("select set_plan('\(ada)', 'paid')")
            try await database.moveClock(to: Self.ahead)
            #expect(try await harness.execute(ada, .consume(800)).isAllowed)
            try await database.moveClock(to: Self.back)
            #expect(try await harness.execute(ada, .consume(1)).answer?.status == .blocked(.limitReached))
            try await database.moveClock(to: at("2026-12-01T00:00:00Z"))
            let december = try await harness.execute(ada, .consume(1)).answer
            #expect(december?.snapshot.period.label == "2026-12" && december?.snapshot.used == 1)
        }
    }

    @Test(
        "leaves no second allowance in days and weeks either, also at an instance that has not noticed the jump",
        arguments: [("daily", "2026-11-10", "2030-05-03"), ("weekly", "2026-W46", "2030-W18")]
    )
    func localPeriods(cycle: String, present: String, later: String) async throws {
        try await withStore { database, harness in
            try await database.psql.execute(
                "update headroom.plans set cycle = '\(cycle)' where plan = 'paid'; select set_plan('\(ada)', 'paid')"
            )
            let other = EngineHarness(database.conninfo, lanes: 1)
            try await other.running {
                #expect(try await other.execute(ada, .consume(500)).answer?.snapshot.period.label == present)
                try await database.moveClock(to: Self.ahead)
                let ahead = try await harness.execute(ada, .consume(200)).answer
                #expect(ahead?.snapshot.period.label == later && ahead?.snapshot.used == 200)
                try await database.moveClock(to: Self.back)
                // It still expects the user's row of the present period.
                let next = try await other.execute(ada, .consume(100)).answer
                #expect(next?.status == .allowed && next?.snapshot.used == 800)
                #expect(try await harness.execute(ada, .consume(1)).answer?.status == .blocked(.limitReached))
            }
            let rows = try await database.psql.rows("select billing_period, message_count from message_usage")
            #expect(rows == ["\(present)|800"])
        }
    }

    @Test("leaves no second allowance after a change of plan either", arguments: [present, ahead])
    func changeOfPlan(firstPlanSetAt: Instant) async throws {
        try await withStore { database, harness in
            let setPlan = "select set_plan('\(ada)', 'paid')"
            try await database.moveClock(to: firstPlanSetAt)
            try await database.psql.execute(setPlan)
            try await database.moveClock(to: Self.ahead)
            #expect(try await harness.execute(ada, .consume(799)).isAllowed)
            try await database.moveClock(to: Self.back)
            try await database.psql.execute(setPlan)
            #expect(try await harness.execute(ada, .consume(1)).answer?.snapshot.used == 800)
            #expect(try await harness.execute(ada, .consume(1)).answer?.status == .blocked(.limitReached))
        }
    }

    @Test("moves holds, keys and grants with the messages")
    func keys() async throws {
        try await withStore { database, harness in
            let (held, counted) = (messageKey("held"), messageKey("counted"))
            try await database.psql.execute("select set_plan('\(ada)', 'paid')")
            try await database.moveClock(to: Self.ahead)
            _ = try await harness.execute([
                (ada, .consume(30, key: counted)), (ada, .reserve(4, key: held, ttlSeconds: 100)),
            ])
            try await database.psql.execute("select grant_messages('\(ada)', 50, 'outage', 'g')")
            try await database.moveClock(to: Self.back)
            let release = try await harness.execute(ada, .release(counted)).answer
            #expect(release?.snapshot.used == 0 && release?.snapshot.held == 4 && release?.snapshot.limit == 850)
            let commit = try await harness.execute(ada, .commit(key: held)).answer
            #expect(commit?.status == .allowed && commit?.snapshot.used == 4)
            #expect(commit?.snapshot.period.label == "2026-11")
        }
    }

    @Test("ends a hold at its time")
    func hold() async throws {
        try await withStore { database, harness in
            try await database.psql.execute("select set_plan('\(ada)', 'paid')")
            try await database.moveClock(to: Self.ahead)
            _ = try await harness.execute(ada, .reserve(4, key: messageKey("held"), ttlSeconds: 100))
            try await database.moveClock(to: Self.back)
            #expect(try await harness.execute(ada, .consume(1)).answer?.snapshot.held == 4)
            try await database.moveClock(to: Self.back.advanced(bySeconds: 101))
            #expect(try await harness.execute(ada, .consume(1)).answer?.snapshot.held == 0)
        }
    }

    @Test("leaves no trial of years")
    func trial() async throws {
        try await withStore { database, harness in
            try await database.moveClock(to: Self.ahead)
            #expect(try await harness.execute(ada, .consume(40)).isAllowed)
            try await database.moveClock(to: Self.back)
            let next = try await harness.execute(ada, .consume(1)).answer
            #expect(next?.snapshot.used == 41)
            #expect(next?.snapshot.expiresAt == Self.back.advanced(bySeconds: 3 * 86_400))
            try await database.moveClock(to: Self.back.advanced(bySeconds: 3 * 86_400))
            #expect(try await harness.execute(ada, .consume(1)).answer?.status == .blocked(.trialEnded))
        }
    }

    @Test("does not keep RESETUSAGE from setting the count to 0")
    func reset() async throws {
        try await withStore { database, harness in
            try await database.psql.execute("select set_plan('\(ada)', 'paid')")
            try await database.moveClock(to: Self.ahead)
            #expect(try await harness.execute(ada, .consume(800)).isAllowed)
            try await database.moveClock(to: Self.back)
            #expect(try await harness.execute(ada, .resetUsage(nil)).answer?.snapshot.used == 0)
            #expect(try await harness.execute(ada, .consume(1)).answer?.snapshot.used == 1)
        }
    }

    /// Plans with a window of ten messages in three hours, and one without.
    private static let windowPlans = """
        insert into headroom.plans (plan, label, cycle, allowance, window_messages, window_seconds) values
            ('day', 'Day', 'daily', 90, 10, 10800), ('month', 'Month', 'monthly', 90, 10, 10800),
            ('week', 'Week', 'weekly', 90, 10, 10800), ('plain', 'Plain', 'daily', 90, null, null)
        """

    /// The window is full now, and for three hours at most.
    private func expectFullWindow(_ database: TestDatabase, _ harness: EngineHarness) async throws {
        #expect(try await harness.execute(ada, .consume(1)).answer?.status == .blocked(.windowLimitReached))
        #expect(try await harness.execute(ada, .usage).answer?.snapshot.window?.endsAt == Self.windowEnd)
        try await database.moveClock(to: Self.windowEnd)
        let next = try await harness.execute(ada, .consume(1)).answer
        #expect(next?.status == .allowed && next?.snapshot.windowUsed == 1)
    }

    private static let windowEnd = back.advanced(bySeconds: 10_800)

    @Test("leaves no second window after a change of plan", arguments: ["month", "week", "plain"])
    func windowOfAnotherPlan(other: String) async throws {
        try await withStore { database, harness in
            try await database.psql.execute("\(Self.windowPlans); select set_plan('\(ada)', 'day')")
            try await database.moveClock(to: Self.ahead)
            #expect(try await harness.execute(ada, .consume(10)).isAllowed)
            if other == "plain" {
                // It has no windows, and the same days: they become those of the present.
                try await database.psql.execute("select set_plan('\(ada)', 'plain')")
                try await database.moveClock(to: Self.back)
                #expect(try await harness.execute(ada, .consume(1)).answer?.snapshot.used == 11)
                try await database.psql.execute("select set_plan('\(ada)', 'day')")
            } else {
                try await database.moveClock(to: Self.back)
                try await database.psql.execute("select set_plan('\(ada)', '\(other)')")
            }
            try await expectFullWindow(database, harness)
        }
    }

    @Test("leaves the messages of all its windows in one, also if it was ahead twice")
    func severalWindows() async throws {
        try await withStore { database, harness in
            try await database.psql.execute("\(Self.windowPlans); select set_plan('\(ada)', 'day')")
            try await database.moveClock(to: Self.ahead)
            #expect(try await harness.execute(ada, .consume(2)).isAllowed)
            try await database.moveClock(to: at("2028-05-03T12:00:00Z"))
            try await database.psql.execute("select set_plan('\(ada)', 'month')")
            #expect(try await harness.execute(ada, .consume(8)).isAllowed)
            try await database.moveClock(to: Self.back)
            try await expectFullWindow(database, harness)
        }
    }

    @Test("adds its window to one that is open when it is right again, of whatever plan")
    func windowBesideAnOpenOne() async throws {
        try await withStore { database, harness in
            try await database.psql.execute("\(Self.windowPlans); select set_plan('\(ada)', 'month')")
            try await database.moveClock(to: Self.back)
            let counted = messageKey("counted")
            #expect(try await harness.execute(ada, .consume(4)).isAllowed)
            try await database.moveClock(to: Self.ahead)
            try await database.psql.execute("select set_plan('\(ada)', 'day')")
            #expect(try await harness.execute(ada, .consume(6, key: counted)).isAllowed)
            try await database.moveClock(to: Self.back.advanced(bySeconds: 60))
            // A new row, into which the open window is moved.
            try await database.psql.execute("select set_plan('\(ada)', 'week')")
            #expect(try await harness.execute(ada, .consume(1)).answer?.status == .blocked(.windowLimitReached))
            #expect(try await harness.execute(ada, .release(counted)).answer?.snapshot.windowUsed == 4)
            #expect(try await harness.execute(ada, .consume(6)).isAllowed)
            try await expectFullWindow(database, harness)
        }
    }

    @Test("and is a second ahead only, does not change what a row says")
    func slightly() async throws {
        try await withStore { database, harness in
            let (member, newcomer) = (user(1), user(2))
            try await database.psql.execute("select set_plan('\(member)', 'paid')")
            #expect(try await harness.execute(member, .consume(1)).isAllowed)
            _ = try await harness.execute(newcomer, .reserve(4, key: messageKey("held"), ttlSeconds: 100))
            let row = "select updated_at, usable_until from message_usage order by user_id"
            // The trial's start and the hold's end.
            let times = """
                select started_at, null from headroom.subscriptions where user_id = '\(newcomer)'
                union all select created_at, expires_at from headroom.message_keys where key = 'held'
                """
            let (before, timesBefore) = (try await database.psql.rows(row), try await database.psql.rows(times))
            #expect(timesBefore.count == 2)
            try await database.moveClock(to: Self.present.advanced(bySeconds: -1))
            #expect(try await harness.execute(member, .check(1)).answer?.snapshot.used == 1)
            #expect(try await database.psql.rows(row) == before)
            // Not on the fast path, which looks at the usage row alone.
            let other = EngineOperation.reserve(1, key: messageKey("other"), ttlSeconds: 100)
            #expect(try await harness.execute(newcomer, other).answer?.snapshot.held == 5)
            #expect(try await database.psql.rows(times) == timesBefore)
        }
    }
}
