import TestSupport
import Testing
import Usage

@testable import Engine

/// Users without a usable row, whom `headroom.derive_and_count` counts in one statement.
@Suite("Users whose rows are derived")
struct DerivedUserTests {
    private let people = (1...6).map { user($0) }

    private func withStore(_ body: @Sendable (TestDatabase, EngineHarness) async throws -> Void) async throws {
        let database = try await TestDatabase.fresh(at: at("2026-11-10T12:00:00Z"))
        let harness = EngineHarness(database.conninfo, lanes: 1)
        try await harness.running { try await body(database, harness) }
    }

    /// From now on an error is raised for users whose requests are decided one by one.
    private func refuseDecisions(_ database: TestDatabase) async throws {
        try await database.psql.execute(
            """
            create or replace function headroom.lock_for_messages(
                p_bucket smallint, p_users uuid[], p_may_create boolean[]
            ) returns uuid[] language plpgsql as $$ begin raise exception 'decided one by one'; end $$
            """
        )
    }

    private func consume(_ harness: EngineHarness, _ users: [UserID], _ messages: Int = 1) async throws -> [Answer?] {
        try await harness.execute(users.map { ($0, .consume(messages)) }).map(\.answer)
    }

    @Test("are counted in one statement: new, in a new period, after an edit of a plan")
    func oneStatement() async throws {
        try await withStore { database, harness in
            try await database.psql.execute(
                """
                select set_plan('\(people[0])', 'paid'), set_plan('\(people[1])', 'paid', p_anchor => 20);
                insert into headroom.plans (plan, label, cycle, allowance, time_zone)
                values ('week', 'Week', 'weekly', 50, 'Asia/Tokyo');
                select set_plan('\(people[2])', 'week');
                """
            )
            try await refuseDecisions(database)
            let new = try await consume(harness, people)
            #expect(new.map { $0?.snapshot.used } == [1, 1, 1, 1, 1, 1])
            #expect(new.map { $0?.snapshot.limit } == [800, 800, 50, 100, 100, 100])
            let periods = ["2026-11", "2026-10", "2026-W46", "trial", "trial", "trial"]
            #expect(new.map { $0?.snapshot.period.label } == periods)
            try await database.psql.execute("update headroom.plans set allowance = allowance + 5")
            let edited = try await consume(harness, people)
            #expect(edited.map { $0?.snapshot.used } == [2, 2, 2, 2, 2, 2])
            #expect(edited.map { $0?.snapshot.limit } == [805, 805, 55, 105, 105, 105])
            try await database.moveClock(to: at("2026-11-20T12:00:00Z"))
            let later = try await consume(harness, Array(people[0...2]))
            #expect(later.map { $0?.snapshot.used } == [3, 1, 1])
            #expect(later.map { $0?.snapshot.period.label } == ["2026-11", "2026-11", "2026-W47"])
            #expect(try await database.psql.number("select sum(message_count) from message_usage") == 15)
        }
    }

    @Test("of all kinds are counted in one batch, and refused ones are refused")
    func kinds() async throws {
        try await withStore { database, harness in
            try await database.psql.execute("select set_plan('\(people[0])', 'paid'), set_plan('\(people[1])', 'paid')")
            _ = try await consume(harness, Array(people[0...2]), 99)
            try await database.psql.execute("update headroom.plans set allowance = 100 where plan = 'paid'")
            let answers = try await harness.execute(
                people.map { ($0, .consume(1)) } + people.map { ($0, .consume(100)) } + [(people[0], .consume(1))]
            )
            #expect(answers.prefix(6).map { $0.answer?.snapshot.used } == [100, 100, 100, 1, 1, 1])
            #expect(answers.dropFirst(6).allSatisfy { !$0.isAllowed })
            #expect(try await database.psql.number("select sum(message_count) from message_usage") == 303)
        }
    }

    @Test("with two subscriptions get the one that applies after the edit")
    func twoSubscriptions() async throws {
        try await withStore { database, harness in
            try await database.psql.execute(
                """
                insert into headroom.plans (plan, label, cycle, allowance) values ('large', 'Large', 'monthly', 900);
                insert into headroom.subscribers (user_id) values ('\(ada)');
                insert into headroom.subscriptions (user_id, original_transaction_id, plan, started_at)
                values ('\(ada)', 'A', 'paid', '2026-11-01Z'), ('\(ada)', 'B', 'large', '2026-11-01Z');
                """
            )
            #expect(try await harness.execute(ada, .consume(1)).answer?.snapshot.plan.name == "large")
            try await database.psql.execute("update headroom.plans set allowance = 700 where plan = 'large'")
            let answer = try await harness.execute(ada, .consume(1)).answer
            #expect(answer?.snapshot.plan.name == "paid" && answer?.snapshot.used == 2)
        }
    }

    @Test("get other dates after an edit of the cycle or the length of a trial")
    func dates() async throws {
        try await withStore { database, harness in
            try await database.psql.execute("select set_plan('\(people[0])', 'paid')")
            _ = try await consume(harness, Array(people[0...1]))
            try await database.psql.execute(
                """
                update headroom.plans set cycle = 'daily' where plan = 'paid';
                update headroom.plans set trial_days = 5 where plan = 'trial';
                """
            )
            let answers = try await consume(harness, Array(people[0...1]))
            #expect(answers[0]?.snapshot.period.label == "2026-11-10")
            #expect(answers[1]?.snapshot.expiresAt == at("2026-11-15T12:00:00Z"))
        }
    }
}
