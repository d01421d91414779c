import TestSupport
import Testing

@Suite("The ranges of values in tables")
struct RangeConstraintTests {
    /// Columns without a range, and why.
    private static let unbounded: [String: String] = [
        "headroom.audit_log.id": "generated, and used for the order only",
        "public.message_usage.usable_until": "only compared: -infinity is never, infinity is until something changes",
        "public.message_usage.window_opened_at": "written by the slow path, and checked when it is read",
        "public.message_usage.window_ends_at": "the same",
        "headroom.tokens.id": "generated, and used as a name only",
        "headroom.customers.customer_id": "generated, and used as a name only",
        "headroom.customer_names.customer_id": "the same",
        "headroom.billing_events.customer_id": "the same",
        "headroom.lane_receipts.number": "written by functions only, which compare it",
        "headroom.lane_receipts.updated_at": "the same",
        "headroom.newest_timelines.system_identifier": "any 64 bits, and only compared",
        "headroom.newest_timelines.noted_at": "not read",
        "headroom.migrations.number": "written by the migrator, which compares it",
        "headroom.migrations.applied_at": "written by the migrator, and shown as text only",
        "headroom.definitions.applied_at": "written by the migrator, and shown as text only",
    ]

    @Test("give a range to every instant, day and integer that the service reads")
    func everyColumn() async throws {
        let database = try await TestDatabase.fresh()
        let found = try await database.psql.rows(
            #"""
            select format('%s.%s.%s', namespace.nspname, class.relname, attribute.attname) as name
            from pg_class as class
            join pg_namespace as namespace on namespace.oid = class.relnamespace
            join pg_attribute as attribute on attribute.attrelid = class.oid and attribute.attnum > 0
                and not attribute.attisdropped
            join pg_type as type on type.oid = attribute.atttypid
            where class.relkind = 'r'
                and (namespace.nspname = 'headroom' or class.oid = 'public.message_usage'::regclass)
                -- Compared only, never computed with.
                and attribute.attname <> 'bucket'
                and coalesce(nullif(type.typbasetype, 0), type.oid) in (
                    'timestamptz'::regtype, 'date'::regtype, 'smallint'::regtype, 'integer'::regtype, 'bigint'::regtype
                )
                and not exists (
                    select from pg_constraint as rule
                    where rule.conrelid = class.oid and rule.contype = 'c' and rule.convalidated
                        and attribute.attnum = any (rule.conkey)
                        and case attribute.atttypid
                            when 'timestamptz'::regtype then pg_get_constraintdef(rule.oid) ~ (
                                attribute.attname || ' < ''10000-01-01'
                                || '|GREATEST[(]([^)]*, )?' || attribute.attname || '[,)][^<]* < ''10000-01-01'
                            )
                            else pg_get_constraintdef(rule.oid) ~ (
                                attribute.attname || '"? >= '
                                || '|LEAST[(]([^)]*, )?"?' || attribute.attname || '"?[,)][^>]* >= 0'
                            )
                        end
                )
                -- These are the rules of the trigger values_are_in_range.
                and not exists (
                    select from pg_trigger as trigger
                    join pg_proc as rules on rules.oid = 'headroom.raise_invalid_row'::regproc
                    where trigger.tgrelid = class.oid and trigger.tgname = 'values_are_in_range'
                        and rules.prosrc ~ format(
                            $$'%s\.%s',\s*'\{[^}]*\m%s\M$$, namespace.nspname, class.relname, attribute.attname
                        )
                )
                and not exists (
                    select from pg_constraint as rule
                    where rule.contypid = type.oid and rule.contype = 'c' and rule.convalidated
                        and pg_get_constraintdef(rule.oid) like '%VALUE < ''10000-01-01%'
                )
            """#
        )
        #expect(Set(found) == Set(Self.unbounded.keys))
    }

    private static let ada = "insert into message_usage (user_id, billing_period) values ('\(user(1))', '2026-11')"

    @Test(
        "reject values in a usage row that an answer cannot show",
        arguments: [
            "message_count = -1", "held = -1", "released = -1", "granted = -1", #""limit" = -1"#, "plan_limit = -1",
            "generation = -1", "plan_revision = -1", "entitlement_version = -1", "updated_at = 'infinity'",
            "started_at = '-infinity'", "started_at = '1999-12-31T23:59:59.999999Z'",
            "resets_at = '10000-01-01T00:00:00Z'", "expires_at = '294276-12-31'", "window_limit = -1",
            "window_count = -1", "window_held = -1", "extra = -1", "usable_count = -1", "extra_expires = 'infinity'",
        ]
    )
    func refused(change: String) async throws {
        let database = try await TestDatabase.fresh()
        try await database.psql.execute(Self.ada)
        #expect(try await database.psql.sqlState(of: "update message_usage set \(change)") == "23514")
    }

    @Test(
        "reject values in a key that the answer to a repeated request cannot show",
        arguments: [
            "messages = 0", "messages = 1000001", "used = -1", #""limit" = -1"#, "committed_used = -1",
            "window_held = -1", "generation = -1", "expires_at = 'infinity'", "created_at = 'infinity'", "verb = 'x'",
            "status = 'x'",
        ]
    )
    func refusedKey(change: String) async throws {
        let psql = try await TestDatabase.fresh().psql
        try await psql.execute(
            """
            insert into headroom.message_keys (
                user_id, key, created_at, generation, messages, used, held, verb, status, billing_period
            ) values ('\(user(1))', 'a', now(), 0, 1, 1, 0, 'c', 'c', '2026-11')
            """
        )
        #expect(try await psql.sqlState(of: "update headroom.message_keys set expires_at = '-infinity'") == nil)
        #expect(try await psql.sqlState(of: "update headroom.message_keys set \(change)") == "23514")
    }

    @Test(
        "reject values in the counts of parts that an answer cannot show",
        arguments: [
            "generation = -1", "used = -1", "held = -1", #""limit" = -1"#, "window_used = -1", "window_held = -1",
            "window_limit = -1", "updated_at = 'infinity'", "window_opened_at = '-infinity'",
            "window_ends_at = 'infinity'", "holds_end_at = 'infinity'", "kind = 'x'",
        ]
    )
    func refusedPart(change: String) async throws {
        let psql = try await TestDatabase.fresh().psql
        try await psql.execute(
            """
            insert into headroom.usage_parts (user_id, generation, updated_at, billing_period, kind, name)
            values ('\(user(1))', 0, now(), '2026-11', 'model', 'm')
            """
        )
        #expect(try await psql.sqlState(of: "update headroom.usage_parts set \(change)") == "23514")
    }

    @Test(
        "reject values in other tables that are no instants",
        arguments: ["infinity", "-infinity", "1999-12-31T23:59:59.999999Z", "10000-01-01T00:00:00Z"]
    )
    func noInstant(_ value: String) async throws {
        let psql = try await TestDatabase.fresh().psql
        try await psql.execute("insert into headroom.subscribers (user_id) values ('\(user(1))')")
        #expect(try await psql.sqlState(of: "update headroom.subscribers set trial_started_at = '\(value)'") == "23514")
        let last = "update headroom.subscribers set trial_started_at = '9999-12-31T23:59:59.999999Z'"
        #expect(try await psql.sqlState(of: last) == nil)
    }

    @Test("allow the first and the last value of each range, and infinity where it is only compared")
    func allowed() async throws {
        let database = try await TestDatabase.fresh()
        try await database.psql.execute(Self.ada)
        for change in [
            #"message_count = 2147483647, held = 2147483647, released = 2147483647, "limit" = 0, plan_limit = null"#,
            "started_at = '2000-01-01T00:00:00Z', expires_at = '9999-12-31T23:59:59.999999Z', resets_at = null",
            "usable_until = 'infinity'", "usable_until = '-infinity'", "usable_until = '9999-12-31T23:59:59.999999Z'",
        ] {
            #expect(try await database.psql.sqlState(of: "update message_usage set \(change)") == nil, "\(change)")
        }
    }

    @Test("are not needed for set_plan, which checks its instants and its arithmetic itself")
    func setPlan() async throws {
        let psql = try await TestDatabase.fresh().psql
        for (name, value) in [
            ("p_started", "infinity"), ("p_expires", "-infinity"), ("p_expires", "1999-12-31T23:59:59Z"),
            ("p_grace_until", "10000-01-01T00:00:00Z"),
        ] {
            let statement = "select set_plan('\(user(1))', 'paid', \(name) => '\(value)')"
            #expect(try await psql.sqlState(of: statement) == "22023")
        }
        for call in [
            "set_plan('\(user(1))', 'paid', 'grace_period', p_expires => '9999-12-30')",
            "set_plan('\(user(2))', 'trial', p_started => '9999-12-30')",
        ] {
            #expect(try await psql.text("select status from \(call)") == "OK")
        }
        for person in [user(1), user(2)] {
            #expect(try await psql.text("select status from increment_and_check_usage('\(person)')") == "ALLOWED")
        }
        #expect(
            try await psql.rows("select distinct expires_at at time zone 'UTC' as at from message_usage")
                == ["9999-12-31T23:59:59.999999"]
        )
    }

    @Test("reject a token whose expiry is infinity instead of null")
    func token() async throws {
        let psql = try await TestDatabase.fresh().psql
        let create = "select headroom.create_token('a', '{chat}', sha256('a'), 'infinity')"
        #expect(try await psql.sqlState(of: create) == "22023")
    }
}
