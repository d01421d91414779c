import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("A connection that is cut around a statement")
struct ReceiptTests {
    /// When a connection is cut: before the server receives the statement, or after it has committed and replied.
    enum Moment: CaseIterable, Sendable {
        case before, after

        func cut(_ statement: String) -> Proxy.Cut { self == .before ? .request(statement) : .reply(statement) }
    }

    private func withStore(_ body: @Sendable (TestDatabase, Proxy, EngineHarness) async throws -> Void) async throws {
        let database = try await TestDatabase.fresh(at: at("2026-11-10T12:00:00Z"))
        let proxy = try await database.proxy()
        defer { proxy.close() }
        let harness = EngineHarness(database.conninfo(through: proxy), lanes: 1)
        try await harness.running { try await body(database, proxy, harness) }
        #expect(proxy.cuts == 1)
        #expect(harness.engine.snapshot.reconnects == 1)
    }

    @Test("counts a batch of cached users once, with the right answers", arguments: Moment.allCases)
    func counting(moment: Moment) async throws {
        try await withStore { database, proxy, harness in
            _ = try await harness.execute([(user(1), .consume(78)), (user(2), .consume(10))])
            proxy.arm(moment.cut("count_batch"))
            let outcomes = try await harness.execute([
                (user(2), .consume(1)), (user(1), .consume(1)), (user(1), .check(21)), (user(1), .consume(2)),
                (user(2), .consume(5)), (user(1), .usage),
            ])
            #expect(outcomes.map { $0.answer?.snapshot.used } == [11, 79, 79, 81, 16, 81])
            #expect(outcomes.map(\.isAllowed) == [true, true, true, true, true, false])
            #expect(outcomes.map { $0.answer?.crossed } == [nil, nil, nil, .gentle, nil, nil], "reported once")
            #expect(try await database.count(of: user(1), period: "trial") == 81)
            #expect(try await database.count(of: user(2), period: "trial") == 16)
        }
    }

    @Test(
        "counts a batch once whose users go different ways",
        arguments: Moment.allCases,
        ["count_batch", "derive_and_count", "lock_and_read_users", "write_receipt"]
    )
    func mixedWays(moment: Moment, statement: String) async throws {
        try await withStore { database, proxy, harness in
            _ = try await harness.execute([(user(1), .consume(1)), (user(2), .consume(99))])
            proxy.arm(moment.cut(statement))
            let outcomes = try await harness.execute([
                (user(1), .consume(1)), (user(2), .consume(2)), (user(3), .consume(4)), (user(2), .consume(1)),
                (user(4), .check(1)), (user(3), .consume(1)),
            ])
            #expect(outcomes.map { $0.answer?.snapshot.used } == [2, 99, 4, 100, 0, 5])
            #expect(outcomes.map(\.isAllowed) == [true, false, true, true, true, true])
            #expect(try await database.psql.number("select sum(message_count) from message_usage") == 107)
        }
    }

    @Test(
        "changes a plan once",
        arguments: Moment.allCases,
        ["BEGIN", "headroom.advance_receipt", "public.set_plan", "COMMIT"]
    )
    func settingPlan(moment: Moment, statement: String) async throws {
        try await withStore { database, proxy, harness in
            try await database.psql.execute(
                """
                create table headroom.test_changes (plan text);
                grant insert on headroom.test_changes to headroom_service;
                create function headroom.test_note() returns trigger language plpgsql as
                    $$ begin insert into headroom.test_changes values (new.plan); return null; end $$;
                create trigger test_note after insert on headroom.subscriptions
                    for each row execute function headroom.test_note();
                """
            )
            proxy.arm(moment.cut(statement))
            let outcome = try await harness.execute(user(1), .setPlan(PlanChange(user: user(1), plan: "paid")))
            #expect(outcome.answer?.status == .ok)
            #expect(outcome.answer?.snapshot.plan.name == "paid")
            #expect(try await database.psql.text("select string_agg(plan, ' ') from headroom.test_changes") == "paid")
        }
    }

    @Test(
        "grants once, and takes its own repetition for no replay",
        arguments: Moment.allCases,
        ["BEGIN", "update headroom.lane_receipts", "headroom.grant_once", "COMMIT"]
    )
    func granting(moment: Moment, statement: String) async throws {
        try await withStore { database, proxy, harness in
            proxy.arm(moment.cut(statement))
            let grant = EngineOperation.grant(Grant(5, key: messageKey("ticket"), reason: "outage"))
            let answer = try #require(try await harness.execute(user(1), grant).answer)
            #expect(answer.snapshot.limit == 105)
            #expect(!answer.isRepeated, "it is the first, whatever came of its first attempt")
            #expect(try await database.psql.number("select sum(messages) from headroom.grants") == 5)
        }
    }

    @Test("answers a repeated grant as a repetition when the reply is lost", arguments: Moment.allCases)
    func grantingAgain(moment: Moment) async throws {
        try await withStore { _, proxy, harness in
            let grant = EngineOperation.grant(Grant(5, key: messageKey("ticket")))
            _ = try await harness.execute(user(1), grant)
            proxy.arm(moment.cut("COMMIT"))
            let answer = try #require(try await harness.execute(user(1), grant).answer)
            #expect(answer.isRepeated && answer.snapshot.limit == 105)
        }
    }

    @Test("forgets once: a row from between the deletion and its repetition stays")
    func forgetting() async throws {
        try await withStore { database, proxy, harness in
            _ = try await harness.execute(user(1), .consume(7))
            proxy.arm(.reply("COMMIT"))
            proxy.refusesConnectionsAfterCut = true
            let slots = harness.submit([(user(1), .forget)])
            try await waitUntil("the deletion is committed and its reply dropped") {
                try await database.count(of: user(1), period: "trial") == nil && proxy.cuts == 1
            }
            try await database.psql.execute("select increment_and_check_usage('\(user(1))', 3)")
            proxy.refusesConnections = false
            #expect(try await harness.outcomes(of: slots) == [.done])
            #expect(try await database.count(of: user(1), period: "trial") == 10)
        }
    }

    @Test("resets once: messages counted between the reset and its repetition stay")
    func resetting() async throws {
        try await withStore { database, proxy, harness in
            _ = try await harness.execute(user(1), .consume(7))
            proxy.arm(.reply("COMMIT"))
            proxy.refusesConnectionsAfterCut = true
            let slots = harness.submit([(user(1), .resetUsage(nil))])
            try await waitUntil("the reset is committed and its reply dropped") {
                try await database.count(of: user(1), period: "trial") == 0 && proxy.cuts == 1
            }
            try await database.psql.execute("select increment_and_check_usage('\(user(1))', 3)")
            proxy.refusesConnections = false
            let outcome = try await harness.outcomes(of: slots)[0]
            #expect(outcome.answer?.status == .ok)
            #expect(outcome.answer?.snapshot.used == 3)
            #expect(try await database.count(of: user(1), period: "trial") == 3)
        }
    }

    @Test("answers a change as unknown if the database that is read afterwards may have lost it")
    func changeAndReceiptLost() async throws {
        try await withStore { database, proxy, harness in
            _ = try await harness.execute(user(1), .consume(7))
            proxy.arm(.request("name: read_batch"))
            proxy.refusesConnectionsAfterCut = true
            let slots = harness.submit([(user(1), .setPlan(PlanChange(user: user(1), plan: "paid")))])
            try await waitUntil("the change is committed and the read of its answer cut") { proxy.cuts == 1 }
            // As a standby that was promoted without the last commits.
            try await database.psql.execute("delete from headroom.lane_receipts")
            proxy.refusesConnections = false
            #expect(try await harness.outcomes(of: slots) == [.failure(.unknown)])
        }
    }

    @Test("counts a message once across the end of a month, in the first one")
    func monthEnd() async throws {
        try await withStore { database, proxy, harness in
            try await database.moveClock(to: at("2026-11-30T23:59:59Z"))
            _ = try await harness.execute(user(1), .setPlan(PlanChange(user: user(1), plan: "paid")))
            _ = try await harness.execute(user(1), .consume(4))
            proxy.arm(.reply("count_batch"))
            proxy.refusesConnectionsAfterCut = true
            let slots = harness.submit([(user(1), .consume(2))])
            try await waitUntil("the message is counted and the reply dropped") {
                try await database.count(of: user(1), period: "2026-11") == 6 && proxy.cuts == 1
            }
            try await database.moveClock(to: at("2026-12-01"))
            proxy.refusesConnections = false
            let answer = try await harness.outcomes(of: slots)[0].answer
            #expect(answer?.status == .allowed)
            #expect(answer?.snapshot.used == 6)
            #expect(answer?.snapshot.period.label == "2026-11")
            #expect(try await database.count(of: user(1), period: "2026-11") == 6)
            #expect(try await database.count(of: user(1), period: "2026-12") == nil)
            #expect(try await harness.execute(user(1), .consume(1)).answer?.snapshot.used == 1)
        }
    }
}
