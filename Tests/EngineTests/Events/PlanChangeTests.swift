import TestSupport
import Testing
import Usage

@testable import Engine

/// Changes of plan by store events, with messages before and after.
@Suite("A change of plan by a store event")
struct StorePlanChangeTests {
    /// The answer to the next message.
    private func next(_ engine: EngineHarness) async throws -> SQLAnswer.Fields {
        SQLAnswer.fields(of: try #require(try await engine.execute(ada, .consume(1)).answer))
    }

    private func expect(
        _ fields: SQLAnswer.Fields,
        _ expected: [String: String?],
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        for (name, value) in expected { #expect(fields[name] == value, "\(name)", sourceLocation: sourceLocation) }
    }

    @Test("to a larger plan unblocks with the next message, and keeps the count")
    func upgrade() async throws {
        try await EngineHarness.serving(.fresh(at: at("2026-11-01"))) { database, engine in
            try await database.report(StoreEvent("purchased", "2026-11-01", ["plan": "paid", "expires": "2026-12-01"]))
            for count in [799, 1] { #expect(try await engine.execute(ada, .consume(count)).isAllowed) }
            #expect(try await engine.execute(ada, .consume(1)).answer?.status == .blocked(.limitReached))
            try await database.report(StoreEvent("product_changed", "2026-11-10", ["plan": "pro"]))
            let answer = try #require(try await engine.execute(ada, .consume(1)).answer)
            expect(
                SQLAnswer.fields(of: answer),
                [
                    "status": "ALLOWED", "plan": "pro", "used": "801", "limit": nil, "tier": "silent",
                    "display": "hidden", "period": "2026-11", "previous_plan": "paid",
                ]
            )
            #expect(answer.snapshot.banner == nil)
        }
    }

    @Test("to a smaller plan waits for the renewal, then blocks, and keeps the count")
    func downgrade() async throws {
        try await EngineHarness.serving(.fresh(at: at("2026-11-01"))) { database, engine in
            try await database.report(
                StoreEvent("purchased", "2026-11-01", ["plan": "pro", "expires": "2026-11-20", "anchor": "1"])
            )
            #expect(try await engine.execute(ada, .consume(900)).isAllowed)
            try await database.report(StoreEvent("product_changed", "2026-11-10", ["next_plan": "paid"]))
            expect(try await next(engine), ["plan": "pro"])
            try await database.report(StoreEvent("renewed", "2026-11-20", ["expires": "2026-12-20"]))
            expect(
                try await next(engine),
                [
                    "status": "BLOCKED", "reason": "limit_reached", "plan": "paid", "used": "901", "limit": "800",
                    "remaining": "0", "previous_plan": "pro", "period": "2026-11",
                ]
            )
            try await database.moveClock(to: at("2026-12-01"))
            expect(try await next(engine), ["status": "ALLOWED", "used": "1", "limit": "800", "period": "2026-12"])
        }
    }

    @Test(
        "from a trial to a subscription starts a fresh month at 0, and the trial's row stays",
        arguments: [true, false]
    )
    func trialToPaid(isStoreTrial: Bool) async throws {
        let database = try await TestDatabase.fresh(at: at("2026-11-10T09:00:00Z"))
        if isStoreTrial {
            try await database.report(
                StoreEvent("purchased", "2026-11-10T09:00:00Z", ["plan": "trial", "expires": "2026-11-13T09:00:00Z"])
            )
        }
        expect(
            try await database.consume(ada, 100),
            ["plan": "trial", "used": "100", "period": "trial", "day": "1", "days": "3"]
        )
        expect(try await database.consume(ada), ["status": "BLOCKED", "reason": "trial_limit_reached"])
        let paid = ["plan": "paid", "expires": "2026-12-13T09:00:00Z"]
        try await database.report(StoreEvent(isStoreTrial ? "renewed" : "purchased", "2026-11-13T09:00:00Z", paid))
        expect(
            try await database.consume(ada),
            [
                "status": "ALLOWED", "plan": "paid", "state": "active", "used": "1", "limit": "800",
                "period": "2026-11", "resets": at("2026-12-13").text, "previous_plan": nil,
            ]
        )
        #expect(try await database.count(of: ada, period: "trial") == 100)
        #expect(try await database.count(of: ada, period: "2026-11") == 1)
        // A refund does not restore the trial.
        try await database.report(StoreEvent("revoked", "2026-11-13T10:00:00Z"))
        expect(try await database.consume(ada), ["reason": "revoked", "plan": "paid", "previous_plan": "paid"])
    }

    @Test("back to a subscription restores access with the next message, with the previous plan on record")
    func resubscription() async throws {
        try await EngineHarness.serving(.fresh(at: at("2026-11-05"))) { database, engine in
            try await database.report(StoreEvent("purchased", "2026-11-05", ["plan": "paid", "expires": "2026-12-05"]))
            _ = try await engine.execute(ada, .consume(10))
            try await database.report(StoreEvent("expired", "2026-12-05", ["expires": "2026-12-05"]))
            let lapsed = try #require(try await engine.execute(ada, .consume(1)).answer)
            expect(SQLAnswer.fields(of: lapsed), ["reason": "expired", "state": "expired", "previous_plan": "paid"])
            #expect(lapsed.snapshot.banner?.text == StateTable.noAccess)
            try await database.report(
                StoreEvent("purchased", "2026-12-20", ["plan": "pro", "expires": "2027-01-20"], transaction: "web 7")
            )
            let back = try #require(try await engine.execute(ada, .consume(1)).answer)
            expect(
                SQLAnswer.fields(of: back),
                ["status": "ALLOWED", "plan": "pro", "state": "active", "previous_plan": "paid", "used": "1"]
            )
            #expect(try await database.count(of: ada, period: "2026-11") == 10)
        }
    }

    @Test(
        "from an operator's plan records it as previous plan, in any order of events",
        arguments: [true, false],
        ["monthly", "weekly", "daily"]
    )
    func fromOperator(isInOrder: Bool, cycle: String) async throws {
        let database = try await TestDatabase.fresh(at: at("2026-11-05"))
        try await database.psql.execute(
            """
            insert into headroom.plans (plan, label, cycle, allowance) values ('team', 'Team', '\(cycle)', 50);
            select set_plan('\(ada)', 'team', 'expired');
            """
        )
        let events = [
            StoreEvent("purchased", "2026-11-06", ["plan": "paid", "expires": "2026-12-06"]),
            StoreEvent("uncancelled", "2026-11-07"),
        ]
        try await database.moveClock(to: at("2026-11-07"))
        for event in isInOrder ? events : events.reversed() { try await database.psql.apply(event) }
        expect(try await database.usage(ada), ["plan": "paid", "state": "active", "previous_plan": "team"])
    }

    @Test("has no effect if it happened before an operator set a plan")
    func outdated() async throws {
        let database = try await TestDatabase.fresh(at: at("2026-11-05"))
        let bought = StoreEvent("purchased", "2026-11-05", ["plan": "paid", "expires": "2026-12-05"])
        try await database.report(bought)
        try await database.moveClock(to: at("2026-11-10"))
        try await database.psql.execute("select set_plan('\(ada)', 'pro')")
        let late = try await database.psql.apply(StoreEvent("revoked", "2026-11-09"))
        #expect(late["outcome"] == "outdated" && late["plan"] == "pro" && late["access"] == "true")
        #expect(
            try await database.psql.text("select detail || ', ' || reason from audit_trail order by id desc limit 1")
                == "happened 2026-11-09T00:00:00Z, outcome outdated, revoked reported by revenuecat"
        )
        #expect(try await database.psql.apply(bought)["outcome"] == "duplicate")
        #expect(try await database.psql.apply(StoreEvent("revoked", "2026-11-09"))["outcome"] == "duplicate")
        expect(try await database.usage(ada), ["plan": "pro", "state": "active", "previous_plan": "paid"])
        #expect(try await database.psql.number("select count(*) from headroom.subscriptions") == 1)
        // Later events count again.
        try await database.report(StoreEvent("renewed", "2026-12-05", ["plan": "paid", "expires": "2027-01-05"]))
        #expect(try await database.psql.number("select count(*) from headroom.subscriptions") == 2)
        expect(try await database.usage(ada), ["plan": "pro", "state": "active"])
    }

    @Test("to a second trial ends with the first, also after the user was forgotten")
    func spentTrial() async throws {
        let database = try await TestDatabase.fresh(at: at("2026-11-10"))
        _ = try await database.consume(ada, 100)
        try await database.report(StoreEvent("purchased", "2026-11-11", ["plan": "trial", "expires": "2026-11-18"]))
        expect(try await database.consume(ada), ["status": "BLOCKED", "reason": "trial_limit_reached", "used": "100"])
        try await database.psql.execute("select forget_user('\(ada)')")
        #expect(try await database.psql.rows("select outcome from headroom.billing_events") == ["forgotten"])
        try await database.report(
            StoreEvent("purchased", "2026-11-15", ["plan": "trial", "expires": "2026-11-22"], transaction: "another")
        )
        expect(try await database.consume(ada), ["reason": "trial_ended", "used": "100"])
        try await database.report(StoreEvent("purchased", "2026-11-16", ["plan": "paid"], transaction: "another"))
        expect(try await database.consume(ada), ["status": "ALLOWED", "used": "1"])
    }
}
