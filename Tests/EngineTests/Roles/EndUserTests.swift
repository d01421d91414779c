import Foundation
import Postgres
import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("An end user behind PostgREST")
struct EndUserTests {
    /// The source of the signed-in user.
    enum SignIn: CaseIterable, Sendable {
        case claims
        case claimSettings
    }

    /// User 1 with two periods, user 2 with one.
    private func withClient(
        _ signIn: SignIn,
        subject: String?,
        _ body: (PostgRESTClient, TestDatabase) async throws -> Void
    ) async throws {
        let database = try await TestDatabase.fresh()
        try await database.psql.execute(
            """
            select from set_plan('\(user(1))', 'paid');
            select from increment_and_check_usage('\(user(1))', 5);
            insert into message_usage (user_id, billing_period, message_count, "limit")
            values ('\(user(1))', '2019-07', 1, 100);
            select from increment_and_check_usage('\(user(2))', 9);
            """
        )
        // PostgREST's login: it may only act as the role in a token.
        let authenticator = "authenticator_" + (try await database.psql.text("current_database()") ?? "")
        try await database.psql.execute(
            "create role \(authenticator) login noinherit; grant headroom_user, pg_signal_backend to \(authenticator)"
        )
        let session = try await Session.open(database.conninfo)
        try await session.execute("set session authorization \(authenticator)")
        let client = PostgRESTClient(session: session, subject: subject, hasClaimSettings: signIn == .claimSettings)
        try await body(client, database)
        try await session.execute("reset session authorization")
        try await database.psql.execute("drop role \(authenticator)")
    }

    private func rows(_ reply: PostgRESTClient.Reply) throws -> [[String: Any]] {
        guard case .body(let text) = reply else {
            Issue.record("refused: \(reply)")
            return []
        }
        return try #require(JSONSerialization.jsonObject(with: Data(text.utf8)) as? [[String: Any]])
    }

    private func object(_ reply: PostgRESTClient.Reply) throws -> [String: Any] {
        guard case .body(let text) = reply else {
            Issue.record("refused: \(reply)")
            return [:]
        }
        return try #require(JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    }

    @Test("reads only the own row of the open period, under the names that clients decode", arguments: SignIn.allCases)
    func reading(signIn: SignIn) async throws {
        try await withClient(signIn, subject: "\(user(1))") { client, _ in
            let names = "user_id,billing_period,message_count,limit,updated_at"
            for columns in [names, "*"] {
                let own = try rows(try await client.get(user: "\(user(1))", select: columns))
                #expect(own.compactMap { $0["message_count"] as? Int } == [5])
                #expect(own.allSatisfy { $0["user_id"] as? String == "\(user(1))" })
                if columns == names {
                    #expect(own.allSatisfy { Set($0.keys) == Set(names.split(separator: ",").map(String.init)) })
                }
                #expect(try rows(try await client.get(user: "\(user(2))", select: columns)).isEmpty)
            }
        }
    }

    @Test("counts own messages, by both forms of the function", arguments: SignIn.allCases)
    func counting(signIn: SignIn) async throws {
        try await withClient(signIn, subject: "\(user(1))") { client, database in
            let answer = try object(
                try await client.increment(#"{"p_user_id": "\#(user(1))", "p_messages": 2}"#, .planAware)
            )
            #expect(answer["status"] as? String == "ALLOWED")
            #expect(answer["used"] as? Int == 7)
            #expect(answer["remaining"] as? Int == 793)
            let next = try object(try await client.increment(#"{"p_user_id": "\#(user(1))"}"#, .planAwareWithDefault))
            #expect(next["used"] as? Int == 8)
            let period = try await database.psql.text("to_char(headroom.now() at time zone 'UTC', 'YYYY-MM')") ?? ""
            let legacy = try object(
                try await client.increment(
                    #"{"p_user_id": "\#(user(1))", "p_billing_period": "\#(period)", "p_limit": 800}"#,
                    .ownPeriod
                )
            )
            #expect(legacy["allowed"] as? Bool == true)
            #expect(legacy["current_count"] as? Int == 9)
            #expect(legacy["limit"] as? Int == 800)
            #expect(legacy["remaining"] as? Int == 791)
            #expect(try await database.count(of: user(1), period: period) == 9)
        }
    }

    @Test("counts with a model, and as a member of the own account as the user alone")
    func parts() async throws {
        try await withClient(.claims, subject: "\(user(1))") { client, database in
            try await database.psql.execute(
                "insert into headroom.plan_limits (plan, kind, name, allowance) values "
                    + "('paid', 'model', 'large', 5), ('paid', 'member', '*', 3)"
            )
            func body(_ member: String) -> String {
                #"{"p_user_id": "\#(user(1))", "p_model": "large", "p_member": \#(member)}"#
            }
            for (member, used) in [("null", 1), ("\"\(user(1))\"", 2)] {
                let answer = try object(try await client.increment(body(member), .withParts))
                #expect(answer["model_used"] as? Int == used)
                #expect(answer["member_used"] as? Int == (used == 1 ? nil : 1))
            }
            #expect(try await client.increment(body("\"\(user(2))\""), .withParts) == .refused("42501"))
        }
    }

    @Test("cannot count for others or for future months, and cannot change rows")
    func denials() async throws {
        for signIn in SignIn.allCases {
            try await withClient(signIn, subject: "\(user(1))") { client, database in
                let before = try await database.psql.text(
                    "select string_agg(usage::text, ',' order by usage) from message_usage as usage"
                )
                for (body, form) in [
                    (#"{"p_user_id": "\#(user(2))", "p_messages": 1}"#, PostgRESTClient.Form.planAware),
                    (#"{"p_user_id": null, "p_messages": 1}"#, .planAware),
                    (#"{"p_user_id": "\#(user(2))", "p_billing_period": "trial", "p_limit": 5}"#, .ownPeriod),
                ] {
                    let reply = try await client.increment(body, form)
                    #expect(reply == .refused("42501"), "\(body)")
                }
                for label in ["9999-01", "2019-07", "open", "made_up"] {
                    let reply = try await client.increment(
                        #"{"p_user_id": "\#(user(1))", "p_billing_period": "\#(label)", "p_limit": 5}"#,
                        .ownPeriod
                    )
                    #expect(reply == .refused("22023"), "\(label)")
                }
                for statement in [
                    #"UPDATE "public"."message_usage" SET "message_count" = 0"#,
                    #"DELETE FROM "public"."message_usage""#,
                    #"INSERT INTO "public"."message_usage"("user_id", "billing_period") VALUES ('\#(user(1))', '2026-12')"#,
                ] {
                    #expect(try await client.change(statement) == .refused("42501"), "\(statement)")
                }
                let after = try await database.psql.text(
                    "select string_agg(usage::text, ',' order by usage) from message_usage as usage"
                )
                #expect(after == before)
            }
        }
    }

    @Test("without a sign-in, or with an invalid subject, sees no row and counts nothing", arguments: SignIn.allCases)
    func anonymous(signIn: SignIn) async throws {
        for subject in [nil, "", "auth0|1", "x' or true --"] {
            try await withClient(signIn, subject: subject) { client, _ in
                #expect(try rows(try await client.get(user: "\(user(1))", select: "*")).isEmpty)
                let reply = try await client.increment(#"{"p_user_id": "\#(user(1))", "p_messages": 1}"#, .planAware)
                #expect(reply == .refused("42501"))
            }
        }
    }

    @Test("is identified by the claims, and not by auth.uid(), which anybody may define")
    func plantedAuthUID() async throws {
        try await withClient(.claims, subject: "\(user(1))") { client, database in
            try await database.psql.execute(
                """
                create schema auth;
                create function auth.uid() returns uuid language sql stable as $$ select '\(user(2))'::uuid $$;
                grant usage on schema auth to public;
                """
            )
            #expect(try rows(try await client.get(user: "\(user(1))", select: "*")).count == 1)
        }
    }

    @Test("has no access with a role without grants")
    func otherRole() async throws {
        try await withClient(.claims, subject: "\(user(1))") { client, _ in
            var stranger = client
            stranger.role = "pg_signal_backend"
            #expect(try await stranger.get(user: "\(user(1))", select: "*") == .refused("42501"))
            let reply = try await stranger.increment(#"{"p_user_id": "\#(user(1))", "p_messages": 1}"#, .planAware)
            #expect(reply == .refused("42501"))
        }
    }
}
