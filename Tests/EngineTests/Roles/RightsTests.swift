import TestSupport
import Testing
import Usage

@testable import Engine

/// A statement, and the roles that may run it. All others fail with 42501.
private struct Right: Sendable {
    let sql: String
    let actors: Set<Actor>

    init(_ sql: String, _ actors: Actor...) {
        self.sql = sql
        self.actors = Set(actors)
    }
}

@Suite("The rights of each role")
struct RightsTests {
    private static let usage = [
        Right("select * from message_usage", .service, .operator, .user),
        Right(
            "insert into message_usage (user_id, billing_period) values ('\(user(3))', '2026-11')",
            .service,
            .operator
        ),
        Right("update message_usage set message_count = 0", .service, .operator),
        Right(#"update message_usage set "limit" = 5, plan = 'pro'"#, .service, .operator),
        Right("delete from message_usage", .service, .operator),
        Right("truncate message_usage"),
        Right("alter table message_usage disable row level security"),
        Right("alter table message_usage disable trigger record_manual_change"),
        Right("drop trigger record_manual_change on message_usage"),
        Right("alter function headroom.record_manual_change() security invoker"),
        Right("alter function headroom.record_manual_change() set search_path = public"),
        Right("alter function set_plan owner to pg_signal_backend"),
    ]

    private static let views = [
        Right("select * from current_usage", .service, .operator, .dashboard),
        Right("select * from monthly_usage", .service, .operator, .dashboard, .user),
        Right("select * from billing_period_report", .service, .operator, .dashboard),
        Right("select * from audit_trail", .service, .operator, .dashboard),
        Right("select * from headroom.usage_rows", .service, .operator),
        Right("select * from headroom.usage_by_model", .service, .operator),
        Right("select * from headroom.usage_by_member", .service, .operator),
        Right("select * from headroom.part_usage_rows", .service, .operator),
        Right("select * from headroom.current_periods"),
        Right("select * from headroom.judged_usage_rows"),
        Right("select * from headroom.derived_usage"),
        Right("select headroom.current_answer('\(user(1))')", .service, .operator, .dashboard),
    ]

    private static let functions = [
        Right("select from increment_and_check_usage('\(user(1))')", .service, .operator, .user),
        Right("select from increment_and_check_usage('\(user(1))', 3)", .service, .operator, .user),
        Right("select from increment_and_check_usage('\(user(1))', 'trial', 5)", .service, .operator, .user),
        Right("select from increment_and_check_usage('\(user(1))', 'trial', null)", .service, .operator, .user),
        Right("select from increment_and_check_usage('\(user(1))', 1, 'm', '\(user(1))')", .service, .operator, .user),
        Right("select from increment_and_check_usage('\(user(1))', 1, 'm', '\(user(2))')", .service, .operator),
        Right("select from increment_and_check_usage('\(user(2))')", .service, .operator),
        Right("select from increment_and_check_usage('\(user(2))', 'trial', 5)", .service, .operator),
        Right("select from reset_usage('\(user(1))')", .service, .operator),
        Right("select from reset_billing_period('trial')", .service, .operator),
        Right("select from set_plan('\(user(1))', 'pro')", .service, .operator),
        Right("select from grant_messages('\(user(1))', 5, 'why')", .service, .operator),
        Right("select from forget_user('\(user(1))')", .service, .operator),
        Right("select from headroom.prune_keys()", .service, .operator),
        Right("select from headroom.count_messages('\(user(1))', 1, null, null, 'trial')", .service),
        Right("select headroom.read_usage_snapshot('\(user(1))', 'trial')", .service),
        Right("select headroom.record_change(null, null, 'plan', null, '{}')", .service),
        Right("select headroom.spent_trial_digest('\(user(1))')", .service),
        Right("select headroom.count_in_period('\(user(1))', 'trial', 5)", .service),
    ]

    private static let tables = [
        Right("select * from headroom.plans", .service, .operator),
        Right("update headroom.plans set allowance = 900 where plan = 'paid'", .operator),
        Right("insert into headroom.plans (plan, label, cycle) values ('team', 'Team', 'monthly')", .operator),
        Right("delete from headroom.plans where plan = 'pro'", .operator),
        Right("select * from headroom.plan_limits", .service, .operator),
        Right("insert into headroom.plan_limits (plan, kind, name) values ('pro', 'member', '*')", .operator),
        Right("update headroom.plan_limits set allowance = 9", .operator),
        Right("delete from headroom.plan_limits", .operator),
        Right("select * from headroom.usage_parts", .service, .operator),
        Right(
            """
            insert into headroom.usage_parts (user_id, generation, updated_at, billing_period, kind, name)
            values ('\(user(1))', 1, now(), 'trial', 'model', 'm')
            """,
            .service
        ),
        Right("update headroom.usage_parts set used = 9", .service, .operator),
        Right("delete from headroom.usage_parts", .service, .operator),
        Right("update headroom.plan_revision set revision = 9"),
        Right("select * from headroom.subscribers", .service, .operator),
        Right("update headroom.subscribers set anchor_day = 5", .service, .operator),
        Right("insert into headroom.subscribers (user_id) values ('\(user(4))')", .service, .operator),
        Right("delete from headroom.subscribers", .service, .operator),
        Right("update headroom.subscriptions set expires_at = now()", .service, .operator),
        Right("select * from headroom.message_keys", .service, .operator),
        Right("delete from headroom.message_keys", .service),
        Right("select * from headroom.lane_receipts", .service, .operator),
        Right("delete from headroom.lane_receipts", .service),
        Right("select * from headroom.grants", .service, .operator),
        Right("update headroom.grants set messages = 1"),
        Right("update headroom.grants set billing_period = 'trial'", .service),
        Right("select * from headroom.imports", .service, .operator),
        Right("update headroom.imports set done = 0"),
        Right("select headroom.begin_import(sha256('a'), false, 'a', 1)", .service, .operator),
        Right("select headroom.import_batch(sha256('a'), false, 0, 0, '{}', true)", .service, .operator),
        Right("select * from headroom.audit_log", .service, .operator),
        Right("insert into headroom.audit_log (at, action, actor) values (now(), 'plan', 'nobody')", .service),
        Right("update headroom.audit_log set actor = 'nobody'"),
        Right("delete from headroom.audit_log"),
        Right("select * from headroom.secrets", .service),
        Right("update headroom.secrets set inner_key = ''"),
        Right("select * from headroom.spent_trials", .service),
        Right("update headroom.spent_trials set plan = 'trial'"),
        Right("select * from headroom.words", .service, .operator),
        Right("insert into headroom.words (lang, word, other) values ('it', 'state_free', 'Gratis')", .operator),
        Right("update headroom.words set other = 'Hello' where word = 'state_free'", .operator),
        Right("delete from headroom.words where lang = 'de'", .operator),
        Right("truncate headroom.words"),
        Right("select headroom.restore_words('de')", .operator),
        Right("select headroom.write_shipped_words('{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}')"),
        Right("select * from headroom.shipped_words", .service, .operator),
        Right("update headroom.shipped_words set other = ''"),
        Right("select * from headroom.word_blanks", .service, .operator),
        Right("update headroom.word_blanks set blanks = '{}'"),
        Right("select * from headroom.migrations", .service, .operator),
        Right("delete from headroom.migrations"),
        Right("select * from headroom.installed_objects", .service, .operator),
        Right("delete from headroom.installed_objects"),
        Right("lock table headroom.migrations in share update exclusive mode"),
        Right("select from headroom.token_lock for update"),
        Right("select nextval('headroom.generations')", .service, .operator),
        Right("select setval('headroom.generations', 1)"),
    ]

    private static let tokens = [
        Right("select digest from headroom.tokens", .service, .operator),
        Right("select headroom.create_token('b', '{chat}', sha256('b'))", .operator),
        Right("insert into headroom.tokens (name, scopes, digest) values ('b', '{chat}', sha256('b'))", .operator),
        Right("insert into headroom.tokens (name, scopes, digest, created_by) values ('b', '{chat}', 'b', 'c')"),
        Right("select headroom.revoke_token(1)", .operator),
        Right("update headroom.tokens set revoked_at = now()", .operator),
        Right("update headroom.tokens set revoked_by = 'somebody'"),
        Right("update headroom.tokens set scopes = '{operator}'"),
        Right("update headroom.tokens set digest = sha256('b')"),
        Right("update headroom.tokens set expires_at = null"),
        Right("update headroom.tokens set last_used_at = now()", .service),
        Right("delete from headroom.tokens"),
        Right("alter table headroom.tokens disable trigger check_and_stamp_token"),
    ]

    private static let activity = [
        Right("select * from headroom.daily_activity", .service, .operator, .dashboard),
        Right("insert into headroom.daily_activity (day) values ('2026-11-01')", .service),
        Right("update headroom.daily_activity set messages = 0", .service),
        Right("delete from headroom.daily_activity"),
    ]

    private static let event = """
        {"event": {"source": "appstore", "id": "n", "type": "TEST", "at": "2026-11-01T00:00:00Z", "identities": [],
            "effects": [], "payload": {}, "outcome": "ignored"}}
        """

    private static let billing = [
        Right(
            "select headroom.lock_and_read_customer('appstore', 'n', false, '{}', '{}', '{}', '{}')",
            .service,
            .operator
        ),
        Right("select headroom.write_customer('\(event)')", .service, .operator),
        Right(
            "select headroom.record_refused_event('\(event)'::jsonb -> 'event' || '{\"problem\": \"p\"}', '{}', false)",
            .service,
            .operator
        ),
        Right("select headroom.link_customer('appstore', 'T', '\(user(1))')", .service, .operator),
        Right("select headroom.prune_billing_events()", .service, .operator),
        Right("select headroom.map_product('appstore', 'p', 'paid')", .operator),
        Right("select headroom.unmap_product('appstore', 'p')", .operator),
        Right("select headroom.map_entitlement('revenuecat', 'e', 'paid')", .operator),
        Right("select headroom.unmap_entitlement('revenuecat', 'e')", .operator),
        Right("select * from headroom.store_products", .service, .operator),
        Right("insert into headroom.store_products (source, product, plan) values ('appstore', 'p', 'pro')", .operator),
        Right("update headroom.store_products set plan = 'pro'", .operator),
        Right("delete from headroom.store_products", .operator),
        Right("select * from headroom.store_entitlements", .service, .operator),
        Right("update headroom.store_entitlements set plan = 'pro'", .operator),
        Right("delete from headroom.store_entitlements", .operator),
        Right("select * from headroom.billing_events", .service, .operator),
        Right("delete from headroom.billing_events", .service),
        Right("update headroom.billing_events set payload = null", .service),
        Right("select * from headroom.customers", .service, .operator),
        Right("delete from headroom.customers", .service),
        Right("select * from headroom.customer_names", .service, .operator),
        Right("update headroom.customer_names set name = 'user:\(user(1))'", .service),
        Right("select * from headroom.message_purchases", .service, .operator),
        Right("delete from headroom.message_purchases", .service),
        Right("select * from headroom.usage_transfers", .service, .operator),
        Right("delete from headroom.usage_transfers", .service),
        Right("select headroom.lock_customer('{}')", .service),
        Right("select headroom.user_billing_state('\(user(1))', '{trial}')", .service),
        Right("select headroom.billing_answer('ignored', null, null, null)", .service),
        Right("select headroom.write_billing_event('\(event)'::jsonb -> 'event', null)", .service),
        Right("select headroom.forget_billing('\(user(1))', 1)", .service),
    ]

    private static let notifications = [
        Right("select * from headroom.notifications", .service, .operator),
        Right("update headroom.notifications set attempts = 0", .service),
        Right("delete from headroom.notifications", .service),
        Right("select headroom.record_notifications('{}', 'p')", .service),
        Right("select headroom.crossed_allowances(0::smallint, '{}')", .service),
        Right("select headroom.lock_delivery()", .service),
        Right("select headroom.write_attempts('{}', '{}', '{}', '{}')", .service),
        Right("select headroom.replay_notifications(null)", .service, .operator),
        Right("select headroom.prune_notifications()", .service, .operator),
    ]

    private static let making = [
        Right("create table headroom.mine ()"),
        Right("create table public.mine ()"),
        Right("create function headroom.mine() returns integer language sql return 1"),
        Right(
            "create or replace function headroom.now() returns timestamptz language sql return '-infinity'::timestamptz"
        ),
    ]

    @Test("are complete and minimal: every right and every denial, tried as that role", arguments: Actor.allCases)
    func rights(of actor: Actor) async throws {
        let database = try await TestDatabase.fresh()
        try await database.populate()
        let all =
            RightsTests.usage + RightsTests.views + RightsTests.functions + RightsTests.tables + RightsTests.tokens
            + RightsTests.activity + RightsTests.billing + RightsTests.notifications + RightsTests.making
        for right in all {
            let outcome = try await database.attempt(
                right.sql,
                as: actor.rawValue,
                subject: actor == .user ? user(1) : nil
            )
            #expect(outcome == (right.actors.contains(actor) ? "ok" : "42501"), "\(actor.rawValue): \(right.sql)")
        }
    }

    @Test("of the service belong to its role: a member acts as it, and owns nothing")
    func service() async throws {
        let database = try await TestDatabase.fresh()
        let tables = try await database.psql.number(
            "select count(*) from pg_class where relowner = 'headroom_service'::regrole"
        )
        #expect(tables == 0)
        let attributes = try await database.psql.text(
            """
            select string_agg(concat_ws(' ', rolname, rolsuper, rolcreaterole, rolcreatedb, rolcanlogin, rolbypassrls), ', ')
            from pg_roles where rolname like 'headroom\\_%' and (rolsuper or rolcreaterole or rolcreatedb or rolcanlogin
                or rolbypassrls or rolreplication)
            """
        )
        #expect(attributes == nil)
    }
}
