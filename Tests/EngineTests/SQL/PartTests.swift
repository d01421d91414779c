import Postgres
import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("Models and members in SQL")
struct SQLPartTests {
    private let member = "\(user(7))"

    /// Ada's team has 100 messages a month, the large models 3 an hour at the price of five, and each member 20.
    private func withTeam() async throws -> TestDatabase {
        let database = try await TestDatabase.fresh(at: at("2026-11-10T12:00:00Z"))
        try await database.psql.execute(
            """
            insert into headroom.plans (plan, label, cycle, allowance) values ('team', 'Team', 'monthly', 100);
            insert into headroom.plan_limits (
                plan, kind, name, label, allowance, window_messages, window_seconds, weight, fallback
            ) values
                ('team', 'model', 'large*', 'Large', null, 3, 3600, 5, 'small'),
                ('team', 'model', 'large-free', null, null, null, null, 1, null),
                ('team', 'model', 'small', 'Small', 4, null, null, 1, null),
                ('team', 'member', '*', null, 20, null, null, 1, null);
            select set_plan('\(ada)', 'team');
            """
        )
        return database
    }

    private let shown =
        "status, used, coalesce(model_used::text, '-'), coalesce(member_used::text, '-'), coalesce(reason, '-'), "
        + "coalesce(retry_after::text, '-'), coalesce(fallback, '-')"

    private func count(_ arguments: String, _ database: TestDatabase) async throws -> String {
        try await database.psql.rows("select \(shown) from increment_and_check_usage('\(ada)', \(arguments))").joined()
    }

    private func parts(_ database: TestDatabase) async throws -> [String] {
        try await database.psql.rows(
            """
            select billing_period, kind, case kind when 'model' then name else 'member' end, used,
                coalesce(window_used::text, '-')
            from headroom.usage_parts where user_id = '\(ada)' order by 1, 2, 3
            """
        )
    }

    @Test("takes a message of all allowances or of none")
    func counting() async throws {
        let database = try await withTeam()
        #expect(try await count("2, 'large-2', '\(member)'", database) == "ALLOWED|10|2|10|-|-|-")
        // A member has 10 of 20 left, so two more of five each fit, and a large model has one of three.
        #expect(
            try await count("2, 'large-2', '\(member)'", database)
                == "BLOCKED|10|2|10|model_exceeds_remaining|3600|small"
        )
        #expect(try await count("1, 'large-3', '\(member)'", database) == "ALLOWED|15|3|15|-|-|-")
        #expect(
            try await count("1, 'large-2', '\(member)'", database) == "BLOCKED|15|3|15|model_limit_reached|3600|small"
        )
        // The exact name has a limit of its own, and one without a limit is only named.
        #expect(try await count("4, 'large-free', '\(member)'", database) == "ALLOWED|19|4|19|-|-|-")
        #expect(try await count("1, 'unknown', '\(member)'", database) == "ALLOWED|20|-|20|-|-|-")
        #expect(
            try await count("1, 'small', '\(member)'", database)
                == "BLOCKED|20|0|20|member_limit_reached|1771200|-"
        )
        #expect(try await count("4, p_model => 'small'", database) == "ALLOWED|24|4|-|-|-|-")
        #expect(
            try await count("1, 'large-2'", database) == "BLOCKED|24|3|-|model_limit_reached|3600|-",
            "the other model has no room either"
        )
        try await database.moveClock(to: at("2026-11-10T13:00:00Z"))
        #expect(try await count("1, 'large-2'", database) == "ALLOWED|29|1|-|-|-|-")
        #expect(
            try await parts(database) == [
                "2026-11|member|member|20|-", "2026-11|model|large*|4|1", "2026-11|model|large-free|4|-",
                "2026-11|model|small|4|-",
            ]
        )
    }

    @Test("refuses what no model's name can be")
    func invalidModels() async throws {
        let database = try await withTeam()
        for name in ["", "large*", "two words", String(repeating: "x", count: 65), "line\n"] {
            await #expect(throws: (any Error).self, "\(name)") {
                try await database.psql.execute("select increment_and_check_usage('\(ada)', p_model => '\(name)')")
            }
        }
        #expect(try await database.psql.number("select count(*) from headroom.usage_parts") == 0)
    }

    @Test("still finds the form with a period if the driver sends texts without a type")
    func untypedCalls() async throws {
        let database = try await withTeam()
        for limit in ["null", "'100'", "100"] {
            let allowed = try await database.psql.text(
                "select increment_and_check_usage('\(ada)', '2026-11', \(limit)) ->> 'allowed'"
            )
            #expect(allowed == "true", "\(limit)")
        }
    }

    @Test("is not taken by the form with a period, which could not say whose limit it was")
    func periodForm() async throws {
        let database = try await withTeam()
        for arguments in [
            "p_user_id => '\(ada)', p_billing_period => '2026-11', p_limit => 100, p_model => 'large'",
            "'\(ada)', '2026-11', 100, p_member => '\(member)'", "'\(ada)', '2026-11', 100, 'large', '\(member)'",
        ] {
            let error = await #expect(throws: PostgresError.self, "\(arguments)") {
                try await database.psql.execute("select increment_and_check_usage(\(arguments))")
            }
            #expect(error?.sqlState == .undefinedFunction)
        }
        #expect(try await database.psql.number("select count(*) from message_usage where message_count > 0") == 0)
    }

    @Test("is exact when eight sessions count for one account at once")
    func concurrency() async throws {
        let database = try await withTeam()
        let member = member
        let sessions = try await withThrowingTaskGroup(of: Session.self) { group in
            for _ in 0..<8 { group.addTask { try await Session.open(database.conninfo) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (number, session) in sessions.enumerated() {
                let model = number.isMultiple(of: 2) ? "small" : "large-2"
                group.addTask {
                    for _ in 0..<5 {
                        try await session.execute(
                            "select increment_and_check_usage('\(ada)', p_model => '\(model)', p_member => '\(member)')"
                        )
                    }
                }
            }
            try await group.waitForAll()
        }
        let counted = try await parts(database)
        // Three large ones, which take five each, and four small ones.
        #expect(counted == ["2026-11|member|member|19|-", "2026-11|model|large*|3|3", "2026-11|model|small|4|-"])
        #expect(try await database.count(of: ada, period: "2026-11") == 19)
    }

    @Test("resets a model and a member by itself, or with the period")
    func resets() async throws {
        let database = try await withTeam()
        let psql = database.psql
        func count() async throws {
            try await psql.execute("select increment_and_check_usage('\(ada)', 2, 'large-2', '\(member)')")
        }
        try await count()
        let answer = "select used, model, model_used, coalesce(model_resets, '-') from reset_usage"
        #expect(try await psql.rows("\(answer)('\(ada)', p_model => 'large-9')") == ["10|large-9|0|-"])
        #expect(try await parts(database) == ["2026-11|member|member|10|-", "2026-11|model|large*|0|-"])
        try await count()
        #expect(try await psql.rows("\(answer)('\(ada)', 'window', 'large*')") == ["20|large*|0|-"])
        #expect(try await parts(database) == ["2026-11|member|member|20|-", "2026-11|model|large*|2|-"])
        #expect(
            try await psql.rows("select used, member_used from reset_usage('\(ada)', p_member => '\(member)')") == [
                "20|0"
            ]
        )
        try await count()
        try await psql.execute("select reset_usage('\(ada)')")
        #expect(try await parts(database) == ["2026-11|member|member|0|-", "2026-11|model|large*|0|-"])
        try await count()
        try await psql.execute("select reset_billing_period('2026-11')")
        #expect(try await parts(database) == ["2026-11|member|member|0|-", "2026-11|model|large*|0|-"])
        let trail = try await psql.rows("select detail from audit_trail where action = 'reset'")
        #expect(
            Set(trail) == [
                "kind model, name large*, period 2026-11, used 2 → 0, window_used 2 → 0",
                "kind model, name large*, period 2026-11, window_used 2 → 0",
                // The log of an account names no member.
                "kind member, period 2026-11, used 20 → 0", "count 30 → 0, limit 100, period 2026-11",
            ]
        )
        for (call, error) in [
            ("p_model => 'unknown'", "no limit for the model 'unknown'"),
            ("'2020-01', 'small'", "no limit for the model 'small' in period '2020-01'"),
        ] {
            let thrown = await #expect(throws: (any Error).self) {
                try await psql.execute("select reset_usage('\(ada)', \(call))")
            }
            #expect(thrown.map { "\($0)" }?.contains(error) == true, "\(call)")
        }
    }

    @Test("leaves what is held, and gives nothing of a count from before a reset back")
    func holdsAcrossResets() async throws {
        let database = try await withTeam()
        let psql = database.psql
        try await psql.execute(
            """
            select increment_and_check_usage('\(ada)', 1, 'large-2');
            insert into headroom.message_keys (
                bucket, user_id, created_at, generation, messages, used, held, expires_at, verb, status, billing_period,
                key, parts
            )
            select headroom.bucket_of(user_id), user_id, headroom.now(), generation, 5, 5, 5,
                headroom.now() + interval '10 minutes', 'r', 'h', billing_period, 'k', jsonb_build_object(
                    'weight', 5, 'model', jsonb_build_object(
                        'name', 'large-2', 'counter', 'large*', 'generation', generation, 'window',
                        (extract(epoch from window_opened_at) * 1000000)::bigint
                    )
                )
            from headroom.usage_parts;
            update headroom.usage_parts set held = 1, window_held = 1, holds_end_at = headroom.now() + interval '10 min';
            select reset_usage('\(ada)', p_model => 'large-2');
            """
        )
        #expect(try await psql.rows("select used, held from headroom.usage_by_model") == ["0|1"])
        // A window that opens at the same instant is another one.
        #expect(try await psql.text("select parts #>> '{model,window}' from headroom.message_keys") == nil)
        try await database.moveClock(to: at("2026-11-10T12:10:00Z"))
        #expect(try await psql.rows("select used, held from headroom.usage_by_model") == ["0|0"])
    }

    @Test("shows the messages by model and by member, and all allowances of a user")
    func views() async throws {
        let database = try await withTeam()
        let psql = database.psql
        try await psql.execute("select increment_and_check_usage('\(ada)', 3, 'large-2', '\(member)')")
        let models = """
            select user_id, period, name, label, used, held, coalesce("limit"::text, '-'), tier, window_used,
                window_limit, to_char(window_resets at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS')
            from headroom.usage_by_model
            """
        #expect(
            try await psql.rows(models) == ["\(ada)|2026-11|large*|Large|3|0|-|blocked|3|3|2026-11-10 13:00:00"]
        )
        let members = #"select name, used, "limit", tier from headroom.usage_by_member"#
        #expect(try await psql.rows("\(members) where user_id = '\(ada)'") == ["\(member)|15|20|silent"])
        try await psql.execute("update headroom.plan_limits set allowance = 16 where kind = 'member'")
        #expect(try await psql.rows("\(members) where name = '\(member)'") == ["\(member)|15|16|gentle"])
        let allowances = """
            select kind, name, coalesce(label, '-'), used, coalesce("limit"::text, '-'), tier,
                coalesce(window_limit::text, '-'), coalesce(window_used::text, '-'), weight, coalesce(fallback, '-')
            from headroom.read_allowances(headroom.bucket_of('\(ada)'), '\(ada)',
            """
        let present = [
            "model|large*|Large|3|-|blocked|3|3|5|small", "model|large-free|large-free|0|-|silent|-|-|1|-",
            "model|small|Small|0|4|silent|-|-|1|-", "member|\(member)|-|15|16|gentle|-|-|1|-",
        ]
        #expect(try await psql.rows("\(allowances) null)") == present)
        #expect(try await psql.rows("\(allowances) '2026-11')") == present)
        // A period that is over keeps the limit with which it was counted.
        try await database.moveClock(to: at("2026-12-02T12:00:00Z"))
        try await psql.execute("update headroom.plan_limits set allowance = 3 where kind = 'member'")
        #expect(try await psql.rows(members) == ["\(member)|15|20|silent"])
        #expect(
            try await psql.rows("\(allowances) '2026-11')") == [
                "model|large*|Large|3|-|silent|-|-|5|small", "member|\(member)|-|15|20|silent|-|-|1|-",
            ]
        )
    }

    @Test("corrects the counts after the clock was ahead")
    func clockJump() async throws {
        let database = try await withTeam()
        #expect(try await count("1, 'large-2', '\(member)'", database) == "ALLOWED|5|1|5|-|-|-")
        try await database.moveClock(to: at("2027-02-03T12:00:00Z"))
        #expect(try await count("1, 'large-2', '\(member)'", database) == "ALLOWED|5|1|5|-|-|-")
        try await database.moveClock(to: at("2026-11-10T12:30:00Z"))
        #expect(try await count("1, 'large-2', '\(member)'", database) == "ALLOWED|15|3|15|-|-|-")
        #expect(try await parts(database) == ["2026-11|member|member|15|-", "2026-11|model|large*|3|3"])
        #expect(
            try await count("1, 'large-2', '\(member)'", database) == "BLOCKED|15|3|15|model_limit_reached|1800|small"
        )
    }
}
