import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("The change publisher")
struct ChangePublisherTests {
    /// The snapshots that a connection received, in order.
    private func received(_ engine: EngineHarness, connection: Int = 1) -> [UsageSnapshot] {
        engine.mailbox.publications.filter { $0.subscriber == engine.subscriber(connection) }.map(\.answer.snapshot)
    }

    private func subscribe(_ engine: EngineHarness, _ users: UserID..., connection: Int = 1) async throws {
        let outcome = try await engine.outcomes(of: [engine.subscribe(users, connection: connection)])[0]
        #expect(outcome == .subscribed)
    }

    /// Waits until the last snapshot that the connection received fits.
    private func waitForSnapshot(
        _ engine: EngineHarness,
        connection: Int = 1,
        line: Int = #line,
        _ fits: @escaping (UsageSnapshot) -> Bool
    ) async throws {
        try await waitUntil("a fitting snapshot", line: line) {
            received(engine, connection: connection).last.map(fits) ?? false
        }
    }

    @Test("publishes changes by another instance, by functions, and by a plain UPDATE and DELETE")
    func changes() async throws {
        let database = try await TestDatabase.fresh(at: at("2026-11-15T09:30:00Z"))
        let (engine, other) = (EngineHarness(database.conninfo), EngineHarness(database.conninfo))
        try await engine.running {
            try await other.running {
                try await subscribe(engine, user(1), user(2))
                _ = try await other.execute(user(1), .setPlan(PlanChange(user: user(1), plan: "paid")))
                try await waitForSnapshot(engine) { $0.plan.name == "paid" && $0.used == 0 }
                _ = try await other.execute(user(1), .consume(3))
                try await waitForSnapshot(engine) { $0.used == 3 }
                _ = try await other.execute(user(1), .reserve(2, key: messageKey("a"), ttlSeconds: 60))
                try await waitForSnapshot(engine) { $0.used == 3 && $0.held == 2 }
                try await database.psql.execute(
                    "update message_usage set message_count = 700 where user_id = '\(user(1))'"
                )
                try await waitForSnapshot(engine) { $0.used == 700 && $0.tier == .gentle }
                try await database.psql.execute("select * from reset_usage('\(user(1))')")
                try await waitForSnapshot(engine) { $0.used == 0 }
                try await database.psql.execute(
                    "update headroom.plans set window_messages = 9, window_seconds = 3600 where plan = 'paid'"
                )
                _ = try await other.execute(user(1), .consume(1))
                try await waitForSnapshot(engine) { $0.used == 1 && $0.windowUsed == 1 }
                _ = try await other.execute(user(1), .closeWindow)
                try await waitForSnapshot(engine) { $0.used == 1 && $0.windowUsed == 0 }
                try await database.psql.execute("select * from set_plan('\(user(1))', 'pro')")
                try await waitForSnapshot(engine) { $0.plan.name == "pro" && $0.limit == nil }
                _ = try await other.execute(user(1), .consume(1))
                try await waitForSnapshot(engine) { $0.used == 1 }
                try await database.psql.execute("delete from message_usage where user_id = '\(user(1))'")
                try await waitForSnapshot(engine) { $0.used == 0 && $0.limit == nil }
                try await database.psql.execute(
                    "update headroom.subscriptions set revoked_at = headroom.now() where user_id = '\(user(1))'"
                )
                try await waitForSnapshot(engine) { $0.state == .revoked }
                _ = try await other.execute(user(2), .consume(1))
                try await waitForSnapshot(engine) { $0.plan.name == "trial" && $0.used == 1 }
            }
        }
    }

    @Test("publishes changes by time alone: a trial's day and end, a hold's end, a new month")
    func time() async throws {
        try await EngineHarness.serving(.fresh(at: at("2026-11-28T09:30:00Z"))) { database, engine in
            _ = try await engine.execute(user(1), .consume(1))
            _ = try await engine.execute(user(2), .setPlan(PlanChange(user: user(2), plan: "paid")))
            _ = try await engine.execute(user(2), .consume(5))
            _ = try await engine.execute(user(2), .reserve(7, key: messageKey("a"), ttlSeconds: 60))
            try await subscribe(engine, user(1), connection: 1)
            try await subscribe(engine, user(2), connection: 2)
            try await database.moveClock(to: at("2026-11-28T09:31:00Z"))
            try await waitForSnapshot(engine, connection: 2) { $0.used == 5 && $0.held == 0 }
            try await database.moveClock(to: at("2026-11-29T09:30:00Z"))
            try await waitForSnapshot(engine, connection: 1) { $0.trialDay?.day == 2 }
            try await database.moveClock(to: at("2026-12-01T00:00:00Z"))
            try await waitForSnapshot(engine, connection: 2) { $0.used == 0 && $0.period == billingPeriod("2026-12") }
            try await database.moveClock(to: at("2026-12-01T09:30:00Z"))
            try await waitForSnapshot(engine, connection: 1) { $0.denialReason == .trialEnded && $0.remaining == 0 }
        }
    }

    @Test("publishes an edited plan to its subscribers, and nothing when the visible state stays the same")
    func plans() async throws {
        try await EngineHarness.serving(.fresh(at: at("2026-11-15T09:30:00Z"))) { database, engine in
            for (number, plan) in [(UInt64(1), "paid"), (2, "paid"), (3, "pro")] {
                _ = try await engine.execute(user(number), .setPlan(PlanChange(user: user(number), plan: plan)))
                _ = try await engine.execute(user(number), .consume(90))
                try await subscribe(engine, user(number), connection: Int(number))
            }
            try await database.psql.execute("update headroom.plans set allowance = 100 where plan = 'paid'")
            for connection in 1...2 {
                try await waitForSnapshot(engine, connection: connection) { $0.limit == 100 && $0.tier == .gentle }
            }
            try await database.psql.execute(
                "update message_usage set updated_at = updated_at where user_id = '\(user(3))'"
            )
            _ = try await engine.execute(user(3), .consume(1))
            try await waitForSnapshot(engine, connection: 3) { $0.used == 91 }
            let all = received(engine, connection: 3)
            #expect(all.count == 1, "the row was written twice, and its visible state changed once")
        }
    }

    @Test("publishes changes made while its connection was cut, and accepts subscriptions afterwards")
    func outage() async throws {
        try await EngineHarness.serving(.fresh()) { database, engine in
            _ = try await engine.execute(user(1), .setPlan(PlanChange(user: user(1), plan: "paid")))
            try await subscribe(engine, user(1))
            try await database.psql.execute(
                """
                begin;
                select pg_terminate_backend(pid) from pg_stat_activity
                    where application_name = 'headroom changes' and datname = current_database();
                select * from set_plan('\(user(1))', 'pro');
                commit
                """
            )
            try await waitForSnapshot(engine) { $0.plan.name == "pro" }
            try await subscribe(engine, user(2))
            _ = try await engine.execute(user(2), .consume(1))
            try await waitForSnapshot(engine) { $0.plan.name == "trial" }
        }
    }

    /// Has the function that reads a user's fingerprint run the statement first.
    private func slowDown(_ database: TestDatabase, _ statement: String) async throws {
        try await database.psql.execute(
            """
            alter function headroom.fingerprint(uuid) rename to sound_fingerprint;
            create function headroom.fingerprint(p_user_id uuid) returns table (fingerprint text)
                language plpgsql as
            $$
            begin
                \(statement);
                return query select sound.fingerprint from headroom.sound_fingerprint(p_user_id) as sound;
            end
            $$;
            grant execute on function headroom.fingerprint, headroom.sound_fingerprint to headroom_service;
            """
        )
    }

    @Test("reads fewer users at a time when they cannot be read in time together")
    func slowReads() async throws {
        let database = try await TestDatabase.fresh()
        // A statement is ended after 750 ms, and all users take longer.
        let engine = EngineHarness(database.conninfo, requestTimeout: .seconds(1))
        try await engine.running {
            try await slowDown(database, "perform pg_sleep(0.05)")
            let users = (0..<32).map { user($0) }
            let outcome = try await engine.outcomes(of: [engine.subscribe(users, connection: 1)])[0]
            #expect(outcome == .subscribed)
            try await database.psql.execute("select * from set_plan('\(users[31])', 'pro')")
            try await waitForSnapshot(engine) { $0.plan.name == "pro" }
        }
    }

    @Test("fails a request for a user that takes too long alone, and reads the others")
    func slowUser() async throws {
        let database = try await TestDatabase.fresh()
        let engine = EngineHarness(database.conninfo, requestTimeout: .seconds(1))
        try await engine.running {
            try await slowDown(database, "if p_user_id = '\(user(5))' then perform pg_sleep(600); end if")
            let slots = (0..<8).map { engine.subscribe([user(UInt64($0))], connection: $0) }
            let outcomes = try await engine.outcomes(of: slots)
            for (number, outcome) in outcomes.enumerated() {
                #expect(outcome == (number == 5 ? .failure(.late) : .subscribed), "user \(number)")
            }
        }
    }

    @Test("has no connection without subscribers, and a request times out when it can get none")
    func connections() async throws {
        let database = try await TestDatabase.fresh()
        let engine = EngineHarness(database.conninfo)
        let sessions =
            "select count(*) from pg_stat_activity where application_name = 'headroom changes'"
            + " and datname = current_database()"
        try await engine.running {
            let before = try await database.psql.number(sessions)
            #expect(before == 0)
            try await subscribe(engine, user(1))
            let during = try await database.psql.number(sessions)
            #expect(during == 1)
            engine.engine.changes.disconnect(engine.subscriber(1))
            try await waitUntil("the connection is closed") { try await database.psql.number(sessions) == 0 }
            try await database.psql.execute("begin; lock table headroom.plan_revision in access exclusive mode")
            let slot = engine.subscribe([user(1)], connection: 1, within: .milliseconds(300))
            let failed = try await engine.outcomes(of: [slot])[0]
            #expect(failed == .failure(.subscribeFailed))
            try await database.psql.execute("rollback")
            try await subscribe(engine, user(1))
        }
    }

    @Test("publishes changes of thousands of users")
    func many() async throws {
        let database = try await TestDatabase.fresh()
        let engine = EngineHarness(database.conninfo)
        let users = (0..<3_000).map { user(UInt64($0)) }
        try await engine.running {
            try await database.psql.execute(
                """
                select count(set_plan(id::uuid, 'paid')) from unnest(array[
                    \(users.map { "'\($0)'" }.joined(separator: ","))
                ]) as id
                """
            )
            let slots = stride(from: 0, to: users.count, by: 15).map { start in
                engine.subscribe(Array(users[start..<min(start + 15, users.count)]), connection: start % 7)
            }
            let outcomes = try await engine.outcomes(of: slots)
            #expect(outcomes.allSatisfy { $0 == .subscribed })
            let before = engine.mailbox.publications.count
            #expect(before == 0)
            _ = try await engine.execute(users.map { ($0, EngineOperation.consume(2)) })
            try await waitUntil("all changes are published") {
                Set(engine.mailbox.publications.filter { $0.answer.snapshot.used == 2 }.map(\.answer.user)).count
                    == users.count
            }
        }
    }
}
