import Postgres
import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("The counts of parts of a user's messages, in SQL")
struct PartCountTests {
    private static let member = user(9)

    /// Ada and user 2 are on a plan with limits, and have counted a message.
    private func fresh() async throws -> TestDatabase {
        let database = try await TestDatabase.fresh(at: at("2026-11-10T12:00:00Z"))
        try await database.psql.execute(
            """
            insert into headroom.plan_limits (plan, kind, name, allowance, window_messages, window_seconds, weight)
            values ('paid', 'model', 'large*', 10, 4, 10800, 5), ('paid', 'member', '*', 100, null, null, 1);
            select set_plan('\(ada)', 'paid'); select set_plan('\(user(2))', 'paid');
            select increment_and_check_usage('\(ada)'); select increment_and_check_usage('\(user(2))');
            """
        )
        return database
    }

    private func moveClock(_ database: TestDatabase, _ time: String) async throws {
        try await database.moveClock(to: at("2026-11-10T\(time):00Z"))
    }

    /// Whether there is no row yet, used, held, the window with its counts, and when the first hold ends.
    private func read(
        _ database: TestDatabase,
        _ period: String = "2026-11",
        kind: String = "model",
        name: String = "large*"
    ) async throws -> [String] {
        try await database.psql.rows(
            """
            select
                generation is null, used, held, to_char(window_opened_at at time zone 'UTC', 'HH24:MI') as opened,
                to_char(window_ends_at at time zone 'UTC', 'HH24:MI') as ends, window_used, window_held,
                to_char(holds_end_at at time zone 'UTC', 'HH24:MI') as hold
            from headroom.read_parts(
                0::smallint, array['\(ada)']::uuid[], array['\(period)'], array['\(kind)'], array['\(name)']
            )
            """
        )
    }

    /// - Parameter columns: window_opened_at to holds_end_at, without a date.
    private func write(
        _ database: TestDatabase,
        _ period: String = "2026-11",
        kind: String = "model",
        name: String = "large*",
        used: Int,
        held: Int = 0,
        window: (opened: String, ends: String, used: Int, held: Int)? = nil,
        holdsEndAt: String? = nil
    ) async throws {
        func instant(_ time: String?) -> String {
            time.map { "array['2026-11-10T\($0)Z']" } ?? "array[null]"
        }
        try await database.psql.execute(
            """
            select headroom.write_parts(
                0::smallint, array['\(ada)']::uuid[], array['\(period)'], array['\(kind)'], array['\(name)'],
                array[1000], array[\(used)], array[\(held)], array[10],
                \(instant(window?.opened))::timestamptz[], \(instant(window?.ends))::timestamptz[],
                array[\(window?.used ?? 0)], array[\(window?.held ?? 0)], array[4],
                \(instant(holdsEndAt))::timestamptz[]
            )
            """
        )
    }

    @Test("are decoded with their windows and holds")
    func decoding() {
        var decoder = CountedPartDecoder()
        let opened = at("2026-11-10T12:00:00Z").microsecondsSince1970
        let held: Int64 = 1 << 62 | 2 << 32 | 8
        let (first, third): (Int64, Int64) = (1 << 32 | 7, 3 << 32 | 2_147_483_647)
        let numbers = [first, held, 3, opened, opened + 60_000_000, 5, 2, third, held, 1, 0, 0, 0, 0]
        let parts = numbers.compactMap { decoder.next($0) }
        #expect(parts.map(\.index) == [0, 1, 2, 1])
        #expect(parts.map(\.counter.used) == [7, 8, 2_147_483_647, 8])
        #expect(parts.map(\.counter.held) == [0, 3, 0, 1])
        #expect(parts.map(\.counter.windowUsed) == [0, 5, 0, 0] && parts.map(\.counter.windowHeld) == [0, 2, 0, 0])
        #expect(parts.map(\.counter.windowEndsAt) == [nil, at("2026-11-10T12:01:00Z"), nil, nil])
    }

    @Test("find an open window in the row of another period, and move it with the next message")
    func windows() async throws {
        let database = try await fresh()
        #expect(try await read(database) == ["true|0|0|0|0"])
        try await write(database, "2026-10", used: 7, window: ("11:30", "14:30", 2, 0))
        #expect(try await read(database) == ["true|0|0|11:30|14:30|2|0"])
        try await write(database, used: 1, window: ("11:30", "14:30", 3, 0))
        #expect(try await read(database) == ["false|1|0|11:30|14:30|3|0"])
        let windows = "select billing_period, used, window_used from headroom.usage_parts order by billing_period"
        #expect(try await database.psql.rows(windows) == ["2026-10|7", "2026-11|1|3"])
        // A limit that has no windows now keeps the window.
        try await write(database, used: 2)
        #expect(try await read(database) == ["false|2|0|11:30|14:30|3|0"])
        try await moveClock(database, "14:30")
        #expect(try await read(database) == ["false|2|0|0|0"])
        try await write(database, used: 3, window: ("15:31", "18:30", 1, 0))
        #expect(try await read(database) == ["false|3|0|0|0"], "it was opened while the clock was ahead")
    }

    @Test("keep an open window when the plan changes before the row that has it is used")
    func windowOfUnusedPeriod() async throws {
        let database = try await fresh()
        try await database.psql.execute(
            """
            insert into headroom.plans (plan, label, cycle, allowance) values ('week', 'Week', 'weekly', 30);
            select set_plan('\(ada)', 'week')
            """
        )
        // As a message of the month does that is released in the week.
        let week = try #require(
            try await database.psql.rows(
                "select billing_period from message_usage where user_id = '\(ada)' and plan = 'week'"
            ).first
        )
        try await write(database, week, used: 0, window: ("11:30", "14:30", 2, 0))
        try await database.psql.execute("select set_plan('\(ada)', 'paid')")
        #expect(try await read(database) == ["true|0|0|11:30|14:30|2|0"])
    }

    @Test("count a hold no more once it has ended")
    func endedHolds() async throws {
        let database = try await fresh()
        let window = at("2026-11-10T11:30:00Z").microsecondsSince1970
        for minute in [10, 30] {
            try await database.psql.execute(
                """
                insert into headroom.message_keys (
                    user_id, key, created_at, generation, messages, used, held, expires_at, billing_period, verb,
                    status, parts
                ) values (
                    '\(ada)', 'k\(minute)', headroom.now(), 1, 10, 1, 10, '2026-11-10T12:\(minute)Z', '2026-11', 'r', 'h',
                    '{
                        "weight": 5, "model": {"name": "large-2", "counter": "large*", "window": \(window)},
                        "member": {"name": "\(Self.member)", "counter": "\(Self.member)"}
                    }'
                )
                """
            )
        }
        let name = "\(Self.member)"
        try await write(database, used: 1, held: 4, window: ("11:30", "14:30", 1, 4), holdsEndAt: "12:10")
        try await write(database, kind: "member", name: name, used: 5, held: 20, holdsEndAt: "12:10")
        try await moveClock(database, "12:09")
        #expect(try await read(database) == ["false|1|4|11:30|14:30|1|4|12:10"])
        #expect(try await read(database, kind: "member", name: name) == ["false|5|20|0|0|12:10"])
        try await moveClock(database, "12:10")
        #expect(try await read(database) == ["false|1|2|11:30|14:30|1|2|12:30"])
        #expect(try await read(database, "2026-12") == ["true|0|0|11:30|14:30|1|2|12:30"])
        #expect(try await read(database, kind: "member", name: name) == ["false|5|10|0|0|12:30"])
        try await moveClock(database, "12:30")
        #expect(try await read(database) == ["false|1|0|11:30|14:30|1|0"])
        #expect(try await read(database, kind: "member", name: name) == ["false|5|0|0|0"])
    }

    @Test("refuse a stored value that the trigger would have refused")
    func invalid() async throws {
        let database = try await fresh()
        try await write(database, used: 1)
        try await database.psql.execute(
            """
            alter table headroom.usage_parts disable trigger values_are_in_range;
            update headroom.usage_parts set held = -1;
            """
        )
        await #expect(throws: PostgresError.self) { try await read(database) }
    }

    /// A lane that counts messages with a large model of ada's, and as many of user 2.
    private func lane(_ database: TestDatabase) async throws -> Session {
        try await database.psql.execute(
            """
            insert into headroom.lane_receipts (lane, number, updated_at)
            values ('00000000-0000-0000-0000-000000000001', 0, headroom.now());
            create function headroom.test_count(p_messages integer, p_revision integer) returns text
                language plpgsql set search_path = pg_catalog, pg_temp as $$
            declare
                v_batch headroom.counted_batch;
            begin
                v_batch := headroom.count_keyed_batch(
                    0::smallint, '00000000-0000-0000-0000-000000000001',
                    (select number + 1 from headroom.lane_receipts), array['\(ada)', '\(user(2))']::uuid[],
                    array['2026-11'], array[1, 1], array[5 * p_messages, 1], array[0, 0], array[null, null],
                    array[null, null], array[null::integer, null], array[0, 0], array[0, 0], '{}', p_revision,
                    array['paid', null], array[1, 1], array['model', 'member'], array['large*', '\(Self.member)'],
                    array[p_messages, 5 * p_messages], array[10, 100], array[4, null], array[10800, null],
                    (select buckets_revision from headroom.plan_revision)
                );
                return concat_ws(
                    ' ', cardinality(v_batch.counts) || ' counted,',
                    case when v_batch.parts is null then 'no parts:' else 'parts:' end,
                    (select string_agg(
                        concat_ws('/', kind, used, window_used), ' ' order by kind desc, billing_period desc
                    ) from headroom.usage_parts)
                );
            end
            $$;
            grant execute on function headroom.test_count to headroom_service;
            """
        )
        return try await Session.lane(database, preparing: "nothing", "select 1")
    }

    /// The present revision of the plans.
    private func revision(_ database: TestDatabase) async throws -> Int {
        try await database.psql.number("select revision from headroom.plan_revision") ?? 0
    }

    @Test("are counted with a batch, or the user alone is left out of it")
    func batches() async throws {
        let database = try await fresh()
        let lane = try await lane(database)
        let present = try await revision(database)
        func count(_ messages: Int, revision: Int = present) async throws -> String? {
            try await lane.text("headroom.test_count(\(messages), \(revision))")
        }
        #expect(try await count(1) == "1 counted, no parts:", "there is no row yet")
        try await write(database, kind: "member", name: "\(Self.member)", used: 20)
        try await write(database, used: 6)
        #expect(try await count(1) == "1 counted, no parts: model/6 member/20", "no window is open")
        try await write(database, "2026-10", used: 6, window: ("11:30", "14:30", 1, 0))
        let other = try await count(1)
        #expect(other == "1 counted, no parts: model/6 model/6/1 member/20", "the window is in another row")
        try await database.psql.execute("delete from headroom.usage_parts where billing_period = '2026-10'")
        try await write(database, used: 6, window: ("11:30", "14:30", 1, 0))
        #expect(try await count(2) == "2 counted, parts: model/8/3 member/30")
        #expect(try await count(2) == "1 counted, no parts: model/8/3 member/30", "the window is full")
        #expect(try await count(1, revision: present - 1) == "1 counted, no parts: model/8/3 member/30")
        #expect(try await count(1) == "2 counted, parts: model/9/4 member/35")
        try await write(database, used: 9, window: ("11:30", "14:30", 0, 0))
        #expect(try await count(2) == "1 counted, no parts: model/9/0 member/35", "the period is full")
        try await write(database, used: 1, held: 1, window: ("11:30", "14:30", 0, 1), holdsEndAt: "12:00")
        #expect(try await count(1) == "1 counted, no parts: model/1/0 member/35", "a hold has ended")
        try await write(database, used: 1, window: ("08:59", "14:30", 0, 0))
        #expect(try await count(1) == "1 counted, no parts: model/1/0 member/35", "windows last three hours now")
        #expect(try await database.count(of: ada, period: "2026-11") == 16)
        #expect(try await database.count(of: user(2), period: "2026-11") == 11)
        let revised = "select distinct \"limit\", window_limit from headroom.usage_parts where kind = 'member'"
        #expect(try await database.psql.rows(revised) == ["100"])
    }

    @Test("go beyond the limits of a plan that is unenforced")
    func unenforced() async throws {
        let database = try await fresh()
        try await database.psql.execute(
            """
            update headroom.plans set enforced = false where plan = 'paid';
            select increment_and_check_usage('\(ada)'); select increment_and_check_usage('\(user(2))');
            """
        )
        try await write(database, kind: "member", name: "\(Self.member)", used: 100)
        try await write(database, used: 10, window: ("11:30", "14:30", 4, 0))
        let lane = try await lane(database)
        let counted = try await lane.text("headroom.test_count(2, \(try await revision(database)))")
        #expect(counted == "2 counted, parts: model/12/6 member/110")
    }

    @Test("are deleted with their usage row")
    func deleted() async throws {
        let database = try await fresh()
        try await write(database, used: 1)
        try await write(database, "2026-10", used: 1)
        try await database.psql.execute("delete from message_usage where user_id = '\(ada)'")
        #expect(try await database.psql.rows("select billing_period from headroom.usage_parts") == ["2026-10"])
    }

    @Test("are renamed with a plan that never resets, as its limits are")
    func renamed() async throws {
        let database = try await fresh()
        try await database.psql.execute(
            """
            insert into headroom.plans (plan, label, cycle, allowance) values ('life', 'Life', 'lifetime', 10);
            insert into headroom.plan_limits (plan, kind, name) values ('life', 'member', '*');
            select set_plan('\(ada)', 'life');
            """
        )
        try await write(database, "life", used: 1)
        try await database.psql.execute("update headroom.plans set plan = 'eternal' where plan = 'life'")
        #expect(try await read(database, "eternal") == ["false|1|0|0|0"])
        let limits = "select plan from headroom.plan_limits where plan in ('life', 'eternal')"
        #expect(try await database.psql.rows(limits) == ["eternal"])
    }

    /// The changes that the audit log has recorded since `id`.
    private func changes(_ database: TestDatabase, since id: Int) async throws -> [String] {
        try await database.psql.rows(
            """
            select action, headroom.change_text(before, after) from headroom.audit_log where id > \(id) order by id
            """
        )
    }

    @Test("follow each edit of a limit, which the audit log records")
    func edits() async throws {
        let database = try await fresh()
        let last = try await database.psql.number("select max(id) from headroom.audit_log") ?? 0
        let first = try await revision(database)
        for (index, edit) in [
            "insert into headroom.plan_limits (plan, kind, name) values ('pro', 'model', 'small')",
            "update headroom.plan_limits set allowance = 7 where plan = 'pro'",
            "delete from headroom.plan_limits where plan = 'pro'", "truncate headroom.plan_limits",
        ].enumerated() {
            try await database.psql.execute(edit)
            #expect(try await revision(database) == first + index + 1, "\(edit)")
        }
        let changes = try await changes(database, since: last)
        #expect(changes.count == 3)
        #expect(changes[1] == "update|allowance none → 7, kind model, name small, plan pro")
    }

    @Test("have another generation after a count was lowered by hand, and no member's id in the audit log")
    func byHand() async throws {
        let database = try await fresh()
        try await write(database, used: 5)
        try await write(database, kind: "member", name: "\(Self.member)", used: 25)
        let last = try await database.psql.number("select max(id) from headroom.audit_log") ?? 0
        try await database.psql.execute("update headroom.usage_parts set used = 6 where kind = 'model'")
        try await database.psql.execute("update headroom.usage_parts set used = 5 where kind = 'member'")
        let generations = "select generation <> 1000 from headroom.usage_parts order by kind"
        #expect(try await database.psql.rows(generations) == ["true", "false"])
        #expect(
            try await changes(database, since: last) == [
                "update|kind model, limit 10, name large*, period 2026-11, used 5 → 6",
                "update|kind member, limit 10, period 2026-11, used 25 → 5",
            ]
        )
    }

    @Test("are forgotten with a member, in each account")
    func forgotten() async throws {
        let database = try await fresh()
        let psql = database.psql
        try await write(database, used: 5)
        for account in [ada, user(2)] {
            try await psql.execute(
                """
                insert into headroom.usage_parts (user_id, generation, updated_at, used, billing_period, kind, name)
                values ('\(account)', 1, now(), 1, '2026-11', 'member', '\(Self.member)'),
                    ('\(account)', 1, now(), 1, '2026-11', 'member', '\(user(8))');
                insert into headroom.message_keys (
                    user_id, key, created_at, generation, messages, used, held, billing_period, verb, status, parts
                ) values ('\(account)', 'k', now(), 1, 5, 5, 0, '2026-11', 'c', 'c', '{
                    "weight": 5, "model": {"name": "large"}, "member": {"name": "\(Self.member)"}
                }');
                """
            )
        }
        // A batch that counts for one of them ends before.
        let batch = try await Session.open(database.conninfo)
        try await batch.execute("begin; select from message_usage where user_id = '\(user(2))' for update")
        async let rows = psql.number("select forget_user('\(Self.member)')")
        let watcher = try await Session.open(database.conninfo)
        try await waitUntil("forgetting waits for the batch") {
            try await watcher.number("select count(*) from pg_stat_activity where wait_event_type = 'Lock'") == 1
        }
        try await batch.execute("commit")
        #expect(try await rows == 4)
        #expect(try await psql.number("select forget_user('\(Self.member)')") == 0)
        let names = "select name from headroom.usage_parts order by kind, user_id"
        #expect(try await psql.rows(names) == ["\(user(8))", "\(user(8))", "large*"])
        let keys = "select messages, parts from headroom.message_keys"
        let kept = #"5|{"model": {"name": "large"}, "weight": 5}"#
        #expect(try await psql.rows(keys) == [kept, kept])
        #expect((try await psql.number("select forget_user('\(ada)')") ?? 0) > 4)
        #expect(try await psql.rows(names) == ["\(user(8))"])
    }
}
