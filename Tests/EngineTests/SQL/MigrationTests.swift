import Postgres
import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("Migrating")
struct MigrationTests {
    /// All objects that a migration could change, as text.
    private static let fingerprint = """
        select md5(string_agg(line, E'\\n' order by line)) from (
            select format('%s %s %s', c.oid::regclass, c.relkind, c.relfilenode) from pg_class as c
            join pg_namespace as n on n.oid = c.relnamespace and n.nspname in ('public', 'headroom')
            union all select pg_get_functiondef(p.oid) || p.xmin from pg_proc as p
            join pg_namespace as n on n.oid = p.pronamespace and n.nspname in ('public', 'headroom')
            union all select format('%s %s', words, words.xmin) from headroom.words as words
            union all select format('%s %s', plans, plans.xmin) from headroom.plans as plans
            union all select format('%s %s', revised, revised.xmin) from headroom.plan_revision as revised
        ) as lines (line)
        """

    @Test("changes nothing the second time")
    func twice() async throws {
        let database = try await TestDatabase.migrated()
        let before = try await database.psql.text(MigrationTests.fingerprint)
        let applied = try await database.psql.run { try Schema.migrate($0) }
        #expect(applied.isEmpty)
        #expect(try await database.psql.text(MigrationTests.fingerprint) == before)
        #expect(before?.count == 32)
    }

    @Test("keeps the rows of an existing table, and counts in them")
    func existingTable() async throws {
        let session = try await Session.open(try await TestServer.emptyDatabase())
        try await session.execute(
            """
            create table message_usage (
                id bigserial primary key, user_id uuid not null, billing_period text not null,
                message_count integer not null default 0, "limit" integer not null,
                updated_at timestamptz not null default now()
            );
            insert into message_usage (user_id, billing_period, message_count, "limit")
            values ('\(user(1))', '2026-11', 41, 100);
            """
        )
        _ = try await session.run { try Schema.migrate($0) }
        let fields = try await session.text("select increment_and_check_usage('\(user(1))', '2026-11', 100)")
        #expect(fields == #"{"limit": 100, "allowed": true, "remaining": 58, "current_count": 42}"#)
    }
}
