import Postgres
import TestSupport
import Testing

@testable import Engine

@Suite("A row of a token with values that its checks do not allow")
struct InvalidTokenTests {
    /// One change for each way in which a token's row can be invalid.
    private static let badTokens = [
        "expires_at = 'infinity'", "expires_at = '-infinity'", "expires_at = '294276-12-31'",
        "expires_at = '1999-12-31'", "name = null", "name = E'a\\nb'", "name = 'default'", "name = repeat('a', 65)",
        "scopes = null", "scopes = '{}'", "scopes = '{admin}'", "scopes = '{chat,null}'",
        "scopes = '{chat,chat,chat,chat}'", "digest = null", "digest = 'a'", "digest = sha256('first')",
    ]

    @Test("leaves the other tokens live, and is reported with its problem")
    func tokens() async throws {
        let database = try await TestDatabase.fresh()
        let psql = database.psql
        let last = Self.badTokens.count + 2
        try await psql.execute(
            """
            do $$
            declare
                v_rule record;
            begin
                for v_rule in
                    select conname from pg_constraint
                    where conrelid = 'headroom.tokens'::regclass and contype in ('c', 'u')
                loop
                    execute format('alter table headroom.tokens drop constraint %I', v_rule.conname);
                end loop;
            end
            $$;
            alter table headroom.tokens
                alter name drop not null, alter scopes drop not null, alter digest drop not null;
            select headroom.create_token('first', '{chat}', sha256('first'));
            """
        )
        for (index, change) in Self.badTokens.enumerated() {
            try await psql.execute(
                """
                select headroom.create_token('secret', '{chat}', sha256('\(index)'));
                update headroom.tokens set \(change) where id = \(index + 2);
                """
            )
        }
        try await psql.execute(
            """
            select headroom.create_token('last', '{chat,dashboard}', sha256('last'));
            -- Without the trigger that protects created_at, as a restore does it.
            set session_replication_role = replica;
            update headroom.tokens set created_at = 'infinity' where name = 'last';
            set session_replication_role = origin;
            """
        )
        let snapshot = try await psql.run { try TokenSnapshot($0, deadline: .now + waitLimit) }
        #expect(snapshot.tokens.map(\.id) == [1, Int64(last)])
        #expect(snapshot.invalid.map(\.id) == Array(2..<Int64(last)))
        #expect(snapshot.invalid.allSatisfy { !$0.problem.isEmpty && !$0.problem.contains("secret") })
        #expect(snapshot.tokens.last?.scopes == ["chat", "dashboard"])
        // The list shows all tokens, and which of them are invalid.
        let conninfo = database.conninfo
        let entries = try await onThread { try TokenRegistry(database: DatabaseTopology(conninfo)).list() }
        let states = entries.reversed().map(\.state)
        // The row with a duplicate digest is invalid only beside the other one.
        #expect(states == ["live"] + Array(repeating: "invalid", count: last - 3) + ["live", "live"])
        #expect(entries.first?.createdAt == nil)
        // A restored check prevents an update of the row that violates it, and of no other row.
        try await psql.execute(
            "alter table headroom.tokens add check (created_at < '10000-01-01T00:00:00Z') not valid"
        )
        try await psql.run { try TokenSnapshot.markUsed([Int64(last), 1], on: $0, deadline: .now + waitLimit) }
        #expect(try await psql.number("select id from headroom.tokens where last_used_at is not null") == 1)
    }
}
