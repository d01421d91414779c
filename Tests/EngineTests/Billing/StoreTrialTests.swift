import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("A store trial")
struct StoreTrialTests: BillingSuite {
    private func trial(_ id: String, of user: String, _ start: String, until end: String) -> Event {
        Event(id, start, by: [user], Event.purchased(id, expires: end, period: "trial"))
    }

    @Test("beside an unenforced trial lasts, whatever was sent in that one")
    func besideUnenforcedTrial() async throws {
        let database = try await fresh("2026-11-10T00:00:00Z")
        try await database.psql.execute("update headroom.plans set enforced = false where plan = 'trial'")
        _ = try await database.consume(user(1), 140)
        try await database.moveClock(to: at("2026-11-11T00:00:00Z"))
        let answer = try await database.psql.ingest(trial("T", of: ada, "2026-11-11", until: "2026-11-18"))
        #expect(answer["state"] == "trial" && answer["expires"] == "2026-11-18T00:00:00Z")
        try await database.moveClock(to: at("2026-11-17T00:00:00Z"))
        #expect(try await database.consume(user(1))["used"] == "141")
    }

    @Test("bought after the messages were used up gives access at once, and whatever happens to them later")
    func afterMessages() async throws {
        let database = try await fresh("2026-11-10T12:00:00Z")
        _ = try await database.consume(user(1), 100)
        // The store's clock is behind, and the trial began before the first message.
        let bought = trial("T", of: ada, "2026-11-10T11:59:58Z", until: "2026-11-17")
        let answer = try await database.psql.ingest(bought)
        #expect(answer["plan"] == "paid" && answer["access"] == "true")
        #expect(try await database.consume(user(1))["limit"] == "800")
        try await database.moveClock(to: at("2026-11-10T13:00:00Z"))
        for change in ["reset_usage('\(ada)', 'trial')", "grant_messages('\(ada)', 5)"] {
            try await database.psql.execute("select \(change)")
            try await database.psql.replay(bought)
            #expect(try await database.consume(user(1))["plan"] == "paid", "\(change)")
        }
    }

    @Test("stays a trial if the messages are used up after it arrived")
    func messagesUsedUpLater() async throws {
        let database = try await fresh("2026-11-10T12:00:00Z")
        _ = try await database.consume(user(1), 40)
        let bought = trial("T", of: ada, "2026-11-10T12:00:00Z", until: "2026-11-17")
        #expect(try await database.psql.ingest(bought)["plan"] == "trial")
        try await database.moveClock(to: at("2026-11-10T12:10:00Z"))
        _ = try await database.consume(user(1), 60)
        try await database.moveClock(to: at("2026-11-10T13:00:00Z"))
        try await database.psql.replay(bought)
        try await database.psql.ingest(Event("c", "2026-11-10T12:30:00Z", ["kind": "cancelled", "transaction": "T"]))
        #expect(try await database.consume(user(1))["reason"] == "trial_limit_reached")
        let second = trial("T2", of: ada, "2026-11-10T13:00:00Z", until: "2026-11-17")
        #expect(try await database.psql.ingest(second)["plan"] == "paid", "the store's own trial is spent as well")
        // The replay has not moved the first trial's arrival behind the last message.
        try await database.psql.replay(second)
        let plans = try await database.psql.rows(
            """
            select plan from headroom.subscriptions
            where original_transaction_id like 'T%' order by original_transaction_id
            """
        )
        #expect(plans == ["trial", "paid"])
    }

    @Test("bought while all remaining messages are held has the regular plan")
    func messagesHeld() async throws {
        let database = try await fresh("2026-11-10T12:00:00Z")
        _ = try await database.consume(user(1), 90)
        try await database.hold(10, of: user(1))
        let bought = trial("T", of: ada, "2026-11-10T12:00:00Z", until: "2026-11-17")
        #expect(try await database.psql.ingest(bought)["plan"] == "paid")
        #expect(try await database.consume(user(1))["plan"] == "paid")
    }

    @Test("gives access if all earlier subscriptions have ended, and none beside a refund of a running one")
    func afterSubscription() async throws {
        let database = try await fresh("2026-11-14T00:00:00Z")
        try await database.psql.ingest(
            Event("bought", "2026-10-01", by: [ada], Event.purchased("T1", expires: "2026-11-01"))
        )
        let answer = try await database.psql.ingest(trial("T2", of: ada, "2026-11-14", until: "2026-11-21"))
        #expect(answer["plan"] == "trial" && answer["access"] == "true")
        try await database.psql.ingest(Event("more", "2026-11-13", by: [ada], Event.purchased("T3")))
        let revoked: [String: Any & Sendable] = ["kind": "revoked", "transaction": "T3"]
        try await database.moveClock(to: at("2026-11-15T00:00:00Z"))
        let after = try await database.psql.ingest(Event("refund", "2026-11-15", revoked))
        #expect(after["plan"] == "paid" && after["reason"] == "revoked")
    }

    @Test("counts for its earlier owner also after the new owner was forgotten", arguments: [false, true])
    func forgottenReceiver(isBoughtByDigest: Bool) async throws {
        let database = try await fresh("2026-11-20T00:00:00Z")
        let psql = database.psql
        try await psql.ingest(trial("T1", of: isBoughtByDigest ? digest(1) : ada, "2026-11-02", until: "2026-11-05"))
        if isBoughtByDigest {
            try await psql.ingest(Event("alias", "2026-11-03", ["kind": "merged", "identities": [ada, digest(1)]]))
        }
        try await psql.ingest(Event("to bob", "2026-11-10", Event.transferred(from: [ada], to: [bob])))
        let started = """
            select headroom.instant_text(store_trial_started_at) from headroom.subscribers where user_id = '\(ada)'
            """
        #expect(try await psql.text(started) == "2026-11-02T00:00:00Z")
        try await psql.execute("select forget_user('\(bob)')")
        #expect(try await psql.number("select count(*) from headroom.billing_events where user_id = '\(bob)'") == 0)
        // Ada's next event reduces her whole history again.
        try await psql.ingest(trial("T2", of: ada, "2026-11-20", until: "2026-11-27"))
        #expect(try await psql.text(started) == "2026-11-02T00:00:00Z")
        #expect(
            try await psql.rows("select plan from headroom.subscriptions") == ["paid"],
            "the second subscription is no trial"
        )
        #expect(try await psql.number("select count(*) from headroom.billing_events where outcome = 'failed'") == 0)
        try await psql.execute("select forget_user('\(ada)')")
        #expect(try await psql.rows("select distinct outcome from headroom.billing_events") == ["forgotten"])
    }
}
