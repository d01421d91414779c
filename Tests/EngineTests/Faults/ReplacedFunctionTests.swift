import Postgres
import TestSupport
import Testing
import Usage

@testable import Engine

/// The owner of the tables may replace functions. The service cannot know what was counted then.
@Suite("A function that was replaced and returns something else")
struct ReplacedFunctionTests {
    private static let parameters = """
        p_bucket smallint, p_lane uuid, p_number bigint, p_users uuid[], p_periods text[], p_period_ordinals integer[],
        p_messages bigint[], p_versions bigint[], p_keys text[], p_verbs text[], p_key_messages integer[],
        p_key_sums bigint[], p_hold_seconds integer[], p_key_parts text[], p_plan_revision integer, p_plans text[],
        p_part_users integer[], p_part_kinds text[], p_part_names text[], p_part_messages bigint[],
        p_part_limits integer[], p_part_window_limits integer[], p_part_window_seconds integer[],
        p_buckets_revision integer
        """

    /// Columns of headroom.counted_batch, with another value in place of one.
    private static func columns(_ replaced: String, _ value: String) -> String {
        ["counts", "observed_at", "words_revision", "usage_rows", "parts"]
            .map { $0 == replaced ? value : "sound.\($0)" }.joined(separator: ", ")
    }

    @Test(
        "count_keyed_batch: all requests of the batch are answered -UNKNOWN, once, and nothing is counted a second time",
        arguments: [
            ("counts", "null::bigint[]"), ("counts", "array[null::bigint]"),
            ("usage_rows", "array[null]::bytea[]"),
            ("usage_rows", "array[record_send(jsonb_populate_record(null::headroom.counted_row, '{\"ordinal\": 9}'))]"),
        ]
    )
    func counting(column: String, value: String) async throws {
        let database = try await TestDatabase.fresh()
        let people = [user(1), user(2)]
        for person in people { try await database.psql.execute("select set_plan('\(person)', 'paid')") }
        let sound = EngineHarness(database.conninfo, lanes: 1)
        try await sound.running {
            for outcome in try await sound.execute(people.map { ($0, .consume(5)) }) { #expect(outcome.isAllowed) }
        }
        try await database.psql.execute(
            """
            alter function headroom.count_keyed_batch rename to sound_count_keyed_batch;
            create function headroom.count_keyed_batch(\(Self.parameters)) returns headroom.counted_batch language sql as $$
                select \(Self.columns(column, value))
                from headroom.sound_count_keyed_batch(
                    p_bucket, p_lane, p_number, p_users, p_periods, p_period_ordinals, p_messages, p_versions, p_keys,
                    p_verbs, p_key_messages, p_key_sums, p_hold_seconds, p_key_parts, p_plan_revision, p_plans,
                    p_part_users, p_part_kinds, p_part_names, p_part_messages, p_part_limits, p_part_window_limits,
                    p_part_window_seconds, p_buckets_revision
                ) as sound
            $$;
            grant execute on function headroom.count_keyed_batch, headroom.sound_count_keyed_batch to headroom_service;
            """
        )
        // These users are not cached, so their rows are returned with the counts.
        let harness = EngineHarness(database.conninfo, lanes: 1)
        try await harness.running {
            for round in 1...2 {
                let outcomes = try await harness.execute([
                    (people[0], .consume(1, key: messageKey("k\(round)"))), (people[1], .consume(1)),
                ])
                #expect(outcomes.map { $0.failure?.code } == [.unknown, .unknown], "\(outcomes)")
                let counts = try await database.psql.rows("select message_count from message_usage")
                #expect(counts == ["\(5 + round)", "\(5 + round)"])
            }
            #expect(harness.log.count(of: "what a batch has counted cannot be read") == 1)
        }
        try await database.psql.execute(
            """
            drop function headroom.count_keyed_batch;
            alter function headroom.sound_count_keyed_batch rename to count_keyed_batch;
            """
        )
        let repaired = EngineHarness(database.conninfo, lanes: 1)
        try await repaired.running {
            let replay = try await repaired.execute(people[0], .consume(1, key: messageKey("k2"))).answer
            #expect(replay?.isRepeated == true && replay?.snapshot.used == 7)
            #expect(try await repaired.execute(people[1], .consume(1)).answer?.snapshot.used == 8)
        }
    }

    @Test("lock_and_read_users: nothing is counted, and every request is answered")
    func locking() async throws {
        let database = try await TestDatabase.fresh()
        let harness = EngineHarness(database.conninfo, lanes: 1)
        let types = "smallint, uuid[], boolean[], text"
        try await harness.running {
            try await database.psql.execute(
                """
                alter function headroom.lock_and_read_users rename to sound_lock_and_read_users;
                create function headroom.lock_and_read_users(\(types)) returns setof headroom.locked_user language sql as $$
                    select * from headroom.sound_lock_and_read_users($1, $2, $3, $4) offset 1
                $$;
                grant execute on function headroom.lock_and_read_users, headroom.sound_lock_and_read_users
                to headroom_service;
                """
            )
            let outcomes = try await harness.execute(
                [(user(1), .consume(1, key: messageKey("k1"))), (user(2), .consume(1, key: messageKey("k2")))]
            )
            #expect(outcomes.map { $0.failure?.code } == [.internal, .internal], "\(outcomes)")
            #expect(try await database.psql.number("select count(*) from message_usage") == 0)
        }
    }

    @Test("the attributes of a type that is read by position are those that are named in the code")
    func positions() async throws {
        let attributes = try await TestDatabase.fresh().psql.rows(
            """
            select attname from pg_attribute where attrelid = 'headroom.counted_row'::regclass and not attisdropped
            order by attnum
            """
        )
        #expect(attributes == CountBatchStatement.UserRows.columns.map(\.description))
    }

    @Test("a result with further columns, as a later release may return: everything is counted as before")
    func furtherColumn() async throws {
        let database = try await TestDatabase.fresh()
        let person = user(1)
        try await database.psql.execute("select set_plan('\(person)', 'paid')")
        let harness = EngineHarness(database.conninfo, lanes: 1)
        try await harness.running {
            #expect(try await harness.execute(person, .consume(1)).isAllowed)
            try await database.psql.execute(
                """
                alter type headroom.counted_batch add attribute later integer;
                alter type headroom.counted_row add attribute later integer;
                do $$ begin
                    execute replace(
                        pg_get_functiondef('headroom.counted_rows'::regproc), ')::headroom.counted_row',
                        ', 0)::headroom.counted_row'
                    );
                end $$;
                """
            )
            for used in 2...3 {
                let answer = try await harness.execute(person, .consume(1)).answer
                #expect(answer?.snapshot.used == used)
            }
            #expect(try await harness.execute(person, .consume(1, key: messageKey("k"))).isAllowed)
            #expect(try await harness.execute(user(2), .consume(1)).isAllowed)
        }
        #expect(try await database.psql.number("select sum(message_count) from message_usage") == 5)
    }
}
