import TestSupport
import Testing
import Usage

@testable import Engine

// Serialized, because each of the many cases has a database and connections of its own.
@Suite("States × time × plan × usage", .serialized)
struct StateTableTests {
    /// A database with the custom plan and a free plan of three messages, and an engine.
    private func running(
        _ body: @Sendable (_ database: TestDatabase, _ engine: EngineHarness) async throws -> Void
    ) async throws {
        let database = try await TestDatabase.fresh(at: at("2026-11-01"))
        try await database.psql.execute(
            """
            insert into headroom.plans (plan, label, cycle, allowance, gentle_percent, prominent_percent)
            values ('team', 'Team', 'monthly', 50, 50, 90);
            update headroom.plans set allowance = 3 where plan = 'free';
            """
        )
        let engine = EngineHarness(database.conninfo)
        try await engine.running { try await body(database, engine) }
    }

    @Test("of a monthly plan are reported as required", arguments: StateTable.monthlyHistories)
    func monthly(history: History) async throws {
        try await running { database, engine in
            var number: UInt64 = 0
            for (plan, points) in StateTable.monthlyPlans {
                for point in points {
                    number += 1
                    var events = history.events
                    events[0].fields["plan"] = plan
                    try await follow(events, history.moments, plan, point, user(number), database, engine)
                }
            }
        }
    }

    @Test("of a trial are reported as required", arguments: StateTable.trialHistories)
    func trial(history: History) async throws {
        try await running { database, engine in
            for (index, point) in StateTable.trial.enumerated() {
                let user = user(UInt64(index))
                try await follow(history.events, history.moments, "trial", point, user, database, engine)
            }
        }
    }

    @Test("of a trial that the first message starts are reported as required")
    func firstMessage() async throws {
        try await running { database, engine in
            let end = at("2026-11-04T00:00:00Z")
            for (index, point) in StateTable.trial.enumerated() where point.used > 0 {
                let moments = [
                    Moment(at("2026-11-01"), "trial"), Moment(end.justBefore, "trial", trialEnds: "November 4"),
                    Moment(end, "trial", "trial_ended"), Moment(end.justAfter, "trial", "trial_ended"),
                ]
                try await database.moveClock(to: at("2026-11-01"))
                try await follow([], moments, "trial", point, user(UInt64(index)), database, engine)
            }
        }
    }

    @Test("of the free plan are reported as required")
    func free() async throws {
        try await running { database, engine in
            for (index, point) in StateTable.free.enumerated() {
                let user = user(UInt64(index))
                try await database.psql.execute("select set_plan('\(user)', 'free')")
                let moments = [Moment(at("2026-11-02"), "free"), Moment(at("2099-01-01"), "free")]
                try await follow([], moments, "free", point, user, database, engine)
                try await database.moveClock(to: at("2026-11-01"))
            }
            try await database.psql.execute("update headroom.plans set allowance = 0 where plan = 'free'")
            try await database.psql.execute("select set_plan('\(user(9))', 'free')")
            let nothing = UsedUp(0, "blocked", "blocked", reason: "no_subscription", StateTable.neverSubscribed)
            let moment = Moment(at("2026-11-02"), "free", "no_subscription")
            try await follow([], [moment], "free", nothing, user(9), database, engine)
        }
    }

    /// The sentence without its date, if access ends before the next period and is not renewed.
    private func dated(_ banner: String?, _ user: UserID, _ database: TestDatabase) async throws -> String? {
        let ends = """
            select from headroom.entitlement('\(user)', headroom.now(), 'deny')
            where expires_at <= resets_at and (state = 'active' and renews) is not true
            """
        guard try await database.psql.number("select count(*) from (\(ends)) as ending") == 1 else { return banner }
        return banner?.replacing(" until December 1", with: "")
            .replacing(" Your next session refreshes on December 1.", with: "")
    }

    /// Applies events as time passes, uses the table's amount after the first, and compares at each moment.
    private func follow(
        _ events: [StoreEvent],
        _ moments: [Moment],
        _ plan: String,
        _ point: UsedUp,
        _ user: UserID,
        _ database: TestDatabase,
        _ engine: EngineHarness
    ) async throws {
        var rest = events.map { $0.of(user) }[...]
        if let first = rest.popFirst() { try await database.report(first) }
        if point.used > 0 { #expect(try await database.consume(user, point.used)["status"] == "ALLOWED") }
        for moment in moments {
            while let event = rest.first, event.instant <= moment.instant {
                try await database.report(event)
                rest.removeFirst()
            }
            try await database.moveClock(to: moment.instant)
            try await compare(plan, moment, point, user, database, engine)
        }
    }

    private func compare(
        _ plan: String,
        _ moment: Moment,
        _ point: UsedUp,
        _ user: UserID,
        _ database: TestDatabase,
        _ engine: EngineHarness
    ) async throws {
        let context: Comment = "\(plan), \(point.used) used, at \(moment.instant)"
        #expect(try await database.hasChosenPlan(user), context)
        var banner = try await dated(point.banner, user, database)
        if let date = moment.trialEnds, point.used < 100 {
            let left = point.used == 99 ? "messages is left." : "messages are left."
            banner = "Your trial ends \(date) — \(100 - point.used) of 100 \(left)"
        }
        // A free plan without messages gives no access either, and has the same sentence.
        let hasAccess = moment.reason == nil || moment.reason == point.reason
        let lapsed =
            switch moment.reason {
            case "trial_ended": point.used < 100 ? StateTable.trialEnded : StateTable.trialUsedUp
            case "revoked": StateTable.refunded
            case "billing_retry": StateTable.paused
            default: StateTable.noAccess
            }
        var expected: SQLAnswer.Fields = [
            "status": "OK", "plan": plan, "state": moment.state, "used": String(point.used),
            "tier": hasAccess ? point.tier : "blocked", "display": hasAccess ? point.display : "blocked",
            "reason": moment.reason,
        ]

        let usage = try await database.usage(user)
        for (name, value) in expected { #expect(usage[name] == value, "\(name) of \(context)") }
        let served = try #require(try await engine.execute(user, .usage).answer)
        #expect(SQLAnswer.fields(of: served) == usage, context)
        #expect(served.snapshot.notice?.text == moment.notice, context)
        #expect(served.snapshot.banner?.text == (hasAccess ? banner : lapsed), context)

        let reason = moment.reason ?? point.reason
        expected["reason"] = reason
        expected["status"] = reason == nil ? "ALLOWED" : "BLOCKED"
        let check = try #require(try await engine.execute(user, .check(1)).answer)
        let checked = SQLAnswer.fields(of: check)
        for (name, value) in expected { #expect(checked[name] == value, "\(name) of CHECK, \(context)") }
        #expect(check.snapshot.banner?.text == served.snapshot.banner?.text, context)

        // Tries a message, and rolls it back.
        try await database.psql.execute("begin")
        let counted = try await database.consume(user)
        try await database.psql.execute("rollback")
        #expect(counted["status"] == expected["status"], context)
        #expect(counted["reason"] == expected["reason"], context)
        if reason != nil { #expect(counted == checked, context) }
    }
}
