import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("The audit log")
struct AuditTests {
    private func fresh() async throws -> Session { try await TestDatabase.fresh(at: at("2026-11-10T12:00:00Z")).psql }

    /// Action, period, before, after and reason of each entry.
    private func log(_ psql: Session, of user: UserID) async throws -> [String] {
        try await psql.rows(
            """
            select action, coalesce(billing_period, '-'), coalesce(before::text, '-'), coalesce(after::text, '-'),
                coalesce(reason, '-')
            from headroom.audit_log where user_id = '\(user)' order by id
            """
        )
    }

    @Test("has the values before and after each change by a function, and the reason")
    func functions() async throws {
        let psql = try await fresh()
        try await psql.execute(
            """
            select set_plan('\(ada)', 'paid', p_anchor => 5);
            select set_plan('\(ada)', 'paid');
            select increment_and_check_usage('\(ada)', 7);
            select grant_messages('\(ada)', 50, 'outage', 'k');
            select grant_messages('\(ada)', 50, 'outage', 'k');
            set headroom.reason = 'ticket 4711';
            select reset_usage('\(ada)');
            set headroom.reason = '';
            select increment_and_check_usage('\(ada)', 3);
            select reset_billing_period('2026-11');
            select set_plan('\(ada)', 'pro', 'cancelled', p_expires => '2026-11-20T00:00:00Z');
            """
        )
        let usage = { (count: Int, limit: Int) in
            "{\"count\": \(count), \"limit\": \(limit), \"period\": \"2026-11\"}"
        }
        let paid = "{\"plan\": \"paid\", \"state\": \"active\", \"anchor\": 5}"
        let pro =
            "{\"plan\": \"pro\", \"state\": \"cancelled\", \"anchor\": 5, \"expires\": \"2026-11-20T00:00:00Z\", "
            + "\"previous_plan\": \"paid\"}"
        #expect(
            try await log(psql, of: ada) == [
                "plan|-|-|\(paid)|-",
                "grant|2026-11|\(usage(7, 800))|\(usage(7, 850))|outage",
                "reset|2026-11|\(usage(7, 850))|\(usage(0, 850))|ticket 4711",
                "reset_period|2026-11|\(usage(3, 850))|\(usage(0, 850))|-",
                "plan|-|\(paid)|\(pro)|-",
            ]
        )
    }

    @Test("has a row for each user of a reset period, and none for a change that failed")
    func everybody() async throws {
        let psql = try await fresh()
        for number in 1...5 {
            try await psql.execute(
                "select set_plan('\(user(UInt64(number)))', 'paid');"
                    + "select increment_and_check_usage('\(user(UInt64(number)))', \(number))"
            )
        }
        let before = try await psql.number("select count(*) from headroom.audit_log")
        for call in [
            "reset_billing_period('2026-13')", "reset_usage('\(ada)', '2020-01')", "set_plan('\(ada)', 'nosuch')",
            "set_plan('\(ada)', 'paid', 'trial')", "grant_messages('\(ada)', 0)",
        ] {
            #expect(try await psql.sqlState(of: "select \(call)") != nil, "\(call)")
        }
        #expect(try await psql.number("select count(*) from headroom.audit_log") == before)
        #expect(try await psql.number("select reset_billing_period('2026-11')") == 5)
        #expect(
            try await psql.rows(
                """
                select before ->> 'count', after ->> 'count' from headroom.audit_log where action = 'reset_period'
                order by user_id
                """
            ) == ["1|0", "2|0", "3|0", "4|0", "5|0"]
        )
    }

    @Test("has the actor: the named one, else the role that was set, else the login")
    func actors() async throws {
        let psql = try await fresh()
        try await psql.execute("select reset_usage('\(ada)')")
        let login = try #require(try await psql.text("select session_user"))
        try await psql.execute("set headroom.actor = 'ann'; select reset_usage('\(ada)')")
        try await psql.execute(
            """
            reset headroom.actor;
            begin;
            grant usage on schema headroom to pg_monitor;
            grant execute on function headroom.actor() to pg_monitor;
            set local role pg_monitor;
            """
        )
        #expect(try await psql.text("select headroom.actor()") == "pg_monitor")
        try await psql.execute("rollback")
        #expect(try await psql.rows("select actor from headroom.audit_log order by id") == [login, "ann"])
        #expect(
            try await psql.text("select count(*) from headroom.audit_log where at = '2026-11-10T12:00:00Z'") == "2",
            "by the database's clock"
        )
    }

    @Test("has a manual change once, and in the trail of both users when a row is moved")
    func byHand() async throws {
        let psql = try await fresh()
        try await psql.execute(
            """
            select set_plan('\(ada)', 'paid');
            select increment_and_check_usage('\(ada)', 7);
            delete from headroom.audit_log;
            set headroom.reason = 'by hand';
            update message_usage set message_count = 0, "limit" = null where user_id = '\(ada)';
            update message_usage set user_id = '\(user(2))' where user_id = '\(ada)';
            delete from message_usage where user_id = '\(user(2))';
            update headroom.subscriptions set expires_at = '2026-12-01T00:00:00Z' where user_id = '\(ada)';
            delete from headroom.subscribers where user_id = '\(ada)';
            """
        )
        func line(_ action: String, _ before: String, _ after: String, _ period: String = "2026-11") -> String {
            "\(action)|\(period)|\(before)|\(after)|by hand"
        }
        let counted = "{\"count\": 7, \"limit\": 800, \"period\": \"2026-11\"}"
        let cleared = "{\"count\": 0, \"limit\": null, \"period\": \"2026-11\"}"
        let trail = try await log(psql, of: ada)
        #expect(trail.count == 5)
        #expect(trail.first == line("update", counted, cleared))
        #expect(trail.dropFirst().first == line("delete", cleared, "-"))
        #expect(trail.dropFirst(2).first?.contains("\"expires_at\": null") == true)
        #expect(trail.dropFirst(2).first?.contains("\"expires_at\": \"2026-12-01T00:00:00") == true)
        #expect(trail.dropFirst(3).filter { $0.hasPrefix("delete|-|") }.count == 2, "subscriber and subscription")
        #expect(try await log(psql, of: user(2)) == [line("insert", "-", cleared), line("delete", cleared, "-")])
        let named = "select count(*) from headroom.audit_log where concat(before, after) like '%-4a7e-%'"
        #expect(try await psql.number(named) == 0, "no id is in a column that forgetting does not clear")
    }

    @Test("is readable as the audit trail of a user")
    func trail() async throws {
        let psql = try await fresh()
        try await psql.execute(
            """
            select set_plan('\(ada)', 'pro');
            select increment_and_check_usage('\(ada)', 7);
            set headroom.actor = 'ann'; set headroom.reason = 'asked for it';
            select reset_usage('\(ada)');
            select set_plan('\(ada)', 'paid');
            """
        )
        #expect(
            try await psql.rows(
                "select action, detail, actor, reason from audit_trail where user_id = '\(ada)' and actor = 'ann' order by id"
            ) == [
                "reset|count 7 → 0, limit unlimited, period 2026-11|ann|asked for it",
                "plan|anchor 1, plan pro → paid, previous_plan pro, state active|ann|asked for it",
            ]
        )
    }

    @Test("has no start of a plan whose periods follow one another", arguments: ["monthly", "weekly", "daily"])
    func periodic(cycle: String) async throws {
        let psql = try await fresh()
        try await psql.execute(
            "update headroom.plans set cycle = '\(cycle)' where plan = 'pro'; select set_plan('\(ada)', 'pro')"
        )
        let record = "plan|-|-|{\"plan\": \"pro\", \"state\": \"active\", \"anchor\": 1}|-"
        #expect(try await log(psql, of: ada) == [record])
    }

    @Test("has no rows for messages")
    func messages() async throws {
        let psql = try await fresh()
        try await psql.execute(
            """
            select increment_and_check_usage('\(ada)', 7);
            select increment_and_check_usage('\(ada)', 1000);
            select increment_and_check_usage('\(ada)', '2026-11', 5);
            """
        )
        #expect(try await psql.number("select count(*) from headroom.audit_log") == 0)
    }
}
