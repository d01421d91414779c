import TestSupport
import Testing
import Usage

@testable import Engine

/// After a restart the service has no user in its cache, and does not know in which period a user's row is.
@Suite("Users that are not cached")
struct UncachedUserTests {
    private func fresh() async throws -> TestDatabase {
        // The 9th in Niue, the 11th in Kiritimati.
        try await .fresh(at: at("2026-11-10T10:30:00Z"))
    }

    @Test("are counted on the fast path, whatever the period of their usable row, also after a lost reply")
    func periods() async throws {
        let database = try await fresh()
        try await database.psql.execute(
            """
            insert into headroom.plans (plan, label, cycle, allowance) values ('forever', 'Forever', 'lifetime', 50);
            select set_plan('\(user(2))', 'paid');
            select set_plan('\(user(3))', 'paid', p_anchor => 25);
            select set_plan('\(user(4))', 'forever');
            insert into headroom.plans (plan, label, cycle, allowance, time_zone) values
                ('day', 'Day', 'daily', 50, 'Pacific/Kiritimati'), ('week', 'Week', 'weekly', 50, 'Asia/Tokyo'),
                ('evening', 'Evening', 'daily', 50, 'Pacific/Niue'), ('noon', 'Noon', 'daily', 50, null);
            select set_plan('\(user(5))', 'day'), set_plan('\(user(6))', 'week');
            select set_plan('\(user(7))', 'evening'), set_plan('\(user(8))', 'noon');
            """
        )
        let all = (1...8).map { user($0) }
        let before = EngineHarness(database.conninfo)
        try await before.running { _ = try await before.execute(all.map { ($0, .consume(1)) }) }

        let proxy = try await database.proxy()
        defer { proxy.close() }
        let restarted = EngineHarness(database.conninfo(through: proxy), lanes: 1)
        try await restarted.running {
            proxy.arm(.reply("count_batch"))
            let expected = [
                "trial", "2026-11", "2026-10", "forever", "2026-11-11", "2026-W46", "2026-11-09", "2026-11-10",
            ]
            for used in 2...3 {
                let outcomes = try await restarted.execute(all.map { ($0, .consume(1)) })
                #expect(outcomes.map { $0.answer?.snapshot.used } == Array(repeating: used, count: 8))
                #expect(outcomes.map { $0.answer?.snapshot.period.label } == expected)
            }
            #expect(restarted.slowPathStatements == 0)
        }
        #expect(proxy.cuts == 1)
    }

    @Test("are counted once if two of their rows are usable, in the period of their plan")
    func twoUsableRows() async throws {
        let database = try await fresh()
        try await database.psql.execute("select set_plan('\(ada)', 'paid')")
        _ = try await database.consume(ada)
        // As after a clock that was set back.
        try await database.psql.execute(
            """
            insert into message_usage (user_id, billing_period, message_count, "limit")
            values ('\(ada)', '2026-10', 7, 800);
            update message_usage as usage set usable_until = 'infinity', plan_revision = open.plan_revision
            from message_usage as open
            where usage.billing_period = '2026-10' and open.billing_period = '2026-11';
            """
        )
        let engine = EngineHarness(database.conninfo)
        try await engine.running {
            let outcome = try await engine.execute(ada, .consume(1))
            #expect(outcome.answer?.snapshot.used == 2)
            #expect(engine.slowPathStatements == 1)
        }
        #expect(try await database.count(of: ada, period: "2026-10") == 7)
        #expect(try await database.count(of: ada, period: "2026-11") == 2)
    }
}
