import TestSupport
import Testing
import Usage

@testable import Engine

/// Keys and holds at the end of a period.
@Suite("A key, in its period and after it")
struct KeyPeriodTests {
    private let eve = at("2026-11-30T23:59:00Z")
    private let after = at("2026-12-01T00:00:30Z")

    /// Runs with Ada on the paid plan, on the evening of November's last day.
    private func running(_ body: TwoEngines.Body) async throws { try await TwoEngines.running(at: eve, body) }

    @Test("that was counted in one month is replayed in the next, by another engine, and counts once")
    func monthEnd() async throws {
        try await running { database, engine, other in
            let key = messageKey("late")
            let first = try #require(try await engine.execute(ada, .consume(7, key: key)).answer)
            try await database.moveClock(to: after)
            for engine in [other, engine] {
                let again = try #require(try await engine.execute(ada, .consume(7, key: key)).answer)
                #expect(again.isRepeated)
                #expect(again.snapshot.period == billingPeriod("2026-11"))
                #expect(again.firstNumbers == first.firstNumbers)
            }
            #expect(try await database.count(of: ada, period: "2026-11") == 7)
            #expect(try await database.count(of: ada, period: "2026-12") == nil)
            _ = try await engine.execute(ada, .consume(7))
            #expect(try await engine.execute(ada, .release(key)).answer?.released == 7)
            #expect(try await database.count(of: ada, period: "2026-11") == 0)
            #expect(try await database.count(of: ada, period: "2026-12") == 7)
        }
    }

    @Test("gives held messages back to the window in time, also in a new plan's row and by another engine")
    func heldInWindow() async throws {
        try await running { database, engine, other in
            try await database.psql.execute(
                """
                insert into headroom.plans (plan, label, cycle, allowance, window_messages, window_seconds) values
                    ('month', 'Month', 'monthly', 50, 10, 3600), ('day', 'Day', 'daily', 50, 10, 3600);
                select set_plan('\(ada)', 'month')
                """
            )
            _ = try await engine.execute(ada, .reserve(5, key: messageKey("k"), ttlSeconds: 10))
            // The day gets a row, into which the window is moved.
            try await database.psql.execute("select set_plan('\(ada)', 'day')")
            try await database.moveClock(to: eve.advanced(bySeconds: 11))
            // The other engine then expects the user in that row.
            _ = try await other.execute(ada, .check(1))
            let next = try await other.execute(ada, .consume(1)).answer?.snapshot
            #expect(next?.window?.openedAt == eve && next?.windowUsed == 1 && next?.windowHeld == 0)
        }
    }

    @Test("that another instance commits in the month's last moment is not committed again after it")
    func committedMeanwhile() async throws {
        try await running { database, engine, _ in
            let key = messageKey("late")
            _ = try await engine.execute(ada, .reserve(7, key: key, ttlSeconds: 600))
            try await database.moveClock(to: after)
            // The lane expects the user in December from now on, so that the fast path leaves the key to the slow path.
            _ = try await engine.execute(ada, .consume(1))
            let row = "where user_id = '\(ada)' and billing_period = '2026-11'"
            let instance = try await Session.open(database.conninfo)
            try await instance.execute("begin; select from message_usage \(row) for update")
            let slots = engine.submit([(ada, .commit(key: key))])
            try await waitUntil("the slow path, which has read the key, waits for November's row") {
                try await database.psql.number(
                    """
                    select count(*) from pg_stat_activity where datname = current_database()
                        and wait_event_type = 'Lock' and query like '%lock_past_usage%'
                    """
                ) == 1
            }
            // As the counting statement of the other instance does, which locks only this row.
            try await instance.execute(
                """
                update headroom.message_keys
                set status = 'c', committed_messages = 7, committed_used = 7, committed_held = 0, committed_limit = 800
                where user_id = '\(ada)';
                update message_usage set message_count = 7, held = 0 \(row);
                commit
                """
            )
            let answer = try #require(try await engine.outcomes(of: slots)[0].answer)
            #expect(answer.isRepeated && answer.snapshot.used == 7)
            #expect(try await database.count(of: ada, period: "2026-11") == 7)
        }
    }

    @Test("that is committed in the old month leaves the user in the new one, on the fast path")
    func cachedPeriod() async throws {
        try await running { database, engine, _ in
            let key = messageKey("late")
            _ = try await engine.execute(ada, .reserve(7, key: key, ttlSeconds: 600))
            try await database.moveClock(to: after)
            #expect(try await engine.execute(ada, .consume(1)).answer?.snapshot.used == 1)
            let committed = try await engine.execute(ada, .commit(key: key)).answer
            #expect(committed?.snapshot.period == billingPeriod("2026-11"))
            let before = engine.slowPathStatements
            #expect(try await engine.execute(ada, .consume(1)).answer?.snapshot.used == 2)
            #expect(engine.slowPathStatements == before)
        }
    }

    @Test("that holds over the month's end is counted in the old month")
    func holdOverMonthEnd() async throws {
        try await running { database, engine, other in
            _ = try await engine.execute(ada, .reserve(700, key: messageKey("late"), ttlSeconds: 120))
            _ = try await engine.execute(ada, .reserve(50, key: messageKey("short"), ttlSeconds: 10))
            try await database.moveClock(to: after)
            let snapshot = try await other.execute(ada, .consume(800)).answer?.snapshot
            #expect(snapshot?.used == 800 && snapshot?.held == 0 && snapshot?.remaining == 0)
            let committed = try #require(try await engine.execute(ada, .commit(key: messageKey("late"))).answer)
            #expect(committed.snapshot.period == billingPeriod("2026-11"))
            #expect(committed.snapshot.used == 700 && committed.snapshot.held == 0)
            #expect(try await other.execute(ada, .commit(key: messageKey("short"))) == .failure(.holdExpired))
        }
    }

    @Test("whose hold expired counts neither in USAGE or HISTORY of the past nor in the view or the older function")
    func expiredHoldsShowNowhere() async throws {
        try await running { database, engine, _ in
            _ = try await engine.execute(ada, .reserve(800, key: messageKey("late"), ttlSeconds: 80))
            let view = "select concat_ws(' ', held, remaining, tier) from monthly_usage where user_id = '\(ada)'"
            #expect(try await database.psql.text(view) == "800 0 blocked")
            let call = "increment_and_check_usage('\(ada)', '2026-11', 800) ->> 'allowed'"
            #expect(try await database.psql.text(call) == "false")
            try await database.moveClock(to: after)
            let past = try await engine.execute(ada, .usageInPeriod(billingPeriod("2026-11"))).answer
            #expect(past?.snapshot.held == 0 && past?.snapshot.remaining == 800)
            guard case .periodUsages(let periods) = try await engine.execute(ada, .history(12)) else {
                Issue.record("no history")
                return
            }
            #expect(periods.map(\.tier) == [.silent])
            #expect(try await database.psql.text(view) == "0 800 silent")
            #expect(try await database.psql.sqlState(of: "select " + call) == "22023", "that period is over")
            let now = "increment_and_check_usage('\(ada)', '2026-12', 800) ->> 'allowed'"
            #expect(try await database.psql.text(now) == "true")
        }
    }

    @Test("replays a COMMIT with the limit of the COMMIT, in its period and from the next")
    func committedLimit() async throws {
        try await running { database, engine, _ in
            let key = messageKey("late")
            _ = try await engine.execute(ada, .reserve(2, key: key, ttlSeconds: 600))
            try await database.psql.execute("update message_usage set \"limit\" = 900 where user_id = '\(ada)'")
            let first = try #require(try await engine.execute(ada, .commit(key: key)).answer)
            #expect(first.snapshot.limit == 900 && first.snapshot.remaining == 898)
            #expect(try await engine.execute(ada, .commit(key: key)).answer?.firstNumbers == first.firstNumbers)
            try await database.moveClock(to: after)
            #expect(try await engine.execute(ada, .commit(key: key)).answer?.firstNumbers == first.firstNumbers)
        }
    }

    @Test("whose holds exceed the largest integer shows the largest, and fails no request")
    func manyHeldUnlimited() async throws {
        try await running { database, engine, _ in
            _ = try await engine.execute(ada, .setPlan(PlanChange(user: ada, plan: "pro")))
            for load in 0..<9 {
                let reserves = (0..<250).map { number in
                    let key = messageKey("key \(load) \(number)")
                    return (user: ada, operation: EngineOperation.reserve(1_000_000, key: key, ttlSeconds: 60))
                }
                let outcomes = try await engine.execute(reserves)
                #expect(outcomes.compactMap(\.failure).isEmpty, "load \(load)")
            }
            #expect(try await engine.execute(ada, .consume(1)).isAllowed)
            #expect(try await engine.execute(ada, .usage).answer?.snapshot.held == UsageSnapshot.countMaximum)
            let committed = try await engine.execute(ada, .commit(key: messageKey("key 0 0"))).answer
            #expect(committed?.snapshot.used == 1_000_001)
            #expect(try await engine.execute(ada, .release(messageKey("key 0 1"))).answer?.released == 1_000_000)
        }
    }
}
