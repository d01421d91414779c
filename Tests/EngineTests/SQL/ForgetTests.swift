import Postgres
import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("A forgotten user, in SQL")
struct ForgetTests {
    private let bob = user(2)

    private func fresh() async throws -> Session { try await TestDatabase.fresh(at: at("2026-11-10T12:00:00Z")).psql }

    private func moveClock(_ psql: Session, _ instant: String) async throws {
        try await psql.execute("update headroom.test_clock set at = '\(instant)'")
    }

    /// What the next message would get: status, plan, state, used, limit, and when a trial ends.
    private func check(_ psql: Session, unknownUsersPolicy: String = "trial") async throws -> String {
        try await psql.rows(
            """
            select
                coalesce(snapshot.denial_reason, case when snapshot.used >= snapshot."limit" then 'used up' else 'fine' end),
                snapshot.plan, snapshot.state, snapshot.used, snapshot."limit",
                to_char(snapshot.expires_at at time zone 'UTC', 'MM-DD HH24:MI')
            from headroom.read_usage_snapshot('\(ada)', '\(unknownUsersPolicy)') as snapshot
            """
        ).joined()
    }

    @Test("leaves no trace of the id in any column of any table")
    func nothingStays() async throws {
        let psql = try await fresh()
        for person in [ada, bob] {
            try await psql.execute(
                """
                select increment_and_check_usage('\(person)', 7);
                select set_plan('\(person)', 'paid', p_anchor => 5);
                select increment_and_check_usage('\(person)', 7);
                insert into headroom.message_keys (
                    user_id, key, created_at, generation, messages, used, held, expires_at, billing_period, verb, status
                )
                select user_id, 'b', now(), generation, 2, message_count, 2, now(), billing_period, 'r', 'h'
                from message_usage where user_id = '\(person)' and billing_period <> 'trial';
                select grant_messages('\(person)', 5, 'sorry', 'ticket');
                select reset_usage('\(person)');
                select reset_billing_period('trial');
                insert into headroom.audit_log (at, user_id, action, actor) values (now(), '\(person)', 'update', 'ann');
                insert into headroom.notifications
                    (user_id, billing_period, plan, tier, body, created_at, next_attempt_at)
                values ('\(person)', 'trial', 'trial', 'gentle', '{"user":"\(person)"}', now(), now());
                insert into headroom.usage_parts (user_id, generation, updated_at, billing_period, kind, name)
                values ('\(person)', 1, now(), 'trial', 'model', 'm'),
                    ('\(user(9))', 1, now(), 'trial', 'member', '\(person)');
                update headroom.usage_parts set used = 1 where name = '\(person)';
                insert into headroom.message_keys (
                    user_id, key, created_at, generation, messages, used, held, billing_period, verb, status, parts
                ) values ('\(user(9))', '\(person == ada)', now(), 1, 1, 1, 0, 'trial', 'c', 'c', '{
                    "weight": 1, "member": {"name": "\(person)", "counter": "\(person)"}
                }');
                insert into headroom.usage_transfers (source, event_id, giver, receiver, made_at, raised, raised_window)
                values ('x', '\(person == ada)', '\(user(8))', '\(user(9))', now(), '{
                    "trial": {"messages": 1, "generation": 1, "parts": [
                        {"kind": "member", "name": "\(person)", "messages": 1, "generation": 1}
                    ]}
                }', '{"parts": [{"kind": "member", "name": "\(person)", "messages": 1}]}');
                """
            )
        }
        let before = try await psql.number("select count(*) from message_usage where user_id = '\(bob)'")
        #expect(try await columns(of: bob, psql).count >= 6)
        #expect(try await columns(of: ada, psql) == columns(of: bob, psql))
        let rows = try #require(try await psql.number("select forget_user('\(ada)')"))
        #expect(rows > 10)
        #expect(try await columns(of: ada, psql) == [])
        #expect(try await columns(of: bob, psql).count >= 6, "other users are not forgotten")
        #expect(try await psql.number("select count(*) from message_usage where user_id = '\(bob)'") == before)
        #expect(
            try await psql.rows("select action, after from headroom.audit_log where user_id is null")
                == ["forget|{\"rows\": \(rows)}"]
        )
        #expect(try await psql.number("select forget_user('\(ada)')") == 0)
        #expect(try await psql.number("select forget_user('\(user(7))')") == 0)
        #expect(try await psql.sqlState(of: "select forget_user(null)") == "22004")
        #expect(try await psql.number("select count(*) from headroom.spent_trials") == 1)
    }

    /// The tables and columns that contain the id, in any form.
    private func columns(of user: UserID, _ psql: Session) async throws -> [String] {
        try await psql.execute(
            """
            create or replace function headroom.test_places(p_text text) returns setof text language plpgsql as $$
            declare
                v_column record;
                v_found boolean;
            begin
                for v_column in
                    select columns.table_schema, columns.table_name, columns.column_name
                    from information_schema.columns
                    join information_schema.tables using (table_schema, table_name)
                    where table_schema in ('headroom', 'public') and table_type = 'BASE TABLE'
                    order by 1, 2, 3
                loop
                    execute format(
                        'select exists (select from %I.%I where %I::text ilike %L or replace(%I::text, %L, %L) ilike %L)',
                        v_column.table_schema, v_column.table_name, v_column.column_name, '%' || p_text || '%',
                        v_column.column_name, '-', '', '%' || replace(p_text, '-', '') || '%'
                    ) into v_found;
                    if v_found then
                        return next v_column.table_name || '.' || v_column.column_name;
                    end if;
                end loop;
            end
            $$
            """
        )
        return try await psql.rows("select * from headroom.test_places('\(user)')")
    }

    @Test("continues a running trial")
    func runningTrial() async throws {
        let psql = try await fresh()
        try await psql.execute("select increment_and_check_usage('\(ada)', 30); select forget_user('\(ada)')")
        try await moveClock(psql, "2026-11-11T12:00:00Z")
        #expect(try await check(psql) == "fine|trial|trial|30|100|11-13 12:00")
        let answer = try await psql.rows("select status, used, day from increment_and_check_usage('\(ada)', 5)")
        #expect(answer == ["ALLOWED|35|2"])
        #expect(
            try await psql.number("select count(*) from headroom.spent_trials") == 0,
            "it is stored in the rows again"
        )
        for _ in 0..<3 { try await psql.execute("select forget_user('\(ada)')") }
        #expect(try await check(psql) == "fine|trial|trial|35|100|11-13 12:00")
        try await moveClock(psql, "2026-11-13T12:00:00Z")
        #expect(try await psql.text("select reason from increment_and_check_usage('\(ada)')") == "trial_ended")
    }

    @Test("keeps a used-up trial used up, in every function")
    func usedUpTrial() async throws {
        let psql = try await fresh()
        let asking = [
            "select increment_and_check_usage('\(ada)', 1)",
            "select increment_and_check_usage('\(ada)', 'trial', 100)",
            "select set_plan('\(ada)', 'trial')",
            "select set_plan('\(ada)', 'paid'); select set_plan('\(ada)', 'trial')",
            "select set_plan('\(ada)', 'trial', p_started => '2026-11-10T12:00:00Z')",
        ]
        try await psql.execute("select increment_and_check_usage('\(ada)', 100)")
        for ask in asking {
            try await psql.execute("select forget_user('\(ada)')")
            #expect(try await check(psql) == "used up|trial|trial|100|100|11-13 12:00")
            try await psql.execute(ask)
            #expect(try await check(psql) == "used up|trial|trial|100|100|11-13 12:00", "\(ask)")
        }
        let allowed = "select increment_and_check_usage('\(ada)', 'trial', 100) ->> 'allowed'"
        #expect(try await psql.text(allowed) == "false")
        // An operator can still open it.
        try await psql.execute("select forget_user('\(ada)'); select grant_messages('\(ada)', 5)")
        #expect(try await check(psql) == "fine|trial|trial|100|105|11-13 12:00")
        try await psql.execute("select forget_user('\(ada)'); select reset_usage('\(ada)')")
        #expect(try await check(psql) == "fine|trial|trial|0|100|11-13 12:00")
    }

    @Test("keeps a trial ended that ended by time or by an operator")
    func endedTrial() async throws {
        let psql = try await fresh()
        try await psql.execute("select increment_and_check_usage('\(ada)', 1)")
        try await moveClock(psql, "2026-11-20T12:00:00Z")
        try await psql.execute("select forget_user('\(ada)')")
        #expect(try await check(psql) == "trial_ended|trial|trial|1|100|11-13 12:00")
        for state in ["expired", "revoked"] {
            let psql = try await fresh()
            try await psql.execute("select increment_and_check_usage('\(ada)', 1)")
            try await moveClock(psql, "2026-11-11T12:00:00Z")
            try await psql.execute("select set_plan('\(ada)', 'trial', '\(state)'); select forget_user('\(ada)')")
            #expect(try await check(psql) == "trial_ended|trial|trial|1|100|11-11 12:00", "\(state)")
            try await psql.execute("select grant_messages('\(ada)', 5); select forget_user('\(ada)')")
            #expect(try await check(psql) == "trial_ended|trial|trial|1|100|11-11 12:00", "\(state), again")
            try await psql.execute("select set_plan('\(ada)', 'trial')")
            #expect(try await check(psql) == "fine|trial|trial|1|100|11-13 12:00", "an operator may open it")
        }
    }

    @Test("continues a trial that was started and not used, or is longer than the plan's")
    func unusedTrial() async throws {
        let psql = try await fresh()
        try await psql.execute("select set_plan('\(ada)', 'trial'); select forget_user('\(ada)')")
        try await moveClock(psql, "2026-11-12T12:00:00Z")
        #expect(try await check(psql) == "fine|trial|trial|0|100|11-13 12:00")
        try await psql.execute(
            "select set_plan('\(ada)', 'trial', p_expires => '2026-11-25T00:00:00Z'); select forget_user('\(ada)')"
        )
        try await moveClock(psql, "2026-11-20T12:00:00Z")
        #expect(try await check(psql) == "fine|trial|trial|0|100|11-25 00:00")
        #expect(try await psql.text("select status from increment_and_check_usage('\(ada)')") == "ALLOWED")
        #expect(try await check(psql) == "fine|trial|trial|1|100|11-25 00:00")
    }

    @Test("gets a trial if there was none before; an earlier trial stays spent")
    func paidUser() async throws {
        let psql = try await fresh()
        try await psql.execute("select set_plan('\(ada)', 'paid'); select increment_and_check_usage('\(ada)', 700)")
        try await psql.execute("select forget_user('\(ada)')")
        #expect(try await check(psql) == "fine|trial|trial|0|100|11-13 12:00")
        try await psql.execute("select increment_and_check_usage('\(ada)', 60); select set_plan('\(ada)', 'paid')")
        try await psql.execute("select increment_and_check_usage('\(ada)', 700); select forget_user('\(ada)')")
        #expect(try await check(psql) == "fine|trial|trial|60|100|11-13 12:00")
        try await psql.execute("select set_plan('\(ada)', 'paid')")
        #expect(try await check(psql) == "fine|paid|active|0|800")
        #expect(try await check(psql, unknownUsersPolicy: "deny") == "fine|paid|active|0|800")
    }

    @Test("is denied or on the free plan if unknown users are")
    func otherSettings() async throws {
        let psql = try await fresh()
        try await psql.execute("select increment_and_check_usage('\(ada)', 30); select forget_user('\(ada)')")
        #expect(try await check(psql, unknownUsersPolicy: "deny").hasPrefix("no_subscription|free|free|0|0"))
        #expect(try await check(psql, unknownUsersPolicy: "free").hasPrefix("used up|free|free|0|0"))
    }

    @Test("keeps a used lifetime allowance used, in every function")
    func usedUpLifetimeAllowance() async throws {
        let psql = try await fresh()
        try await psql.execute(
            """
            set headroom.unknown_users = 'free';
            update headroom.plans set allowance = 5 where plan = 'free';
            insert into headroom.plans (plan, label, cycle, allowance) values ('life', 'Life', 'lifetime', 7);
            select increment_and_check_usage('\(ada)', 5);
            """
        )
        for call in ["increment_and_check_usage('\(ada)')", "set_plan('\(ada)', 'free')"] {
            try await psql.execute("select forget_user('\(ada)')")
            #expect(try await check(psql, unknownUsersPolicy: "free") == "used up|free|free|5|5")
            #expect(try await psql.number("select count(*) from current_usage") == 0)
            try await psql.execute("select \(call)")
            #expect(try await check(psql, unknownUsersPolicy: "free") == "used up|free|free|5|5", "\(call)")
            #expect(try await psql.text("select status from increment_and_check_usage('\(ada)')") == "BLOCKED")
        }
        // An operator can still open it, also where unknown users are denied, who otherwise begin at 0.
        for policy in ["free", "deny"] {
            try await psql.execute("select forget_user('\(ada)'); set headroom.unknown_users = '\(policy)'")
            try await psql.execute("select grant_messages('\(ada)', 5)")
            try await psql.execute("set headroom.unknown_users = 'free'")
            #expect(try await check(psql, unknownUsersPolicy: "free") == "fine|free|free|5|10", "\(policy)")
        }

        try await psql.execute(
            """
            select set_plan('\(ada)', 'life'); select increment_and_check_usage('\(ada)', 7);
            select forget_user('\(ada)'); select set_plan('\(ada)', 'life');
            """
        )
        #expect(try await check(psql) == "used up|life|free|7|7")
    }

    @Test("cannot be found in the table without the key of its hash")
    func keyedHash() async throws {
        let psql = try await fresh()
        let digest = "select headroom.spent_trial_digest('\(ada)')"
        let one = try await psql.text(digest)
        #expect(one?.count == 2 + 64)
        #expect(try await psql.text("select sha256(uuid_send('\(ada)'))") != one)
        #expect(try await TestDatabase.migrated().psql.text(digest) != one, "each migration creates its own secret")
        // Inner and outer key come from one secret: each byte differs by 0x36 xor 0x5c.
        #expect(
            try await psql.number(
                """
                select count(*) from headroom.secrets, generate_series(0, 63) as place
                where get_byte(inner_key, place) # get_byte(outer_key, place) = 106
                """
            ) == 64
        )
        // HMAC-SHA256 of the id, with the key 0, 1, … 63.
        try await psql.execute(
            """
            update headroom.secrets
            set inner_key = (
                    select string_agg(decode(lpad(to_hex(place # 54), 2, '0'), 'hex'), '' order by place)
                    from generate_series(0, 63) as place
                ),
                outer_key = (
                    select string_agg(decode(lpad(to_hex(place # 92), 2, '0'), 'hex'), '' order by place)
                    from generate_series(0, 63) as place
                )
            """
        )
        #expect(try await psql.text(digest) == "\\xd81f59f656d452ec3bf00b6aa449d284bf33b6dcd973bb1d26b5f31a76452697")
    }
}
