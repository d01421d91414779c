import Postgres
import TestSupport
import Testing

@testable import Engine

/// Two instances that lock the same users in different orders deadlock (docs/decisions/0003-lock-order.md). The plan
/// depends on the size of the table when it was last analyzed, so several sizes are tried.
@Suite("The counting statement in a lane's session")
struct LockOrderTests {
    enum Counting: String, CaseIterable {
        case plain = ""
        case keyed = """
            , array['k1', 'k2', null], array['consume', 'reserve', null], array[1, 1, 0], array[1, 0, 0]::bigint[],
            array[0, 60, 0], '{}', 0, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}'
            """
        case severalPeriods = "several periods and numbers"

        var statement: PreparedQuery { self == .keyed ? CountBatchStatement.keyed : CountBatchStatement.plain }

        /// Counts three users.
        func call(number: Int = 1) -> String {
            let users = "array['\(user(1))', '\(user(2))', '\(user(3))']::uuid[]"
            let counts =
                self == .severalPeriods
                ? "array['trial', '2026-11'], array[2, 2, 2], array[1, 2, 3]::bigint[]"
                : "array['2026-11'], array[1, 1, 1], array[1, 1, 1]::bigint[]"
            let keys = self == .keyed ? rawValue : ""
            return """
                execute \(statement.name)(
                    0::smallint, '00000000-0000-0000-0000-000000000001', \(number), \(users), \(counts),
                    array[0, 0, 0]::bigint[]\(keys), 0
                )
                """
        }
    }

    /// A lane's session, and a table with the three users and others in descending order.
    private func lane(_ counting: Counting, others: Int, _ database: TestDatabase) async throws -> Session {
        try await database.psql.execute(
            """
            insert into message_usage (user_id, billing_period, "limit", plan, state, usable_until, plan_revision)
            select user_id, '2026-11', 800, 'paid', 'active', 'infinity', 1
            from (
                select * from unnest(array['\(user(3))', '\(user(2))', '\(user(1))']::uuid[])
                union all
                select md5(number::text)::uuid from generate_series(1, \(others)) as number
            ) as users (user_id);
            insert into headroom.lane_receipts (lane, number, updated_at)
            values ('00000000-0000-0000-0000-000000000001', 0, now());
            """
        )
        try await database.psql.execute("analyze")
        return try await Session.lane(database, preparing: counting.statement.name, counting.statement.sql)
    }

    @Test("locks users in the order of their ids", arguments: [0, 10, 5_000], Counting.allCases)
    func order(others: Int, counting: Counting) async throws {
        let database = try await TestDatabase.fresh()
        let session = try await lane(counting, others: others, database)
        let holder = try await Session.open(database.conninfo)
        try await holder.execute("begin; select from message_usage where user_id = '\(user(2))' for update")
        let counted = Task { try await session.execute(counting.call()) }
        try await database.waitUntilBlocked(1)
        let free = try await database.psql.rows(
            """
            select user_id from message_usage where user_id in ('\(user(1))', '\(user(3))') order by user_id
            for update skip locked
            """
        )
        #expect(free == ["\(user(3))"])
        try await holder.execute("commit")
        try await counted.value
        #expect(try await database.psql.number("select count(*) from message_usage where message_count > 0") == 3)
    }

    @Test("looks each row up, whatever the table's size", arguments: [0, 100, 5_000], Counting.allCases)
    func lookups(others: Int, counting: Counting) async throws {
        let database = try await TestDatabase.fresh()
        let session = try await lane(counting, others: others, database)
        try await session.execute("begin")
        try await session.execute(counting.call())
        let reads = try await session.rows(
            """
            select pg_stat_get_xact_tuples_returned('public.message_usage'::regclass)
            union all
            select pg_stat_get_xact_tuples_returned(indexrelid) from pg_index
            where indrelid = 'public.message_usage'::regclass
            """
        )
        try await session.execute("commit")
        // No table scan. From the index the three rows, twice: they are counted, and their entitlement is read. Each
        // user is looked up once per period.
        #expect(reads.count == 2)
        #expect(reads[0] == "0")
        #expect((3...12).contains(Int(reads[1]) ?? 0), "\(reads[1]) entries were read")
    }
    /// The plan stays until the table is analyzed.
    @Test("looks keys up in a table that has grown since it was analyzed")
    func keys() async throws {
        let database = try await TestDatabase.fresh()
        let session = try await lane(.keyed, others: 0, database)
        try await session.execute(Counting.keyed.call())
        try await database.psql.execute(
            """
            insert into headroom.message_keys (
                user_id, created_at, generation, messages, used, held, verb, status, billing_period, key
            )
            select md5(number::text)::uuid, now(), 0, 1, 1, 0, 'c', 'c', '2026-11', 'key' from generate_series(1, 5000) as number
            """
        )
        try await session.execute("begin")
        try await session.execute(Counting.keyed.call(number: 2))
        let reads = try await session.number(
            """
            select sum(pg_stat_get_xact_tuples_returned(indexrelid)) from pg_index
            where indrelid = 'headroom.message_keys'::regclass
            """
        )
        try await session.execute("commit")
        #expect(try #require(reads) <= 10)
    }

    @Test("the slow path locks users in the order of their ids", arguments: [0, 100, 5_000])
    func slowPath(others: Int) async throws {
        let database = try await TestDatabase.fresh()
        let users = [user(3), user(2), user(1)]
        for user in users { try await database.psql.execute("select set_plan('\(user)', 'paid')") }
        try await database.psql.execute(
            """
            insert into headroom.subscribers (user_id)
            select md5(number::text)::uuid from generate_series(1, \(others)) as number;
            analyze
            """
        )
        let session = try await Session.lane(database, preparing: "lock", EmbeddedSQL.lockAndReadUsers)
        let holder = try await Session.open(database.conninfo)
        try await holder.execute("begin; select from headroom.subscribers where user_id = '\(user(2))' for update")
        let locked = Task {
            try await session.execute(
                """
                execute lock(
                    0::smallint, array['\(user(1))', '\(user(2))', '\(user(3))']::uuid[], array[true, true, true], 'trial'
                )
                """
            )
        }
        try await database.waitUntilBlocked(1)
        for table in ["headroom.subscribers", "message_usage"] {
            let free = try await database.psql.rows(
                """
                select user_id from \(table) where user_id in ('\(user(1))', '\(user(3))') order by user_id
                for update skip locked
                """
            )
            #expect(free == (table == "message_usage" ? ["\(user(1))", "\(user(3))"] : ["\(user(3))"]))
        }
        try await holder.execute("commit")
        try await locked.value
    }
}
