import Postgres
import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("A grant, in SQL")
struct GrantTests {
    private func fresh() async throws -> Session {
        let database = try await TestDatabase.fresh(at: at("2026-11-10T12:00:00Z"))
        try await database.psql.execute(
            "insert into headroom.plans (plan, label, cycle, allowance) values ('team', 'Team', 'monthly', 5000)"
        )
        return database.psql
    }

    /// Used and limit of the next answer.
    private func numbers(_ psql: Session) async throws -> String? {
        try await psql.text(
            """
            select snapshot.used || ' of ' || coalesce(snapshot."limit"::text, 'unlimited')
            from headroom.read_usage_snapshot('\(ada)', 'trial') as snapshot
            """
        )
    }

    @Test("raises the limit of this period, and unblocks the user")
    func unblocks() async throws {
        let psql = try await fresh()
        try await psql.execute("select set_plan('\(ada)', 'paid'); select increment_and_check_usage('\(ada)', 800)")
        #expect(try await psql.text("select status from increment_and_check_usage('\(ada)')") == "BLOCKED")
        #expect(try await psql.number("select remaining from grant_messages('\(ada)', 50, 'outage')") == 50)
        #expect(try await psql.text("select status from increment_and_check_usage('\(ada)', 50)") == "ALLOWED")
        #expect(try await psql.text("select status from increment_and_check_usage('\(ada)')") == "BLOCKED")
        #expect(try await numbers(psql) == "850 of 850")
    }

    @Test("has no key that a purchase of messages could have")
    func reservedKey() async throws {
        let psql = try await fresh()
        try await psql.mapProducts()
        let key = "store:revenuecat:T"
        #expect(try await psql.sqlState(of: "select grant_messages('\(ada)', 5, 'x', '\(key)')") == "22023")
        try await EngineHarness.serving(.fresh(), lanes: 1) { _, harness in
            let refused = try await harness.execute(ada, .grant(Grant(5, key: messageKey(key)))).failure
            #expect(refused?.code == .badArgument && refused?.message.contains("store:") == true)
        }
        // The purchase itself.
        let granted: [String: Any & Sendable] = ["kind": "granted", "transaction": "T", "product": "pack"]
        #expect(try await psql.ingest(Event("e", "2026-11-05", by: ["\(ada)"], granted))["outcome"] == "applied")
        #expect(try await psql.rows("select key, messages from headroom.grants") == ["\(key)|50"])
    }

    @Test("without a key grants each time; with one, once")
    func keys() async throws {
        let psql = try await fresh()
        try await psql.execute("select set_plan('\(ada)', 'paid')")
        for _ in 0..<2 { try await psql.execute("select grant_messages('\(ada)', 10)") }
        #expect(try await numbers(psql) == "0 of 820")
        for _ in 0..<3 { try await psql.execute("select grant_messages('\(ada)', 10, 'once', 'ticket 1')") }
        #expect(try await numbers(psql) == "0 of 830")
        #expect(try await psql.sqlState(of: "select grant_messages('\(ada)', 11, 'once', 'ticket 1')") == "HR002")
        #expect(try await numbers(psql) == "0 of 830")
        #expect(try await psql.number("select count(*) from headroom.grants where user_id = '\(ada)'") == 3)
        #expect(try await psql.number("select count(*) from headroom.audit_log where action = 'grant'") == 3)
    }

    @Test("is kept by plan changes within its period, and ends with the period")
    func changesOfPlan() async throws {
        let psql = try await fresh()
        try await psql.execute("select set_plan('\(ada)', 'paid'); select increment_and_check_usage('\(ada)', 3)")
        try await psql.execute("select grant_messages('\(ada)', 100)")
        var seen: [String?] = [try await numbers(psql)]
        for plan in ["team", "pro", "paid", "team"] {
            try await psql.execute("select set_plan('\(ada)', '\(plan)'); select increment_and_check_usage('\(ada)')")
            seen.append(try await numbers(psql))
        }
        try await psql.execute("update headroom.plans set allowance = 6000 where plan = 'team'")
        seen.append(try await numbers(psql))
        try await psql.execute("update headroom.test_clock set at = '2026-12-01T00:00:00Z'")
        seen.append(try await numbers(psql))
        #expect(seen == ["3 of 900", "4 of 5100", "5 of unlimited", "6 of 900", "7 of 5100", "7 of 6100", "0 of 6000"])
    }

    @Test("waits for an unknown user, and starts no trial")
    func unknownUser() async throws {
        let psql = try await fresh()
        try await psql.execute("select grant_messages('\(ada)', 5)")
        #expect(try await psql.number("select count(*) from headroom.subscribers") == 0)
        // Blocked, so this starts none either.
        #expect(try await psql.text("select status from increment_and_check_usage('\(ada)', 106)") == "BLOCKED")
        #expect(try await psql.number("select count(trial_started_at) from headroom.subscribers") == 0)
        try await psql.execute("update headroom.test_clock set at = '2026-11-20T12:00:00Z'")
        #expect(try await psql.text("select status from increment_and_check_usage('\(ada)', 105)") == "ALLOWED")
        #expect(
            try await psql.text("select trial_started_at at time zone 'UTC' from headroom.subscribers")
                == "2026-11-20 12:00:00"
        )
        try await psql.execute("update headroom.test_clock set at = '2026-11-23T12:00:00Z'")
        #expect(try await psql.text("select reason from increment_and_check_usage('\(ada)')") == "trial_ended")
    }

    @Test("changes nothing if it is invalid")
    func refusals() async throws {
        let psql = try await fresh()
        try await psql.execute(
            """
            select set_plan('\(ada)', 'paid'); select increment_and_check_usage('\(ada)');
            update message_usage set "limit" = 2147483000 where user_id = '\(ada)';
            """
        )
        let calls = [
            ("'\(ada)', 0", "22023"), ("'\(ada)', -5", "22023"), ("'\(ada)', 1000001", "22023"), ("null, 5", "22004"),
            ("'\(ada)', null", "22004"), ("'\(ada)', 5, p_key => ''", "22023"),
            ("'\(ada)', 5, p_key => repeat('k', 129)", "22023"), ("'\(ada)', 5, p_key => E'a\\nb'", "22023"),
            ("'\(ada)', 5, E'two\\nlines'", "22023"), ("'\(ada)', 5, repeat('r', 1025)", "22023"),
            ("'\(ada)', 648, p_key => 'k'", "22003"),
        ]
        for (arguments, state) in calls {
            #expect(try await psql.sqlState(of: "select grant_messages(\(arguments))") == state, "\(arguments)")
        }
        #expect(try await numbers(psql) == "1 of 2147483000")
        #expect(try await psql.number("select count(*) from headroom.grants") == 0)
        #expect(try await psql.number("select count(*) from headroom.audit_log where action = 'grant'") == 0)
        try await psql.execute("select grant_messages('\(ada)', 647, p_key => 'k')")
        #expect(try await numbers(psql) == "1 of 2147483647")
    }
}
