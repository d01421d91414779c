import Billing
import JSON
import Postgres
import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("A transaction or a customer that is linked with a user")
struct CustomerLinkingTests {
    private let bob = user(2)

    private func fresh() async throws -> TestDatabase { try await .withProducts(at: at("2026-11-20T12:00:00Z")) }

    /// Of the App Store: a family member's has no token.
    private func bought(by identities: [String] = []) -> Event {
        var event = Event("b", "2026-11-05", by: identities, Event.purchased("T"))
        event.source = "appstore"
        return event
    }

    private func link(
        _ database: TestDatabase,
        _ name: String = "T",
        to user: UserID,
        source: String = "appstore",
        reason: String = "ticket 1"
    ) async throws -> CustomerLinkResult {
        try await database.psql.run { connection in
            try BillingLedger(
                connection,
                deadline: .now + waitLimit,
                author: ChangeAuthor(actor: "ann", reason: reason)
            ).link(source, name, to: user)
        }
    }

    /// Applies a link that was recorded in psql.
    private func replay(_ database: TestDatabase, _ id: String) async throws -> BillingEventLog.ReplayResult? {
        try await database.psql.run { connection in
            try BillingLedger(connection, deadline: .now + waitLimit).replay(
                BillingEventLog.Name(source: "appstore", id: id)
            ) { _, _ throws(BillingError) in throw BillingError(.malformed, "not translated") }
        }
    }

    private func events(_ database: TestDatabase) async throws -> [String] {
        try await database.psql.rows(
            "select type, outcome, user_id from headroom.billing_events order by happened_at, type collate \"C\""
        )
    }

    private func applied(_ result: CustomerLinkResult) -> String? {
        if case .done(let answer) = result { answer.jsonText } else { nil }
    }

    private func problem(_ result: CustomerLinkResult) -> String? {
        switch result {
        case .done: nil
        case .notFound(let text): "not found: \(text)"
        case .invalid(let text): "invalid: \(text)"
        case .refused(let text): "refused: \(text)"
        }
    }

    @Test("gets what waited for the user, once, and what follows")
    func transaction() async throws {
        let database = try await fresh()
        #expect(try await database.psql.ingest(bought())["outcome"] == "failed")
        let answer = #"{"access":true,"events":{"applied":1},"expires":"2027-01-01T00:00:00Z","outcome":"applied","#
        #expect(
            applied(try await link(database, to: ada)) == answer + #""plan":"paid","state":"active","user":"\#(ada)"}"#
        )
        #expect(try await events(database) == ["TEST|applied|\(ada)", "LINK|applied|\(ada)"])
        #expect(applied(try await link(database, to: ada)) == #"{"events":{},"outcome":"duplicate","user":"\#(ada)"}"#)
        #expect(try await events(database).count == 2, "the second link leaves nothing")
        var cancelled = Event("c", "2026-11-20T11:00:00Z", ["kind": "cancelled", "transaction": "T"])
        cancelled.source = "appstore"
        #expect(try await database.psql.ingest(cancelled)["state"] == "cancelled")
        let trail = try await database.psql.rows(
            "select distinct actor, reason from audit_trail where user_id = '\(ada)' and actor = 'ann' order by 2"
        )
        #expect(trail == ["ann|link of appstore; ticket 1", "ann|ticket 1"])
    }

    @Test("is found by the store's id of the customer, whose later events are the user's too")
    func customer() async throws {
        let database = try await fresh()
        let digest = try #require(
            try await database.psql.text("select 'sha256:' || encode(sha256('$RCAnonymousID:1'), 'hex')")
        )
        try await database.psql.ingest(Event("b", "2026-11-05", by: [digest], Event.purchased("T")))
        #expect(applied(try await link(database, "$RCAnonymousID:1", to: ada, source: "revenuecat")) != nil)
        try await database.psql.ingest(
            Event("c", "2026-11-20T11:00:00Z", by: [digest], ["kind": "cancelled", "transaction": "T"])
        )
        #expect(try await database.usage(ada)["state"] == "cancelled")
        // By the transaction, too.
        let other = digest.replacing("sha256:", with: "sha256:f").dropLast()
        try await database.psql.ingest(Event("d", "2026-11-06", by: [String(other)], Event.purchased("T2", "large")))
        #expect(applied(try await link(database, "T2", to: bob, source: "revenuecat")) != nil)
        let renewed: [String: Any & Sendable] = ["kind": "cancelled", "transaction": "T2"]
        try await database.psql.ingest(Event("e", "2026-11-20T11:00:00Z", by: [String(other)], renewed))
        #expect(try await database.usage(bob)["state"] == "cancelled")
    }

    @Test("is refused, without a trace, if it is unknown or the store names another user")
    func refused() async throws {
        let database = try await fresh()
        let noSource = problem(try await link(database, to: ada))
        #expect(noSource?.hasPrefix("not found: no event of this source") == true)
        try await database.psql.ingest(bought(by: ["\(bob)"]))
        let before = try await database.psql.rows("select * from headroom.customer_names order by 1")
        #expect(problem(try await link(database, to: ada))?.hasPrefix("refused: it belongs to the user \(bob)") == true)
        for name in ["T2", "\(bob)"] {
            #expect(problem(try await link(database, name, to: ada))?.hasPrefix("not found: ") == true, "\(name)")
        }
        #expect(problem(try await link(database, "T\n", to: ada))?.hasPrefix("invalid: ") == true)
        #expect(try await events(database) == ["TEST|applied|\(bob)"])
        #expect(try await database.psql.rows("select * from headroom.customer_names order by 1") == before)
        #expect(try await database.psql.number("select count(*) from headroom.subscribers") == 1)
    }

    @Test("moves to another user by another link, and by an event of the store, after which links are refused")
    func corrected() async throws {
        let database = try await fresh()
        try await database.psql.ingest(bought())
        #expect(applied(try await link(database, to: bob)) != nil)
        try await database.moveClock(to: at("2026-11-20T12:01:00Z"))
        #expect(applied(try await link(database, to: ada))?.contains(#""events":{"applied":1}"#) == true)
        #expect(try await database.usage(ada)["plan"] == "paid")
        #expect(try await database.psql.rows("select user_id from headroom.subscriptions") == ["\(ada)"])
        var claimed = Event("r", "2026-11-20T12:02:00Z", by: ["\(bob)"], Event.purchased("T"))
        claimed.source = "appstore"
        try await database.psql.ingest(claimed)
        #expect(try await database.psql.rows("select user_id from headroom.subscriptions") == ["\(bob)"])
        #expect(problem(try await link(database, to: ada))?.hasPrefix("refused: ") == true)
    }

    @Test("is recorded in psql, and applied by a replay; another record replaces it before that")
    func recordedInSQL() async throws {
        let database = try await fresh()
        try await database.psql.ingest(bought())
        let first = try await database.psql.text("select headroom.link_customer('appstore', 'T', '\(bob)')")
        let id = try #require(try await database.psql.text("select headroom.link_customer('appstore', 'T', '\(ada)')"))
        #expect(first == id)
        #expect(try await events(database) == ["TEST|failed", "LINK|failed|\(ada)"])
        #expect(try await replay(database, id) == BillingEventLog.ReplayResult(outcome: "applied", problem: nil))
        #expect(try await events(database) == ["TEST|applied|\(ada)", "LINK|applied|\(ada)"])
        // As any event.
        #expect(try await replay(database, id) == BillingEventLog.ReplayResult(outcome: "applied", problem: nil))
        #expect(try await database.psql.rows("select user_id, plan from headroom.subscriptions") == ["\(ada)|paid"])
    }

    @Test("that was recorded in psql and contradicts the store is not applied")
    func refusedInSQL() async throws {
        let database = try await fresh()
        try await database.psql.ingest(bought(by: ["\(bob)"]))
        let id = try #require(try await database.psql.text("select headroom.link_customer('appstore', 'T', '\(ada)')"))
        let replayed = try await replay(database, id)
        #expect(replayed?.outcome == "failed" && replayed?.problem?.contains("\(bob)") == true)
        #expect(try await database.psql.rows("select user_id from headroom.subscriptions") == ["\(bob)"])
    }

    @Test("is forgotten with its user, after which another link is possible")
    func forgotten() async throws {
        let database = try await fresh()
        try await database.psql.ingest(bought())
        _ = try await link(database, to: bob)
        try await database.psql.execute("select forget_user('\(bob)')")
        #expect(
            try await database.psql.number(
                "select count(*) from headroom.billing_events as events where events::text like '%\(bob)%'"
            ) == 0
        )
        var renewed = Event("r", "2026-11-20T12:00:00Z", Event.purchased("T"))
        renewed.source = "appstore"
        #expect(try await database.psql.ingest(renewed)["outcome"] == "failed")
        #expect(applied(try await link(database, to: ada)) != nil)
        #expect(try await database.usage(ada)["plan"] == "paid")
    }
}
