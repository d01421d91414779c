import Billing
import Foundation
import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("Stored billing events")
struct NotificationStorageTests: BillingSuite {
    /// The tables and columns that contain a text.
    private func columns(of text: String, _ psql: Session) async throws -> [String] {
        let rows = try await psql.rows(
            """
            select columns.table_schema, columns.table_name, columns.column_name
            from information_schema.columns join information_schema.tables using (table_schema, table_name)
            where table_schema in ('headroom', 'public') and table_type = 'BASE TABLE' order by 1, 2, 3
            """
        )
        var columns: [String] = []
        for column in rows.map({ $0.split(separator: "|") }) {
            let found = try await psql.text(
                "select exists (select from \(column[0]).\(column[1]) where \"\(column[2])\"::text like '%\(text)%')"
            )
            if found == "true" { columns.append("\(column[1]).\(column[2])") }
        }
        return columns
    }

    /// An event translated from its stored payload.
    private func stored(_ id: String, _ psql: Session) async throws -> BillingEvent {
        var event = try Event(id, "2026-11-05").billingEvent
        let row = "from headroom.billing_events where id = '\(id)'"
        event.at = at(try #require(try await psql.text("select headroom.instant_text(happened_at) \(row)")))
        event.identities = try await psql.rows("select unnest(identities) \(row)")
        let effects = try #require(try await psql.text("select effects::text \(row)"))
        event.effects = try JSONDecoder().decode([BillingEffect].self, from: Data(effects.utf8))
        return event
    }

    @Test("forgetting the former owner of a subscription leaves it with its present owner")
    func forgottenBetweenOthers() async throws {
        let psql = try await fresh().psql
        try await psql.ingest(Event("b", "2026-11-05", by: [ada], Event.purchased("T")))
        try await psql.ingest(Event("t1", "2026-11-06", Event.transferred(from: [ada], to: [bob])))
        try await psql.ingest(Event("t2", "2026-11-07", Event.transferred(from: [bob], to: [cleo])))
        try await psql.execute("select forget_user('\(bob)')")
        #expect(try await columns(of: bob, psql) == [])
        let cancelled: [String: Any & Sendable] = ["kind": "cancelled", "transaction": "T"]
        let answer = try await psql.ingest(Event("c", "2026-11-08", cancelled))
        #expect(answer["user"] == cleo && answer["state"] == "cancelled")
        #expect(try await psql.rows("select user_id from headroom.subscriptions") == [cleo])
    }

    @Test("an event of a forgotten user is not applied, also not by a running replay")
    func forgottenWhileReplayed() async throws {
        let psql = try await fresh().psql
        let bought = Event("b", "2026-11-05", by: [ada], Event.purchased("T"))
        try await psql.ingest(bought)
        try await psql.execute("select forget_user('\(ada)')")
        #expect(try await psql.replay(bought)["outcome"] == "duplicate")
        #expect(try await columns(of: ada, psql) == [])
        #expect(try await psql.number("select count(*) from headroom.subscriptions") == 0)
    }

    @Test("whose ids and transactions differ by Unicode normalization only are two, as in the database")
    func exactIds() async throws {
        let psql = try await fresh().psql
        let (composed, decomposed) = ("\u{E9}", "e\u{301}")
        for (name, person) in [(composed, ada), (decomposed, bob)] {
            let answer = try await psql.ingest(Event(name, "2026-11-05", by: [person], Event.purchased(name)))
            #expect(answer["outcome"] == "applied")
        }
        try await psql.ingest(Event("r", "2026-11-06", by: [ada], ["kind": "revoked", "transaction": composed]))
        #expect(
            try await psql.rows("select user_id, revoked_at is null from headroom.subscriptions order by 1")
                == ["\(ada)|false", "\(bob)|true"]
        )
        // Two of one user: both rows are written, and neither is removed for the other.
        for name in [composed, decomposed] {
            try await psql.ingest(Event("2\(name)", "2026-11-07", by: [bob], Event.purchased("2\(name)")))
        }
        let rows = "select count(*) from headroom.subscriptions where user_id = '\(bob)'"
        #expect(try await psql.number(rows) == 3)
    }

    @Test("have a plan's new name after it was renamed")
    func renamedPlan() async throws {
        let psql = try await fresh().psql
        try await psql.ingest(Event("b", "2026-11-05", by: [ada], Event.purchased("T")))
        try await psql.execute("update headroom.plans set plan = 'premium' where plan = 'paid'")
        let cancelled: [String: Any & Sendable] = ["kind": "cancelled", "transaction": "T"]
        let answer = try await psql.ingest(Event("c", "2026-11-08", cancelled))
        #expect(answer["outcome"] == "applied" && answer["plan"] == "premium" && answer["state"] == "cancelled")
    }

    @Test("of a forgotten user have no identities")
    func forgotten() async throws {
        let psql = try await fresh().psql
        for (number, person) in [(1, ada), (2, bob)] {
            try await psql.ingest(
                Event("b\(number)", "2026-11-05", by: [digest(number), person], Event.purchased("T\(number)"))
            )
            try await psql.ingest(
                Event("c\(number)", "2026-11-06", ["kind": "cancelled", "transaction": "T\(number)"])
            )
            try await psql.ingest(
                Event(
                    "g\(number)",
                    "2026-11-06",
                    by: [person],
                    ["kind": "granted", "transaction": "G\(number)", "product": "pack"]
                )
            )
            try await psql.ingest(
                Event("f\(number)", "2026-11-06", by: [person], Event.purchased("F\(number)", "no such product"))
            )
            try await psql.ingest(
                Event("m\(number)", "2026-11-07", ["kind": "merged", "identities": [person, digest(10 + number)]])
            )
            try await psql.ingest(
                Event("x\(number)", "2026-11-08", Event.transferred(from: [digest(20 + number)], to: [person]))
            )
        }
        let names = [ada, digest(1), digest(11)]
        #expect(try await columns(of: ada, psql).count > 8)
        let others = try await columns(of: bob, psql)
        #expect(try #require(try await psql.number("select forget_user('\(ada)')")) > 12)
        for name in names { #expect(try await columns(of: name, psql) == [], "\(name)") }
        #expect(try await columns(of: "T1", psql) == [], "also not the transaction")
        #expect(try await columns(of: bob, psql) == others, "other users are not forgotten")
        let stored = try await psql.rows(
            """
            select distinct outcome, identities = '{}' as empty, coalesce(effects, payload, resulting_entitlement) is null as blank
            from headroom.billing_events where id like '_1'
            """
        )
        #expect(stored == ["forgotten|true|true"])
        #expect(try await psql.number("select count(*) from headroom.billing_events where id like '_1'") == 6)
        let again = try await psql.ingest(Event("b1", "2026-11-05", by: [digest(1), ada], Event.purchased("T1")))
        #expect(again == ["outcome": "duplicate"], "a repetition does not restore the user")
        #expect(try await psql.number("select forget_user('\(ada)')") == 0)
        #expect(try await psql.number("select count(*) from headroom.customers") == 1)
    }

    @Test("a replay keeps the owner of a subscription that a forgotten user transferred")
    func forgottenGiver() async throws {
        let psql = try await fresh().psql
        try await psql.ingest(Event("b", "2026-11-05", by: [ada, digest(1)], Event.purchased("T")))
        try await psql.ingest(Event("t", "2026-11-06", Event.transferred(from: [ada, digest(1)], to: [bob])))
        try await psql.execute("select forget_user('\(ada)')")
        for name in [ada, digest(1)] { #expect(try await columns(of: name, psql) == []) }
        let answer = try await psql.ingest(Event("c", "2026-11-07", ["kind": "cancelled", "transaction": "T"]))
        #expect(answer["user"] == bob && answer["state"] == "cancelled")
        try await psql.ingest(Event("late", "2026-11-05T01:00:00Z", Event.purchased("T", "large")))
        #expect(try await psql.text("select user_id from headroom.subscriptions") == bob)
    }

    @Test("of other users are kept without the identities of a forgotten user, and can still be applied")
    func forgottenBesideOthers() async throws {
        let psql = try await fresh().psql
        try await psql.ingest(Event("b", "2026-11-05", by: [ada, digest(1)], Event.purchased("T")))
        try await psql.ingest(Event("t", "2026-11-06", Event.transferred(from: [ada, digest(1)], to: [bob])))
        let lacking = Event.purchased("F", "not mapped yet")
        try await psql.ingest(Event("f", "2026-11-07", by: [bob, ada], lacking))
        try await psql.ingest(Event("own", "2026-11-07", by: [ada, bob], Event.purchased("F2", "not mapped yet")))
        try await psql.execute(
            "update headroom.billing_events set payload = jsonb_build_object('id', '\(ada)') where id = 'f'"
        )
        try await psql.execute("select forget_user('\(ada)')")
        for name in [ada, digest(1), "F2"] { #expect(try await columns(of: name, psql) == [], "\(name)") }
        let left = try await psql.rows("select id, outcome, user_id from headroom.billing_events order by id")
        #expect(left == ["b|applied|\(bob)", "f|failed|\(bob)", "own|forgotten", "t|applied|\(bob)"])
        try await psql.execute("select headroom.map_product('revenuecat', 'not mapped yet', 'pro')")
        // A replay applies them to the same user.
        for id in ["f", "t", "b"] {
            let answer = try await psql.replay(try await stored(id, psql))
            #expect(answer["user"] == bob && answer["plan"] == "pro", "\(id)")
        }
        #expect(try await psql.rows("select distinct user_id from headroom.subscriptions") == [bob])
        #expect(try await psql.number("select count(*) from headroom.subscriptions") == 2)
    }

    @Test("lose their payload after 400 days, and keep their effects")
    func pruned() async throws {
        let psql = try await fresh().psql
        try await psql.ingest(Event("old", "2026-11-05", by: [ada], Event.purchased("T")))
        try await psql.ingest(Event("failed", "2026-11-05", by: [ada], Event.purchased("T2", "no such product")))
        try await psql.execute("update headroom.test_clock set at = '2027-12-20'")
        try await psql.ingest(Event("new", "2027-12-20", by: [ada], Event.purchased("T3")))
        try await psql.execute("update headroom.test_clock set at = '2027-12-25T12:00:01Z'")
        #expect(try await psql.number("select headroom.prune_billing_events(p_limit => 1)") == 1)
        #expect(try await psql.number("select headroom.prune_billing_events()") == 1)
        #expect(try await psql.number("select headroom.prune_billing_events()") == 0)
        let stored = try await psql.rows(
            """
            select id, payload is not null as has_payload, effects is not null as has_effects, user_id
            from headroom.billing_events order by id
            """
        )
        #expect(stored == ["failed|false|true|\(ada)", "new|true|true|\(ada)", "old|false|true|\(ada)"])
        #expect(try await psql.sqlState(of: "select headroom.prune_billing_events('29 days')") == "22023")
        #expect(
            try await psql.ingest(Event("old", "2026-11-05", by: [ada], Event.purchased("T")))["outcome"] == "duplicate"
        )
        #expect(try await psql.number("select count(*) from headroom.subscriptions") == 2, "effects are kept")
    }
}
