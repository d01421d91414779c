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
        p_messages bigint[], p_terms_versions bigint[], p_keys text[] default null,
        p_key_messages integer[] default null, p_so_far bigint[] default null
        """

    /// Columns of headroom.count_batch_row, with another value in place of one.
    private static func columns(_ replaced: String, _ value: String) -> String {
        [
            "ordinal", "message_count", "held", "\"limit\"", "plan", "state", "started_at", "resets_at", "expires_at",
            "previous_plan", "renews", "plan_revision", "observed_at", "entitlement_version", "counts",
        ].map { $0 == replaced ? value : "sound.\($0)" }.joined(separator: ", ")
    }

    @Test(
        "count_batch: all requests of the batch are answered -UNKNOWN, once, and nothing is counted a second time",
        arguments: [
            ("counts", "null::bigint[]"), ("counts", "array[null::bigint]"),
            ("ordinal", "case when sound.ordinal is not null then 9 end"),
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
            alter function headroom.count_batch rename to sound_count_batch;
            create function headroom.count_batch(\(Self.parameters)) returns setof headroom.count_batch_row language sql as $$
                select \(Self.columns(column, value))
                from headroom.sound_count_batch(
                    p_bucket, p_lane, p_number, p_users, p_periods, p_period_ordinals, p_messages, p_terms_versions, p_keys,
                    p_key_messages, p_so_far
                ) as sound
            $$;
            grant execute on function headroom.count_batch, headroom.sound_count_batch to headroom_service;
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
            drop function headroom.count_batch;
            alter function headroom.sound_count_batch rename to count_batch;
            """
        )
        let repaired = EngineHarness(database.conninfo, lanes: 1)
        try await repaired.running {
            let replay = try await repaired.execute(people[0], .consume(1, key: messageKey("k2"))).answer
            #expect(replay?.isReplay == true && replay?.snapshot.used == 7)
            #expect(try await repaired.execute(people[1], .consume(1)).answer?.snapshot.used == 8)
        }
    }

    @Test("perform_batch: every request is answered")
    func performing() async throws {
        let database = try await TestDatabase.fresh()
        let harness = EngineHarness(database.conninfo, lanes: 1)
        let types = "uuid, bigint, uuid[], integer[], text[], integer[], text[], integer[], text"
        try await harness.running {
            try await database.psql.execute(
                """
                alter function headroom.perform_batch rename to sound_perform_batch;
                create function headroom.perform_batch(\(types)) returns headroom.usage_snapshot[] language sql as $$
                    select (headroom.sound_perform_batch($1, $2, $3, $4, $5, $6, $7, $8, $9))[2:]
                $$;
                grant execute on function headroom.perform_batch, headroom.sound_perform_batch to headroom_service;
                """
            )
            let outcomes = try await harness.execute([(user(1), .consume(1)), (user(2), .consume(1))])
            #expect(outcomes.map { $0.failure?.code } == [.unknown, .unknown], "\(outcomes)")
            #expect(harness.log.count(of: "what a batch has counted cannot be read") == 1)
            #expect(try await database.psql.number("select sum(message_count) from message_usage") == 2)
        }
    }
}
