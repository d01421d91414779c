import TestSupport
import Testing
import Usage

@testable import Engine

/// The database returns a user's entitlement to a lane once. Every change of it, also by a plain UPDATE, must be in the
/// next answer.
@Suite("A cached entitlement")
struct EntitlementVersionTests {
    /// Runs with Ada on the paid plan, whose entitlement the engine has cached.
    private func running(
        _ body: @Sendable (_ database: TestDatabase, _ engine: EngineHarness) async throws -> Void
    ) async throws {
        try await EngineHarness.serving(.fresh()) { database, engine in
            _ = try await engine.execute(ada, .setPlan(PlanChange(user: ada, plan: "paid")))
            for _ in 1...3 { _ = try await engine.execute(ada, .consume(1)) }
            try await body(database, engine)
        }
    }

    private func version(_ database: TestDatabase) async throws -> Int? {
        try await database.psql.number("select entitlement_version from message_usage where user_id = '\(ada)'")
    }

    @Test("is not returned again while it is unchanged")
    func unchanged() async throws {
        try await running { database, engine in
            let before = try await version(database)
            #expect(before != nil)
            let first = try #require(try await engine.execute(ada, .consume(1)).answer)
            let second = try #require(try await engine.execute(ada, .consume(2)).answer)
            // The lane's answers share the cached one; one from the database is a new object each time.
            #expect(first.snapshot.entitlement === second.snapshot.entitlement)
            #expect(second.snapshot.used == 6)
            #expect(try await version(database) == before)
        }
    }

    @Test("follows a plain UPDATE of the limit")
    func limit() async throws {
        try await running { database, engine in
            let before = try await version(database)
            try await database.psql.execute(#"update message_usage set "limit" = 1000"#)
            #expect(try await version(database) != before)
            let answer = try #require(try await engine.execute(ada, .consume(1)).answer)
            #expect(answer.snapshot.limit == 1_000 && answer.snapshot.used == 4 && answer.snapshot.remaining == 996)
        }
    }

    @Test(
        "follows a plain UPDATE of derived columns",
        arguments: [
            ("plan = 'pro'", "pro active nil"), ("state = 'cancelled'", "paid cancelled nil"),
            ("previous_plan = 'pro'", "paid active pro"),
        ]
    )
    func derived(change: String, expected: String) async throws {
        try await running { database, engine in
            try await database.psql.execute("update message_usage set \(change)")
            let snapshot = try #require(try await engine.execute(ada, .consume(1)).answer).snapshot
            let shown = "\(snapshot.plan.name) \(snapshot.state.rawValue) \(snapshot.previousPlan ?? "nil")"
            #expect(shown == expected)
        }
    }

    @Test("follows a plain UPDATE of a date", arguments: ["started_at", "resets_at", "expires_at"])
    func date(column: String) async throws {
        try await running { database, engine in
            try await database.psql.execute("update message_usage set \(column) = '2099-01-02'")
            let snapshot = try #require(try await engine.execute(ada, .consume(1)).answer).snapshot
            let dates = [
                "started_at": snapshot.startedAt, "resets_at": snapshot.resetsAt, "expires_at": snapshot.expiresAt,
            ]
            #expect(dates[column] == at("2099-01-02"))
        }
    }

    @Test("follows an edit of the plan that changes no number in the row")
    func planEdited() async throws {
        try await running { database, engine in
            try await database.psql.execute(
                "update headroom.plans set label = 'Gold', gentle_percent = 1 where plan = 'paid'"
            )
            let snapshot = try #require(try await engine.execute(ada, .consume(20)).answer).snapshot
            #expect(snapshot.plan.label == "Gold")
            #expect(snapshot.tier == .gentle)
            #expect(try await engine.execute(ada, .consume(1)).answer?.snapshot.plan.label == "Gold")
        }
    }

    @Test("follows a row that was deleted and inserted again by hand")
    func rowInsertedAgain() async throws {
        try await running { database, engine in
            try await database.psql.execute(
                #"""
                create temporary table copy as select * from message_usage;
                delete from message_usage;
                insert into message_usage (
                    user_id, billing_period, message_count, "limit", plan, plan_limit, state, started_at, resets_at,
                    usable_until, plan_revision
                )
                select
                    user_id, billing_period, 7, 9, plan, plan_limit, state, started_at, resets_at, usable_until,
                    plan_revision
                from copy;
                """#
            )
            let snapshot = try #require(try await engine.execute(ada, .consume(1)).answer).snapshot
            #expect(snapshot.used == 8 && snapshot.limit == 9)
        }
    }

    @Test("comes with held messages while there are any")
    func held() async throws {
        try await running { database, engine in
            _ = try await engine.execute(ada, .reserve(5, key: messageKey("hold"), ttlSeconds: 60))
            let during = try #require(try await engine.execute(ada, .consume(1)).answer).snapshot
            #expect(during.used == 4 && during.held == 5)
            _ = try await engine.execute(ada, .release(messageKey("hold")))
            let after = try #require(try await engine.execute(ada, .consume(1)).answer).snapshot
            #expect(after.used == 5 && after.held == 0)
        }
    }

    @Test("is returned each time from a row without a version")
    func noVersion() async throws {
        try await running { database, engine in
            try await database.psql.execute("update message_usage set entitlement_version = null")
            for used in 4...6 {
                let snapshot = try #require(try await engine.execute(ada, .consume(1)).answer).snapshot
                #expect(snapshot.used == used && snapshot.limit == 800)
            }
            try await database.psql.execute(#"update message_usage set "limit" = 500"#)
            #expect(try await engine.execute(ada, .consume(1)).answer?.snapshot.limit == 500)
            #expect(try await version(database) != nil)
        }
    }
}
