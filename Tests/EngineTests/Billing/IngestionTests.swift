import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("An ingested billing event")
struct IngestionTests: BillingSuite {
    private func facts(_ database: TestDatabase) async throws -> String? {
        try await database.psql.text(
            """
            select string_agg(line, chr(10) order by line) from (
                select to_jsonb(kept)::text from headroom.billing_events as kept
                union all select to_jsonb(kept)::text from headroom.customers as kept
                union all select to_jsonb(kept)::text from headroom.customer_names as kept
                union all select to_jsonb(kept)::text from headroom.message_purchases as kept
                union all select to_jsonb(kept)::text from headroom.usage_transfers as kept
                union all select to_jsonb(kept)::text from headroom.subscriptions as kept
                union all select to_jsonb(kept)::text from headroom.subscribers as kept
                union all select to_jsonb(kept)::text from headroom.audit_log as kept
                union all select to_jsonb(kept)::text from message_usage as kept
            ) as lines (line)
            """
        )
    }

    @Test("is stored and applied once; a repetition is a duplicate and changes nothing")
    func once() async throws {
        let database = try await fresh()
        let event = Event("e", "2026-11-05T01:02:03.456Z", by: [ada], type: "INITIAL_PURCHASE", Event.purchased("T"))
        let first = try await database.psql.ingest(event)
        #expect(
            first == [
                "outcome": "applied", "user": ada, "plan": "paid", "state": "active", "access": "true",
                "expires": "2027-01-01T00:00:00Z",
            ]
        )
        let before = try await facts(database)
        var again = first
        again["outcome"] = "duplicate"
        #expect(try await database.psql.ingest(event) == again)
        #expect(try await facts(database) == before)
        let stored = try await database.psql.rows(
            """
            select type, happened_at = '2026-11-05T01:02:03.456Z' as at, environment, outcome, attempts,
                resulting_entitlement ->> 'plan', payload ->> 'type'
            from headroom.billing_events
            """
        )
        #expect(stored == ["INITIAL_PURCHASE|true|production|applied|1|paid|INITIAL_PURCHASE"])
        #expect(
            try await database.psql.rows("select action, reason, event_id from audit_trail where user_id = '\(ada)'")
                == ["store_event|INITIAL_PURCHASE reported by revenuecat|e"]
        )
        try await database.psql.ingest(Event("c", "2026-11-06", by: [ada], ["kind": "cancelled", "transaction": "T"]))
        let late = try await database.psql.ingest(event)
        #expect(late["outcome"] == "duplicate" && late["state"] == "cancelled", "with the present state")
        var elsewhere = event
        elsewhere.source = "appstore"
        #expect(try await database.psql.ingest(elsewhere)["outcome"] == "applied", "another event")
    }

    @Test("without effects is stored, and appears among its user's events")
    func ignored() async throws {
        let database = try await fresh()
        #expect(try await database.psql.ingest(Event("test", "2026-11-05", type: "TEST")) == ["outcome": "ignored"])
        try await database.psql.ingest(Event("e", "2026-11-05", by: [ada], Event.purchased("T")))
        let answer = try await database.psql.ingest(Event("i", "2026-11-06", by: [ada], type: "INVOICE_ISSUANCE"))
        #expect(answer["outcome"] == "ignored" && answer["user"] == ada)
        let trail = try await database.psql.rows(
            "select detail from audit_trail where user_id = '\(ada)' and reason = 'INVOICE_ISSUANCE reported by revenuecat'"
        )
        #expect(trail == ["happened 2026-11-06T00:00:00Z, outcome ignored"])
        #expect(try await database.psql.ingest(Event("i2", "2026-11-06", by: ["\(user(9))"]))["user"] == nil)
        #expect(
            try await database.psql.number("select count(*) from headroom.subscribers") == 1,
            "an event without effects creates no subscriber"
        )
    }

    @Test("of an unmapped product is stored as failed, and is applied once the product is mapped")
    func unmapped() async throws {
        let database = try await fresh()
        let event = Event("e", "2026-11-05", by: [ada], type: "RENEWAL", Event.purchased("T", "team.monthly"))
        let answer = try await database.psql.ingest(event)
        #expect(answer["outcome"] == "failed" && answer["problem"]?.contains("headroom product map") == true)
        #expect(try await database.psql.number("select count(*) from headroom.subscriptions") == 0)
        #expect(try await database.psql.ingest(event)["outcome"] == "failed", "a repetition is tried again")
        #expect(try await database.psql.number("select headroom.map_product('revenuecat', 'team.monthly', 'pro')") == 1)
        let replayed = try await database.psql.replay(event)
        #expect(replayed["outcome"] == "applied" && replayed["plan"] == "pro")
        let left = try await database.psql.rows(
            "select outcome, attempts, problem from headroom.billing_events where problem is null"
        )
        #expect(left == ["applied|3"])
        #expect(try await database.psql.ingest(event)["outcome"] == "duplicate")
    }

    @Test("of an unknown transaction waits for the event that names its user")
    func unknownUser() async throws {
        let database = try await fresh()
        var cancelled = Event("c", "2026-11-06", ["kind": "cancelled", "transaction": "T"])
        cancelled.source = "appstore"
        var bought = Event("b", "2026-11-05", by: [ada], Event.purchased("T"))
        bought.source = "appstore"
        let first = try await database.psql.ingest(cancelled)
        #expect(first["outcome"] == "failed" && first["problem"]?.contains("no user is known") == true)
        let answer = try await database.psql.ingest(bought)
        #expect(answer["state"] == "cancelled" && answer["expires"] == "2027-01-01T00:00:00Z")
        #expect(
            try await database.psql.rows("select id, user_id, outcome from headroom.billing_events order by id")
                == ["b|\(ada)|applied", "c|\(ada)|applied"]
        )
    }

    @Test("of a subscription without a plan waits for an event that names the plan")
    func unknownPlan() async throws {
        let database = try await fresh()
        let cancelled = Event("c", "2026-11-06", by: [ada], ["kind": "cancelled", "transaction": "T"])
        #expect(try await database.psql.ingest(cancelled) == ["outcome": "waiting", "user": ada])
        // Still without a plan: the trial begins with a message.
        #expect(try await database.consume(user(1))["plan"] == "trial")
        try await database.psql.ingest(Event("b", "2026-11-05", Event.purchased("T")))
        #expect(try await database.usage(user(1))["state"] == "cancelled")
        #expect(
            try await database.psql.rows("select id, outcome from headroom.billing_events order by id")
                == ["b|applied", "c|applied"]
        )
    }

    @Test("that its adapter could not translate is stored as failed with the adapter's problem")
    func adaptersProblem() async throws {
        let database = try await fresh()
        var event = Event("e", "2026-11-05", by: [ada])
        event.problem = "it has no original_transaction_id"
        #expect(try await database.psql.ingest(event)["problem"] == "it has no original_transaction_id")
        // A corrected adapter translates it.
        event.problem = nil
        event.effects = [Event.purchased("T")]
        #expect(try await database.psql.replay(event)["plan"] == "paid")
    }

    @Test("has the trial's plan during its trial, and its own from the payment on")
    func periods() async throws {
        let database = try await fresh()
        try await database.psql.execute(
            """
            insert into headroom.plans (plan, label, cycle, allowance) values ('intro', 'Intro', 'monthly', 50);
            select headroom.map_product('revenuecat', 'offer', 'paid', 'trial', 'intro');
            """
        )
        func event(_ kind: String, _ at: String, _ period: String, _ expires: String) -> Event {
            Event(
                "\(kind) \(at)",
                at,
                by: [ada],
                ["kind": kind, "transaction": "T", "product": "offer", "period": period, "expires": expires]
            )
        }
        #expect(
            try await database.psql.ingest(event("purchased", "2026-11-18", "trial", "2026-11-21"))["plan"] == "trial"
        )
        let trial = try await database.consume(user(1), 40)
        #expect(trial["plan"] == "trial" && trial["used"] == "40")
        #expect(
            try await database.psql.ingest(event("renewed", "2026-11-19", "intro", "2026-12-19"))["plan"] == "intro"
        )
        let intro = try await database.consume(user(1), 5)
        #expect(intro["plan"] == "intro" && intro["used"] == "5" && intro["limit"] == "50")
        #expect(
            try await database.psql.ingest(event("renewed", "2026-11-20", "normal", "2026-12-20"))["plan"] == "paid"
        )
        let paid = try await database.consume(user(1), 5)
        #expect(paid["used"] == "10" && paid["limit"] == "800")
        #expect(try await database.psql.number("select anchor_day from headroom.subscribers") == 19)
    }

    @Test("as a temporary grant gives access for a day at most, and no anchor day")
    func temporary() async throws {
        let database = try await fresh()
        let effect: [String: Any & Sendable] = [
            "kind": "temporary", "transaction": "T", "product": "monthly", "expires": "2026-11-30",
        ]
        let answer = try await database.psql.ingest(Event("t", "2026-11-20T06:00:00Z", by: [ada], effect))
        #expect(answer["access"] == "true" && answer["expires"] == "2026-11-21T06:00:00Z")
        #expect(try await database.psql.number("select anchor_day from headroom.subscribers") == 1)
        try await database.moveClock(to: at("2026-11-21T06:00:00Z"))
        #expect(try await database.consume(user(1))["status"] == "BLOCKED")
        try await database.psql.ingest(Event("b", "2026-11-20T07:00:00Z", by: [ada], Event.purchased("T")))
        #expect(try await database.consume(user(1))["status"] == "ALLOWED")
    }

    @Test("is translated again by a replay, which changes nothing if the translation is the same or cannot be applied")
    func replay() async throws {
        let database = try await fresh()
        try await database.psql.execute("select set_plan('\(ada)', 'pro', p_anchor => 9)")
        try await database.moveClock(to: at("2026-11-20T13:00:00Z"))
        var event = Event("e", "2026-11-20T12:30:00Z", by: [ada], Event.purchased("T"))
        try await database.psql.ingest(event)
        let state =
            "select (select to_jsonb(s) from headroom.subscriptions as s where s.original_transaction_id = 'T') || to_jsonb(u) from headroom.subscribers as u"
        let before = try await database.psql.text(state)
        #expect(try await database.psql.replay(event)["outcome"] == "applied")
        #expect(try await database.psql.text(state) == before)
        event.effects = [Event.purchased("T", "no such product")]
        #expect(try await database.psql.replay(event).isEmpty)
        #expect(try await database.psql.text(state) == before)
        event.effects = [Event.purchased("T", "large", expires: "2026-12-31")]
        #expect(try await database.psql.replay(event)["outcome"] == "applied")
        #expect(
            try await database.psql.rows(
                "select plan, headroom.instant_text(expires_at) from headroom.subscriptions where original_transaction_id = 'T'"
            )
                == ["pro|2026-12-31T00:00:00Z"]
        )
    }

    @Test("that cannot be applied is stored with its problem, and has none of its effects")
    func undone() async throws {
        let database = try await fresh()
        let event = Event(
            "e",
            "2026-11-05",
            by: [ada],
            Event.purchased("T"),
            ["kind": "renewed", "transaction": "T2", "product": "team.monthly", "expires": "2026-12-05"]
        )
        let answer = try await database.psql.ingest(event)
        #expect(answer["outcome"] == "failed" && answer["problem"]?.contains("'team.monthly'") == true)
        #expect(try await database.psql.number("select count(*) from headroom.subscriptions") == 0)
        let future = Event("f", "2027-11-05", by: [ada], Event.purchased("T3"))
        #expect(try await database.psql.ingest(future)["problem"]?.contains("in the future") == true)
    }

    @Test("that is dated more than a day ahead fails and has no effect until then")
    func tooEarly() async throws {
        let database = try await fresh()
        try await database.psql.ingest(Event("bought", "2026-11-05", by: [ada], Event.purchased("T")))
        let early = "2027-11-20"
        let merged: [String: Any & Sendable] = ["kind": "merged", "identities": [bob, ada]]
        let pack: [String: Any & Sendable] = ["kind": "granted", "transaction": "G", "product": "pack"]
        for event in [
            Event("renewal", early, by: [digest(1), bob], Event.purchased("T", expires: "2027-12-20")),
            Event("transfer", early, Event.transferred(from: [ada], to: [bob])),
            Event("alias", early, merged),
            Event("grant", early, by: [ada], pack),
        ] {
            let answer = try await database.psql.ingest(event)
            #expect(answer["outcome"] == "failed", "\(event.id)")
            #expect(answer["problem"]?.hasPrefix("'at' is in the future") == true, "\(event.id)")
        }
        let cancelled: [String: Any & Sendable] = ["kind": "cancelled", "transaction": "T"]
        #expect(try await database.psql.ingest(Event("c", "2026-11-06", cancelled))["user"] == ada)
        let owners = "select user_id from headroom.subscriptions where original_transaction_id = 'T'"
        #expect(try await database.psql.rows(owners) == [ada])
        for table in ["message_purchases", "usage_transfers"] {
            #expect(try await database.psql.number("select count(*) from headroom.\(table)") == 0, "\(table)")
        }
        try await database.moveClock(to: at("2027-11-19T12:00:00Z"))
        try await database.psql.ingest(Event("c2", "2026-11-07", cancelled))
        #expect(try await database.psql.rows(owners) == [bob])
        let left = try await database.psql.rows("select id, outcome from headroom.billing_events order by id")
        #expect(
            left == [
                "alias|applied", "bought|applied", "c|applied", "c2|applied", "grant|applied", "renewal|applied",
                // By then ada owned nothing.
                "transfer|waiting",
            ],
            "they were applied with the next event"
        )
    }

    @Test("each change of a product mapping is audited")
    func mapping() async throws {
        let database = try await fresh()
        for (call, state) in [
            ("'revenuecat', 'p', 'no_such_plan'", "P0002"), ("'revenuecat', 'p', null", "22004"),
            ("null, 'p', 'paid'", "22004"), ("'Revenue Cat', 'p', 'paid'", "22023"),
            ("'revenuecat', '', 'paid'", "22023"),
            ("'revenuecat', 'p', null, null, null, 1000001", "22023"), ("'revenuecat', 'p', 'paid', 'none'", "P0002"),
        ] {
            #expect(try await database.psql.sqlState(of: "select headroom.map_product(\(call))") == state, "\(call)")
        }
        try await database.psql.execute("delete from headroom.audit_log")
        try await database.psql.execute("select headroom.map_product('revenuecat', 'p', 'paid')")
        try await database.psql.execute("select headroom.map_product('revenuecat', 'p', 'paid')")
        try await database.psql.execute("update headroom.store_products set plan = 'pro' where product = 'p'")
        #expect(try await database.psql.text("select headroom.unmap_product('revenuecat', 'p')") == "true")
        #expect(try await database.psql.text("select headroom.unmap_product('revenuecat', 'p')") == "false")
        let record = try await database.psql.rows(
            "select action, before ->> 'plan', after ->> 'plan' from headroom.audit_log order by id"
        )
        #expect(record == ["insert|paid", "update|paid|pro", "delete|pro"])
    }
}
