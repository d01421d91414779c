import Postgres
import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("A token, in SQL")
struct TokenTests {
    private func create(_ name: String, _ digest: String, scopes: String = "{chat}", expires: String = "null") -> String
    {
        "headroom.create_token('\(name)', '\(scopes)', sha256('\(digest)'), \(expires))"
    }

    /// Live tokens by name, as the service reads them.
    private func live(_ psql: Session) async throws -> [String] {
        try await psql.run { connection in
            try TokenSnapshot(connection, deadline: .now + waitLimit).tokens.map(\.name)
        }
    }

    @Test("is live until it is revoked, and its row stays")
    func life() async throws {
        let psql = try await TestDatabase.fresh().psql
        try await psql.execute("set headroom.actor = 'ann'")
        let id = try #require(try await psql.number("select \(create("backend", "a", scopes: "{chat,dashboard}"))"))
        #expect(try await live(psql) == ["backend"])
        #expect(try await psql.text("select created_by from headroom.tokens") == "ann")
        try await psql.execute("set headroom.actor = 'bob'")
        #expect(try await psql.text("select headroom.revoke_token(\(id))") == "backend")
        #expect(try await live(psql) == [])
        let when = try await psql.text("select revoked_at from headroom.tokens where revoked_by = 'bob'")
        try await psql.execute("set headroom.actor = 'eve'; select headroom.revoke_token(\(id))")
        #expect(try await psql.text("select revoked_at from headroom.tokens where revoked_by = 'bob'") == when)
        #expect(try await psql.sqlState(of: "select headroom.revoke_token(\(id + 1))") == "P0002")
    }

    @Test("may share its name with another token, but not its digest")
    func rotation() async throws {
        let psql = try await TestDatabase.fresh().psql
        let first = try #require(try await psql.number("select \(create("backend", "a"))"))
        try await psql.execute("select \(create("backend", "b"))")
        #expect(try await live(psql) == ["backend", "backend"])
        try await psql.execute("select headroom.revoke_token(\(first))")
        #expect(try await live(psql) == ["backend"])
        #expect(try await psql.sqlState(of: "select \(create("other", "a"))") == "23505")
    }

    @Test("expires by the database's clock")
    func expiry() async throws {
        let database = try await TestDatabase.fresh(at: at("2026-11-10T12:00:00Z"))
        let psql = database.psql
        try await psql.execute("select \(create("short", "a", expires: "'2026-11-10T13:00:00Z'"))")
        let before = ContinuousClock.now
        let reading = try await psql.run { try TokenSnapshot($0, deadline: .now + waitLimit) }
        let end = try #require(reading.tokens.first?.expiresAt)
        #expect(
            (before + .seconds(3_600)...ContinuousClock.now + .seconds(3_600)).contains(end),
            "an hour after the read"
        )
        try await database.moveClock(to: at("2026-11-10T13:00:00Z"))
        let after = try await psql.run { try TokenSnapshot($0, deadline: .now + waitLimit) }
        #expect(after.tokens.isEmpty && after.wasEverCreated)
        let late = create("late", "b", expires: "'2026-11-10T12:00:00Z'")
        #expect(try await psql.sqlState(of: "select \(late)") == "22023")
    }

    @Test(
        "with invalid values is rejected",
        arguments: [
            "headroom.create_token('Backend', '{chat}', sha256('a'))",
            "headroom.create_token('two words', '{chat}', sha256('a'))",
            "headroom.create_token('', '{chat}', sha256('a'))",
            "headroom.create_token(repeat('a', 65), '{chat}', sha256('a'))",
            "headroom.create_token('default', '{chat}', sha256('a'))",
            "headroom.create_token('backend', '{}', sha256('a'))",
            "headroom.create_token('backend', '{admin}', sha256('a'))",
            "headroom.create_token('backend', '{chat,null}', sha256('a'))",
            "headroom.create_token('backend', '{chat}', 'a')",
        ]
    )
    func meaningless(_ call: String) async throws {
        let psql = try await TestDatabase.fresh().psql
        #expect(try await psql.sqlState(of: "select \(call)") == "23514")
        #expect(try await live(psql) == [])
        #expect(try await psql.run { try TokenSnapshot($0, deadline: .now + waitLimit).wasEverCreated } == false)
    }

    @Test("is one of at most 1,000 live tokens; revoked and expired ones do not count")
    func limit() async throws {
        let database = try await TestDatabase.fresh(at: at("2026-11-10T12:00:00Z"))
        let psql = database.psql
        try await psql.execute(
            """
            select headroom.create_token('many', '{chat}', sha256(number::text::bytea),
                case when number = 1 then timestamptz '2026-11-11' end) from generate_series(1, 1000) as number
            """
        )
        #expect(try await psql.sqlState(of: "select \(create("more", "a"))") == "54000")
        try await psql.execute("select headroom.revoke_token(500)")
        try await psql.execute("select \(create("more", "a"))")
        #expect(try await psql.sqlState(of: "select \(create("more", "b"))") == "54000")
        try await database.moveClock(to: at("2026-11-11T00:00:00Z"))
        try await psql.execute("select \(create("more", "b"))")
    }

    @Test("stays revoked, and keeps its first revoker")
    func records() async throws {
        let psql = try await TestDatabase.fresh().psql
        try await psql.execute("set headroom.actor = 'ann'; select \(create("backend", "a"))")
        try await psql.execute("select headroom.revoke_token(1)")
        let restore = "update headroom.tokens set revoked_at = null, revoked_by = null"
        #expect(try await psql.sqlState(of: restore) == "55000")
        try await psql.execute("update headroom.tokens set created_by = 'eve', revoked_by = 'eve'")
        let record = "select created_by || ' ' || revoked_by from headroom.tokens"
        #expect(try await psql.text(record) == "ann ann")
        // Also not by a role that may write its other columns.
        try await psql.execute("select \(create("other", "b"))")
        try await psql.execute(
            """
            set role headroom_operator; set headroom.actor = '';
            update headroom.tokens set revoked_at = '-infinity' where id = 2
            """
        )
        #expect(try await psql.text("select revoked_by from headroom.tokens where id = 2") == "headroom_operator")
        #expect(try await psql.text("select revoked_at > '2020-01-01' from headroom.tokens where id = 2") == "true")
    }

    @Test("notifies listeners when it is created or revoked, and not when it is used")
    func notifications() async throws {
        let database = try await TestDatabase.fresh()
        let listener = try await Session.open(database.conninfo)
        try await listener.execute("listen headroom_tokens")
        func isNotified(after statement: String) async throws -> Bool {
            try await database.psql.execute(statement)
            return try await listener.run { connection in
                // Earlier notifications arrive with this answer.
                try connection.execute("select", deadline: .now + waitLimit)
                return try connection.takeNotifications()
            }
        }
        #expect(try await isNotified(after: "select \(create("backend", "a"))"))
        #expect(try await isNotified(after: "update headroom.tokens set last_used_at = now()") == false)
        #expect(try await isNotified(after: "select headroom.revoke_token(1)"))
        #expect(try await isNotified(after: "delete from headroom.tokens"))
        #expect(try await isNotified(after: "select") == false)
    }

    @Test("is marked as used once a minute, by any number of instances")
    func use() async throws {
        let database = try await TestDatabase.fresh(at: at("2026-11-10T12:00:00Z"))
        let psql = database.psql
        try await psql.execute("select \(create("backend", "a")); select \(create("other", "b"))")
        func mark() async throws -> String? {
            try await psql.run { try TokenSnapshot.markUsed([1, 99], on: $0, deadline: .now + waitLimit) }
            return try await psql.text(
                """
                select string_agg(coalesce(to_char(last_used_at at time zone 'UTC', 'HH24:MI:SS'), 'never'), ' ' order by id)
                from headroom.tokens
                """
            )
        }
        #expect(try await mark() == "12:00:00 never")
        try await database.moveClock(to: at("2026-11-10T12:01:00Z"))
        #expect(try await mark() == "12:00:00 never")
        try await database.moveClock(to: at("2026-11-10T12:01:01Z"))
        #expect(try await mark() == "12:01:01 never")
    }
}
