import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("An adopted table whose index begins with the period")
struct PeriodFirstIndexTests {
    @Test("answers every user of a batch with several periods")
    func severalPeriods() async throws {
        let database = try await TestDatabase.fresh()
        try await database.psql.execute(
            """
            alter table message_usage drop constraint message_usage_pkey;
            alter table message_usage add primary key (billing_period, user_id);
            update headroom.plans set allowance = 100 where plan = 'free';
            """
        )
        let users = (0..<8).map { user($0) }
        for (index, person) in users.enumerated() {
            let plan = index % 2 == 0 ? "paid" : "free"
            try await database.psql.execute("select set_plan('\(person)', '\(plan)')")
        }
        let harness = EngineHarness(database.conninfo, lanes: 1)
        try await harness.running {
            // Not cached, then cached.
            for used in 1...3 {
                for (index, outcome) in try await harness.execute(users.map { ($0, .consume(1)) }).enumerated() {
                    #expect(outcome.isAllowed, "user \(index): \(outcome)")
                    #expect(outcome.answer?.snapshot.used == used, "user \(index)")
                    #expect(outcome.answer?.snapshot.plan.name == (index % 2 == 0 ? "paid" : "free"), "user \(index)")
                }
            }
            #expect(try await database.psql.rows("select distinct message_count from message_usage") == ["3"])
        }
    }
}
