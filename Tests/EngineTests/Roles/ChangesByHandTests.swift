import Postgres
import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("A manual change")
struct ChangesByHandTests {
    /// The audit log's newest row as text, without its id and time.
    private func newest(_ database: TestDatabase) async throws -> String? {
        try await database.psql.text(
            """
            select concat_ws(' ', action, user_id, billing_period, before, after, actor)
            from headroom.audit_log order by id desc limit 1
            """
        )
    }

    private func changes(_ database: TestDatabase) async throws -> Int? {
        try await database.psql.number("select count(*) from headroom.audit_log")
    }

    private func withUsage(_ body: (TestDatabase) async throws -> Void) async throws {
        let database = try await TestDatabase.fresh()
        try await database.psql.execute("select increment_and_check_usage('\(user(1))', 41)")
        try await body(database)
    }

    @Test("is audited with the values before and after, and the actor", arguments: [true, false])
    func update(byOperator: Bool) async throws {
        try await withUsage { database in
            let owner = try await database.psql.text("select current_user") ?? ""
            if byOperator { try await database.psql.execute("set role headroom_operator") }
            let who = byOperator ? "headroom_operator" : owner
            let before = try await changes(database) ?? 0
            try await database.psql.execute("update message_usage set message_count = 7")
            try await database.psql.execute("reset role")
            #expect(
                try await newest(database) == """
                    update \(user(1)) trial {"count": 41, "limit": 100, "period": "trial"} \
                    {"count": 7, "limit": 100, "period": "trial"} \(who)
                    """
            )
            // The trigger's update of the generation is not audited again.
            #expect(try await changes(database) == before + 1)
            if byOperator { try await database.psql.execute("set role headroom_operator") }
            try await database.psql.execute("delete from message_usage")
            try await database.psql.execute("reset role")
            #expect(
                try await newest(database) == """
                    delete \(user(1)) trial {"count": 7, "limit": 100, "period": "trial"} \(who)
                    """
            )
            #expect(try await changes(database) == before + 2)
        }
    }

    @Test(
        "of a plan, a subscriber or a subscription is audited too",
        arguments: [
            "update headroom.plans set allowance = 801 where plan = 'paid'",
            "update headroom.subscribers set anchor_day = 7",
            "update headroom.subscriptions set expires_at = now()",
            "insert into headroom.subscribers (user_id) values ('\(user(9))')",
            "delete from headroom.subscriptions",
            #"update message_usage set "limit" = 5"#,
            "insert into message_usage (user_id, billing_period) values ('\(user(9))', '2026-11')",
        ]
    )
    func others(statement: String) async throws {
        try await withUsage { database in
            for role in ["headroom_operator", "none"] {
                let before = try await changes(database) ?? 0
                try await database.psql.execute("begin; set role \(role); \(statement); reset role")
                #expect(try await changes(database) == before + 1, "\(role): \(statement)")
                try await database.psql.execute("rollback")
            }
        }
    }

    @Test("by a trigger of another table is audited too")
    func nested() async throws {
        try await withUsage { database in
            for role in ["headroom_operator", "none"] {
                let before = try await changes(database) ?? 0
                try await database.psql.execute(
                    """
                    begin; set role \(role);
                    create temporary table orders (id int);
                    create function pg_temp.place_order() returns trigger language plpgsql as $$ begin
                        update public.message_usage set "limit" = 9999;
                        update headroom.plans set allowance = 9999 where plan = 'paid';
                        update headroom.subscriptions set plan = 'pro';
                        update headroom.subscribers set anchor_day = 9;
                        return null;
                    end $$;
                    create trigger place_order after insert on orders for each row execute function pg_temp.place_order();
                    insert into orders values (1);
                    """
                )
                let recorded = try await database.psql.rows(
                    "select action || ' ' || after from headroom.audit_log order by id offset \(before)"
                )
                #expect(
                    recorded == [
                        #"update {"count": 41, "limit": 9999, "period": "trial"}"#,
                        #"update {"plan": "paid", "allowance": 9999}"#,
                        #"update {"plan": "pro", "original_transaction_id": "first message"}"#,
                        #"update {"anchor_day": 9}"#,
                    ]
                )
                try await database.psql.execute("rollback")
            }
        }
    }

    @Test("that deletes a subscriber records the subscriptions that are deleted with it")
    func cascade() async throws {
        try await withUsage { database in
            for role in ["headroom_operator", "none"] {
                let before = try await changes(database) ?? 0
                try await database.psql.execute("begin; set role \(role); delete from headroom.subscribers")
                let recorded = try await database.psql.rows(
                    """
                    select concat_ws(' ', action, before ->> 'plan', before ->> 'anchor_day', actor) from headroom.audit_log
                    order by id offset \(before)
                    """
                )
                let actor = role == "none" ? try await database.psql.text("select session_user") ?? "" : role
                #expect(recorded == ["delete trial \(actor)", "delete 1 \(actor)"])
                try await database.psql.execute("rollback")
            }
        }
    }

    @Test("by headroom.write_customer is audited as what the tables have, whatever its caller passes")
    func billingByHand() async throws {
        try await withUsage { database in
            let lock =
                "select headroom.lock_and_read_customer('revenuecat', 'e', false, '{}', '{\(user(1))}', '{}', '{}')"
            let same = #"{"anchor": 1, "subscription": {"transaction": "T", "bought": "free"}}"#
            func write(_ subscription: String, _ more: String = "") -> String {
                """
                select headroom.write_customer('{"event": {"source": "revenuecat", "id": "e", "type": "TEST",
                    "at": "2026-11-01T00:00:00Z", "identities": [], "effects": [], "outcome": "applied"},
                    "users": [{"user": "\(user(1))", "before": \(same), "after": \(same) \(more),
                        "subscriptions": [\(subscription)]}]}')
                """
            }
            var before = try await changes(database) ?? 0
            for (statement, expected) in [
                (
                    write(#"{"original_transaction_id": "T", "plan": "pro", "started_at": "2026-11-01T00:00:00Z"}"#),
                    ["trial|pro T"]
                ),
                // A column that the log does not show otherwise.
                (
                    write(
                        #"{"original_transaction_id": "T", "plan": "pro", "started_at": "2025-11-01T00:00:00Z"}"#,
                        #", "anchor_day": 1, "store_trial_started_at": "2025-01-01T00:00:00Z""#
                    ),
                    ["pro T 2026-11 |pro T 2025-11 2025-01"]
                ),
                // Two at once.
                (
                    write(
                        #"{"original_transaction_id": "T", "plan": "paid"}, {"original_transaction_id": "U", "plan": "paid"}"#
                    ),
                    ["pro T|paid T", "pro|paid U"]
                ),
            ] {
                try await database.psql.execute("set role headroom_operator; \(lock); \(statement); reset role")
                let recorded = try await database.psql.rows(
                    """
                    select concat_ws(
                        '|', concat_ws(
                            ' ', before ->> 'plan', before ->> 'transaction', left(before ->> 'started_at', 7),
                            case when before ? 'started_at' then coalesce(left(before ->> 'store_trial_started_at', 7), '') end
                        ), concat_ws(
                            ' ', after ->> 'plan', after ->> 'transaction', left(after ->> 'started_at', 7),
                            left(after ->> 'store_trial_started_at', 7)
                        )
                    )
                    from headroom.audit_log order by id offset \(before)
                    """
                )
                #expect(recorded == expected)
                before += recorded.count
            }
        }
    }

    @Test("is distinguished from counting: messages with and without keys, holds, releases and reads are not audited")
    func counting() async throws {
        let database = try await TestDatabase.fresh()
        let harness = EngineHarness(database.conninfo)
        try await harness.running {
            for turn in 0..<3 {
                let key = messageKey("hold \(turn)")
                let outcomes = try await harness.execute([
                    (user(1), .consume(1)), (user(2), .consume(2)), (user(1), .consume(1, key: messageKey("a"))),
                    (user(3), .reserve(1, key: key, ttlSeconds: 60)), (user(3), .release(key)),
                    (user(2), .check(1)), (user(1), .usage),
                ])
                #expect(outcomes.allSatisfy { $0.failure == nil }, "\(outcomes)")
            }
        }
        for role in ["headroom_operator", "none"] {
            try await database.psql.execute(
                "set role \(role); select from increment_and_check_usage('\(user(1))'), headroom.prune_keys(); reset role"
            )
        }
        #expect(try await changes(database) == 0)
    }

    @Test("by a function is audited once", arguments: ["headroom_operator", "headroom_service", "none"])
    func functions(role: String) async throws {
        try await withUsage { database in
            for call in [
                "reset_billing_period('trial')", "reset_usage('\(user(1))')", "set_plan('\(user(1))', 'paid')",
                "grant_messages('\(user(1))', 5, 'why')", "forget_user('\(user(2))')",
            ] {
                let before = try await changes(database) ?? 0
                try await database.psql.execute("set role \(role); select from \(call); reset role")
                #expect(try await changes(database) == before + 1, "\(role): \(call)")
            }
        }
    }
}
