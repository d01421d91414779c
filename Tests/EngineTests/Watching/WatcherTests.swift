import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("The watcher")
struct WatcherTests {
    /// The standings that were told to a connection, in their order.
    private func told(_ store: EngineHarness, connection: Int = 1) -> [UsageSnapshot] {
        store.mailbox.publications.filter { $0.subscriber == store.subscriber(connection) }.map(\.answer.snapshot)
    }

    private func watch(_ store: EngineHarness, _ users: UserID..., connection: Int = 1) async throws {
        let outcome = try await store.outcomes(of: [store.watch(users, connection: connection)])[0]
        #expect(outcome == .watching)
    }

    /// Waits for the connection to be told something that the last of all it was told then fits.
    private func waitForNews(
        _ store: EngineHarness,
        connection: Int = 1,
        line: Int = #line,
        _ fits: @escaping (UsageSnapshot) -> Bool
    ) async throws {
        try await waitUntil("news", line: line) {
            told(store, connection: connection).last.map(fits) ?? false
        }
    }

    @Test("tells what another instance counts, what functions do, and what a plain UPDATE and DELETE change")
    func changes() async throws {
        let database = try await TestDatabase.fresh()
        try await database.stopClock(at: at("2026-11-15T09:30:00Z"))
        let (store, other) = (EngineHarness(database.conninfo), EngineHarness(database.conninfo))
        try await store.running {
            try await other.running {
                try await watch(store, user(1), user(2))
                _ = try await other.execute(user(1), .setPlan(PlanChange(user: user(1), plan: "paid")))
                try await waitForNews(store) { $0.plan.name == "paid" && $0.used == 0 }
                _ = try await other.execute(user(1), .consume(3))
                try await waitForNews(store) { $0.used == 3 }
                _ = try await other.execute(user(1), .reserve(2, key: messageKey("a"), ttlSeconds: 60))
                try await waitForNews(store) { $0.used == 3 && $0.held == 2 }
                try await database.psql.execute(
                    "update message_usage set message_count = 700 where user_id = '\(user(1))'"
                )
                try await waitForNews(store) { $0.used == 700 && $0.tier == .gentle }
                try await database.psql.execute("select * from reset_usage('\(user(1))')")
                try await waitForNews(store) { $0.used == 0 }
                try await database.psql.execute("select * from set_plan('\(user(1))', 'pro')")
                try await waitForNews(store) { $0.plan.name == "pro" && $0.limit == nil }
                _ = try await other.execute(user(1), .consume(1))
                try await waitForNews(store) { $0.used == 1 }
                try await database.psql.execute("delete from message_usage where user_id = '\(user(1))'")
                try await waitForNews(store) { $0.used == 0 && $0.limit == nil }
                try await database.psql.execute(
                    "update headroom.subscriptions set revoked_at = headroom.now() where user_id = '\(user(1))'"
                )
                try await waitForNews(store) { $0.state == .revoked }
                _ = try await other.execute(user(2), .consume(1))
                try await waitForNews(store) { $0.plan.name == "trial" && $0.used == 1 }
            }
        }
    }

    @Test("tells what time alone changes: a trial's day and its end, a hold's end, a new month")
    func time() async throws {
        let database = try await TestDatabase.fresh()
        try await database.stopClock(at: at("2026-11-28T09:30:00Z"))
        let store = EngineHarness(database.conninfo)
        try await store.running {
            _ = try await store.execute(user(1), .consume(1))
            _ = try await store.execute(user(2), .setPlan(PlanChange(user: user(2), plan: "paid")))
            _ = try await store.execute(user(2), .consume(5))
            _ = try await store.execute(user(2), .reserve(7, key: messageKey("a"), ttlSeconds: 60))
            try await watch(store, user(1), connection: 1)
            try await watch(store, user(2), connection: 2)
            try await database.moveClock(to: at("2026-11-28T09:31:00Z"))
            try await waitForNews(store, connection: 2) { $0.used == 5 && $0.held == 0 }
            try await database.moveClock(to: at("2026-11-29T09:30:00Z"))
            try await waitForNews(store, connection: 1) { $0.trialDay?.day == 2 }
            try await database.moveClock(to: at("2026-12-01T00:00:00Z"))
            try await waitForNews(store, connection: 2) { $0.used == 0 && $0.period == billingPeriod("2026-12") }
            try await database.moveClock(to: at("2026-12-01T09:30:00Z"))
            try await waitForNews(store, connection: 1) { $0.denialReason == .trialEnded && $0.remaining == 0 }
        }
    }

    @Test("tells everybody on a plan when an operator edits it, and nobody what stays as it reads")
    func plans() async throws {
        let database = try await TestDatabase.fresh()
        try await database.stopClock(at: at("2026-11-15T09:30:00Z"))
        let store = EngineHarness(database.conninfo)
        try await store.running {
            for (number, plan) in [(UInt64(1), "paid"), (2, "paid"), (3, "pro")] {
                _ = try await store.execute(user(number), .setPlan(PlanChange(user: user(number), plan: plan)))
                _ = try await store.execute(user(number), .consume(90))
                try await watch(store, user(number), connection: Int(number))
            }
            try await database.psql.execute("update headroom.plans set allowance = 100 where plan = 'paid'")
            for connection in 1...2 {
                try await waitForNews(store, connection: connection) { $0.limit == 100 && $0.tier == .gentle }
            }
            try await database.psql.execute(
                "update message_usage set updated_at = updated_at where user_id = '\(user(3))'"
            )
            _ = try await store.execute(user(3), .consume(1))
            try await waitForNews(store, connection: 3) { $0.used == 91 }
            let all = told(store, connection: 3)
            #expect(all.count == 1, "the row was written twice, and reads otherwise once")
        }
    }

    @Test("tells what changed while its connection was cut, and takes new subscriptions after it")
    func outage() async throws {
        let database = try await TestDatabase.fresh()
        let store = EngineHarness(database.conninfo)
        try await store.running {
            _ = try await store.execute(user(1), .setPlan(PlanChange(user: user(1), plan: "paid")))
            try await watch(store, user(1))
            try await database.psql.execute(
                """
                begin;
                select pg_terminate_backend(pid) from pg_stat_activity
                    where application_name = 'headroom watcher' and datname = current_database();
                select * from set_plan('\(user(1))', 'pro');
                commit
                """
            )
            try await waitForNews(store) { $0.plan.name == "pro" }
            try await watch(store, user(2))
            _ = try await store.execute(user(2), .consume(1))
            try await waitForNews(store) { $0.plan.name == "trial" }
        }
    }

    @Test("has no connection while nobody watches, and says in time when it can get none")
    func connections() async throws {
        let database = try await TestDatabase.fresh()
        let store = EngineHarness(database.conninfo)
        let sessions =
            "select count(*) from pg_stat_activity where application_name = 'headroom watcher'"
            + " and datname = current_database()"
        try await store.running {
            let before = try await database.psql.number(sessions)
            #expect(before == 0)
            try await watch(store, user(1))
            let during = try await database.psql.number(sessions)
            #expect(during == 1)
            store.engine.watcher.leave(store.subscriber(1))
            try await waitUntil("the connection is given back") { try await database.psql.number(sessions) == 0 }
            try await database.psql.execute("begin; lock table headroom.plan_revision in access exclusive mode")
            let slot = store.watch([user(1)], connection: 1, within: .milliseconds(300))
            let refused = try await store.outcomes(of: [slot])[0]
            #expect(refused == .failure(.cannotWatch))
            try await database.psql.execute("rollback")
            try await watch(store, user(1))
        }
    }

    @Test("keeps up with thousands of watched users, many at a time")
    func many() async throws {
        let database = try await TestDatabase.fresh()
        let store = EngineHarness(database.conninfo)
        let users = (0..<3_000).map { user(UInt64($0)) }
        try await store.running {
            try await database.psql.execute(
                """
                select count(set_plan(id::uuid, 'paid')) from unnest(array[
                    \(users.map { "'\($0)'" }.joined(separator: ","))
                ]) as id
                """
            )
            let slots = stride(from: 0, to: users.count, by: 15).map { start in
                store.watch(Array(users[start..<min(start + 15, users.count)]), connection: start % 7)
            }
            let outcomes = try await store.outcomes(of: slots)
            #expect(outcomes.allSatisfy { $0 == .watching })
            let before = store.mailbox.publications.count
            #expect(before == 0)
            _ = try await store.execute(users.map { ($0, EngineOperation.consume(2)) })
            try await waitUntil("everybody is told") {
                Set(store.mailbox.publications.filter { $0.answer.snapshot.used == 2 }.map(\.answer.user)).count
                    == users.count
            }
        }
    }
}
