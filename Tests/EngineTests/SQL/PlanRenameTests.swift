import Postgres
import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("A renamed plan")
struct PlanRenameTests {
    private func fresh() async throws -> TestDatabase {
        let database = try await TestDatabase.fresh(at: at("2026-11-10T12:00:00Z"))
        try await database.psql.execute(
            """
            insert into headroom.plans (plan, label, cycle, allowance, trial_days) values
                ('life', 'Life', 'lifetime', 10, null), ('taste', 'Taste', 'trial', 20, 5),
                ('team', 'Team', 'monthly', 50, null);
            """
        )
        return database
    }

    private func rename(_ plan: String, _ name: String) -> String {
        "update headroom.plans set plan = '\(name)' where plan = '\(plan)'"
    }

    @Test(
        "that never resets keeps everybody's count, also in a lane that has its old name cached",
        arguments: ["life", "taste"]
    )
    func count(plan: String) async throws {
        try await EngineHarness.serving(fresh(), lanes: 1) { database, harness in
            for person in [user(1), user(2)] {
                try await database.psql.execute("select set_plan('\(person)', '\(plan)')")
            }
            let limit = plan == "life" ? 10 : 20
            _ = try await harness.execute([(user(1), .consume(limit)), (user(2), .consume(3))])
            try await database.psql.execute(rename(plan, "renamed"))
            let outcomes = try await harness.execute([(user(1), .consume(1)), (user(2), .consume(1))])
            #expect(
                outcomes[0].answer.map { $0.status != .allowed } == true && outcomes[0].answer?.snapshot.used == limit
            )
            #expect(outcomes[1].isAllowed && outcomes[1].answer?.snapshot.used == 4)
            #expect(outcomes[1].answer?.snapshot.plan.name == "renamed")
            #expect(
                try await database.psql.rows("select distinct billing_period, plan from message_usage") == [
                    "renamed|renamed"
                ]
            )
        }
    }

    @Test("has its holds, keys, grants and purchases in the renamed period")
    func holds() async throws {
        let database = try await fresh()
        let psql = database.psql
        let harness = EngineHarness(database.conninfo, lanes: 1)
        let (held, counted) = (messageKey("held"), messageKey("counted"))
        try await harness.running {
            try await psql.execute("select set_plan('\(ada)', 'life'); select grant_messages('\(ada)', 5, 'x', 'g')")
            _ = try await harness.execute([
                (ada, .consume(2, key: counted)), (ada, .reserve(4, key: held, ttlSeconds: 100)),
            ])
            try await psql.execute(rename("life", "eternal"))
            let commit = try await harness.execute(ada, .commit(key: held)).answer
            #expect(commit?.status == .allowed && commit?.snapshot.used == 6 && commit?.snapshot.limit == 15)
            #expect(commit?.snapshot.period.label == "eternal")
            let release = try await harness.execute(ada, .release(counted)).answer
            #expect(release?.snapshot.used == 4)
            #expect(try await psql.rows("select billing_period from headroom.grants") == ["eternal"])
            let rows = try await psql.rows("select billing_period, message_count, held from message_usage")
            #expect(rows == ["eternal|4|0"])
        }
    }

    @Test("is renamed as a previous plan, a pending plan, a mapped plan and a spent trial too")
    func references() async throws {
        let psql = try await fresh().psql
        try await psql.mapProducts()
        try await psql.execute(
            """
            select set_plan('\(user(1))', 'team'); select set_plan('\(user(1))', 'paid');
            select set_plan('\(user(2))', 'paid');
            update headroom.subscriptions set next_plan = 'team' where user_id = '\(user(2))';
            select headroom.map_product('revenuecat', 'seat', 'team');
            select set_plan('\(user(3))', 'taste'); select increment_and_check_usage('\(user(3))', 7);
            select forget_user('\(user(3))');
            """
        )
        try await psql.execute(rename("team", "group"))
        try await psql.execute(rename("taste", "sample"))
        #expect(
            try await psql.rows(
                """
                select previous_plan, operator_previous_plan from headroom.subscribers where user_id = '\(user(1))'
                union all select next_plan, '' from headroom.subscriptions where user_id = '\(user(2))'
                union all select plan, '' from headroom.store_products where product = 'seat'
                union all select plan, '' from headroom.spent_trials where messages = 7
                """
            ) == ["group|group", "group|", "group|", "sample|"]
        )
        #expect(try await psql.text("select previous_plan from increment_and_check_usage('\(user(1))')") == "group")
    }

    @Test("is one row of the audit log, not one for each user")
    func audit() async throws {
        let psql = try await fresh().psql
        for person in (1...5).map({ user($0) }) {
            try await psql.execute(
                "select set_plan('\(person)', 'life'); select increment_and_check_usage('\(person)')"
            )
        }
        let before = try await psql.number("select count(*) from headroom.audit_log") ?? 0
        try await psql.execute(rename("life", "eternal"))
        #expect(try await psql.number("select count(*) from headroom.audit_log") == before + 1)
        #expect(
            try await psql.text(
                "select headroom.change_text(before, after) from headroom.audit_log order by id desc limit 1"
            ) == "plan life → eternal"
        )
    }

    @Test("is refused where the name cannot be changed, and where the new name has usage of its own")
    func refused() async throws {
        let psql = try await fresh().psql
        try await psql.execute(
            """
            select set_plan('\(ada)', 'life'); select increment_and_check_usage('\(ada)', 10);
            insert into message_usage (user_id, billing_period, message_count) values ('\(user(2))', 'old_life', 3);
            """
        )
        for (plan, name) in [("trial", "first"), ("free", "nothing"), ("life", "old_life")] {
            #expect(try await psql.sqlState(of: rename(plan, name)) == "22023", "\(plan)")
        }
        #expect(try await psql.text("select status from increment_and_check_usage('\(ada)')") == "BLOCKED")
    }

    @Test("waits for a change of a subscription, and does not deadlock with it")
    func locks() async throws {
        let database = try await fresh()
        try await database.psql.execute("select set_plan('\(ada)', 'team')")
        let other = try await Session.open(database.conninfo)
        try await other.execute("begin; select set_plan('\(ada)', 'paid')")
        async let renamed: Void = database.psql.execute(rename("team", "group"))
        let watcher = try await Session.open(database.conninfo)
        try await waitUntil("the renaming waits for the subscribers") {
            try await watcher.text(
                """
                exists (
                    select from pg_locks join pg_database on pg_database.oid = database
                    where datname = current_database() and relation = 'headroom.subscribers'::regclass
                        and mode = 'ExclusiveLock' and not granted
                )
                """
            ) == "true"
        }
        // Names the plan that is being renamed.
        try await other.execute("select set_plan('\(ada)', 'team'); commit")
        try await renamed
        #expect(try await database.psql.rows("select plan from headroom.subscriptions") == ["group"])
    }

    @Test("is renamed in the stored payload of a direct event, which a replay reads")
    func payload() async throws {
        let psql = try await fresh().psql
        try await psql.execute(
            """
            insert into headroom.billing_events
                (source, id, type, happened_at, received_at, identities, effects, payload, outcome, attempts)
            values ('chargebee', 'e', 'purchased', now(), now(), '{}', '[{"kind": "purchased", "plan": "team"}]',
                '{"kind": "purchased", "plan": "team", "product": "team"}', 'applied', 1);
            """
        )
        try await psql.execute(rename("team", "group"))
        #expect(
            try await psql.rows(
                """
                select effects -> 0 ->> 'plan', payload ->> 'plan', payload ->> 'product' from headroom.billing_events
                """
            ) == ["group|group|team"]
        )
    }
}
