import Postgres
import TestSupport
import Testing
import Usage

@testable import Engine

/// What these queries read does not depend on Citus, only how it plans them.
@Suite("Queries for a distributed database")
struct DistributedQueriesTests {
    private let users = [user(1), user(2), user(3), user(4)]

    private func database() async throws -> TestDatabase {
        let database = try await TestDatabase.fresh(at: at("2026-11-10T12:00:00Z"))
        try await database.beginDivision(into: 8)
        try await database.divideUsers(to: BucketMap.movedMaximum)
        try await database.psql.execute(
            """
            select set_plan('\(users[0])', 'paid', p_anchor => 5);
            select increment_and_check_usage('\(users[0])', 7);
            select increment_and_check_usage('\(users[1])', 3);
            select set_plan('\(users[2])', 'pro', 'cancelled', p_expires => '2026-11-20T00:00:00Z');
            """
        )
        return database
    }

    private var array: String { "array['\(users.map(\.description).joined(separator: "', '"))']::uuid[]" }

    private func read(_ query: String, _ database: TestDatabase) async throws -> [String] {
        try await database.psql.rows(
            query.replacing(/;\s*$/, with: "").replacing("$1", with: array)
                .replacing("$2", with: "array['', 'trial', '2026-11', 'trial']::text[]")
                .replacing("$3", with: "'trial'")
        )
    }

    @Test("show subscribers the same as those for one machine")
    func snapshots() async throws {
        let database = try await database()
        let distributed = try await read(EmbeddedSQL.readDistributedUsers, database)
        #expect(distributed.count == users.count)
        #expect(try await read(EmbeddedSQL.readSubscribedUsers, database).sorted() == distributed.sorted())
    }

    @Test("find the users that have changed, and no others")
    func changes() async throws {
        let database = try await database()
        let fingerprints = try await database.psql.text(
            """
            select array_agg(present.fingerprint order by subscribed.ordinal)
            from unnest(\(array)) with ordinality as subscribed (user_id, ordinal)
            cross join lateral headroom.fingerprint(subscribed.user_id) as present
            """
        )
        let query = "select headroom.changed_users(\(array), '\(fingerprints ?? "")') as ordinal"
        #expect(try await database.psql.rows(query) == [])
        try await database.psql.execute("select increment_and_check_usage('\(users[1])', 1)")
        try await database.psql.execute("select set_plan('\(users[3])', 'pro')")
        #expect(try await database.psql.rows(query) == ["2", "4"])
    }

    @Test("delete old keys of all buckets, no more than asked for")
    func pruning() async throws {
        let database = try await database()
        try await database.psql.execute(
            """
            create or replace function headroom.is_distributed() returns boolean language sql as 'select true';
            insert into headroom.message_keys
                (bucket, user_id, key, verb, status, messages, used, held, created_at, generation, billing_period)
            select headroom.bucket_of(keys.user_id), keys.user_id, 'k' || keys.number, 'c', 'c', 1, 1, 0,
                headroom.now() - interval '30 days' * (keys.number % 2), 1, 'trial'
            from (select ('00000000-0000-4000-8000-' || lpad(number::text, 12, '0'))::uuid as user_id, number
                  from generate_series(1, 40) as numbers (number)) as keys
            """
        )
        #expect(try await database.psql.number("headroom.prune_keys(interval '7 days', 5)") == 5)
        #expect(try await database.psql.number("headroom.prune_keys()") == 15)
        #expect(try await database.psql.number("select count(*) from headroom.message_keys") == 20)
    }

    @Test("say that a database is not distributed where there is no Citus")
    func undistributed() async throws {
        let database = try await TestDatabase.fresh()
        #expect(try await database.psql.text("headroom.citus_release()") == nil)
        #expect(try await database.psql.number("select count(*) from headroom.bucket_placements()") == 0)
        let placements = CurrentPlacements(DatabaseTopology(database.conninfo))
        try await onThread { try placements.load() }
        #expect(placements.current == .none)
    }
}
