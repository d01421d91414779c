import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("A one-time purchase of messages")
struct OneTimePurchaseTests: BillingSuite {
    private func subscribed() async throws -> TestDatabase {
        let database = try await fresh()
        try await database.psql.execute("select set_plan('\(ada)', 'paid')")
        return database
    }

    /// Without a subscription. The plan paid has the given cycle.
    private func unsubscribed(_ cycle: String = "monthly") async throws -> TestDatabase {
        let database = try await fresh()
        try await database.psql.execute("update headroom.plans set cycle = '\(cycle)' where plan = 'paid'")
        return database
    }

    private func granted(_ id: String, quantity: Int = 1, transaction: String = "G") -> Event {
        Event(
            id,
            "2026-11-20T10:00:00Z",
            by: [ada],
            ["kind": "granted", "transaction": transaction, "product": "pack", "quantity": quantity]
        )
    }

    private func about(_ kind: String, _ at: String) -> Event {
        Event("\(kind) \(at)", at, ["kind": kind, "transaction": "G"])
    }

    private func limit(_ database: TestDatabase) async throws -> String? {
        try await database.usage(user(1))["limit"] ?? nil
    }

    @Test("raises the limit of the period once, also if it is repeated or reported by two sources")
    func once() async throws {
        let database = try await subscribed()
        #expect(try await database.psql.ingest(granted("g", quantity: 3))["outcome"] == "applied")
        #expect(try await limit(database) == "950")
        try await database.psql.ingest(granted("g", quantity: 3))
        try await database.psql.ingest(granted("reported under another id", quantity: 3))
        #expect(try await limit(database) == "950")
        try await database.psql.ingest(granted("another", transaction: "G2"))
        #expect(try await limit(database) == "1000")
        let trail = try await database.psql.rows(
            "select action, detail from audit_trail where user_id = '\(ada)' and action = 'grant' order by id limit 1"
        )
        #expect(trail == ["grant|count 0, limit 800 → 950, period 2026-11"])
    }

    @Test("is reversed by a refund during the period, and restored by a reversal of the refund")
    func refund() async throws {
        let database = try await subscribed()
        _ = try await database.consume(user(1), 820 - 20)
        try await database.psql.ingest(granted("g"))
        _ = try await database.consume(user(1), 20)
        #expect(try await database.psql.ingest(about("revoked", "2026-11-20T11:00:00Z"))["outcome"] == "applied")
        let after = try await database.usage(user(1))
        #expect(after["limit"] == "800" && after["used"] == "820" && after["tier"] == "blocked")
        try await database.psql.ingest(about("reinstated", "2026-11-20T11:30:00Z"))
        #expect(try await limit(database) == "850")
        try await database.psql.ingest(about("revoked", "2026-11-20T11:15:00Z"))
        #expect(try await limit(database) == "850", "refunded before the reversal")
    }

    @Test("leaves an unlimited user unlimited, also after a refund")
    func refundWithoutLimit() async throws {
        let database = try await subscribed()
        try await database.psql.execute("select set_plan('\(ada)', 'pro')")
        try await database.psql.ingest(granted("g"))
        try await database.psql.ingest(about("revoked", "2026-11-20T11:00:00Z"))
        #expect(try await limit(database) == nil)
        #expect(try await database.consume(user(1), 5000)["status"] == "ALLOWED")
        try await database.psql.execute("select set_plan('\(ada)', 'paid')")
        try await database.psql.ingest(about("reinstated", "2026-11-20T11:30:00Z"))
        #expect(try await limit(database) == "850")
    }

    @Test("is not granted if the refund arrived first")
    func refundFirst() async throws {
        let database = try await subscribed()
        #expect(try await database.psql.ingest(about("revoked", "2026-11-20T11:00:00Z"))["outcome"] == "failed")
        try await database.psql.ingest(granted("g"))
        #expect(try await limit(database) == "800")
        #expect(try await database.psql.rows("select outcome from headroom.billing_events") == ["applied", "applied"])
    }

    @Test("belongs to the month of the purchase, also if it arrives before the subscription")
    func beforeTheSubscription() async throws {
        let subscription = Event(
            "bought",
            "2026-11-20T09:59:00Z",
            by: [ada],
            [
                "kind": "purchased", "transaction": "S", "product": "monthly", "period": "normal",
                "started": "2026-11-20T09:59:00Z", "expires": "2026-12-20T09:59:00Z",
            ]
        )
        for order in [[subscription, granted("g")], [granted("g"), subscription]] {
            let database = try await unsubscribed()
            _ = try await database.consume(user(1), 3)
            for event in order { try await database.psql.ingest(event) }
            let usage = try await database.usage(user(1))
            #expect(usage["period"] == "2026-11" && usage["limit"] == "850" && usage["used"] == "0")
            let trial = "select \"limit\" from message_usage where user_id = '\(ada)' and billing_period = 'trial'"
            #expect(try await database.psql.text(trial) == "100")
            for event in order { try await database.psql.ingest(event) }
            #expect(try await limit(database) == "850", "once, also if repeated")
        }
    }

    @Test("unused messages move to the period of the subscription", arguments: ["monthly", "weekly", "daily"])
    func usedBeforeTheSubscription(cycle: String) async throws {
        for (used, held, moved) in [(150, 0, 0), (130, 0, 20), (100, 30, 20), (90, 0, 50)] {
            let database = try await unsubscribed(cycle)
            _ = try await database.consume(user(1), 90)
            try await database.psql.ingest(granted("g"))
            if used > 90 { _ = try await database.consume(user(1), used - 90) }
            try await database.psql.execute(
                "update message_usage set held = \(held), usable_until = '-infinity' where user_id = '\(ada)'"
            )
            let subscription = Event("bought", "2026-11-20T09:59:00Z", by: [ada], Event.purchased("S"))
            for _ in 0..<2 { try await database.psql.ingest(subscription) }
            let trial = "select \"limit\" from message_usage where user_id = '\(ada)' and billing_period = 'trial'"
            #expect(try await limit(database) == "\(800 + moved)", "\(used) used, \(held) held")
            #expect(try await database.psql.text(trial) == "\(150 - moved)", "\(used) used, \(held) held")
            try await database.psql.ingest(about("revoked", "2026-11-20T11:00:00Z"))
            #expect(try await limit(database) == "800")
            if moved == 0 { continue }
            try await database.psql.ingest(about("reinstated", "2026-11-20T11:30:00Z"))
            #expect(try await limit(database) == "\(800 + moved)", "restored")
        }
    }

    @Test("moves to a day or a week that begins after it", arguments: ["weekly", "daily"])
    func overMidnight(cycle: String) async throws {
        let database = try await unsubscribed(cycle)
        _ = try await database.consume(user(1), 3)
        try await database.psql.ingest(granted("g"))
        // A Monday.
        try await database.moveClock(to: at("2026-11-23T00:02:00Z"))
        let bought = Event("bought", "2026-11-23T00:01:00Z", by: [ada], Event.purchased("S"))
        try await database.psql.ingest(bought)
        #expect(try await limit(database) == "850")
    }

    @Test("does not change in a past period")
    func nextPeriod() async throws {
        let database = try await subscribed()
        try await database.psql.ingest(granted("g"))
        _ = try await database.consume(user(1))
        try await database.moveClock(to: at("2026-12-02T00:00:00Z"))
        try await database.psql.ingest(about("revoked", "2026-12-01T11:00:00Z"))
        #expect(try await limit(database) == "800")
        #expect(
            try await database.psql.rows(
                "select granted, \"limit\" from message_usage where billing_period = '2026-11'"
            )
                == ["50|850"]
        )
        try await database.psql.ingest(about("reinstated", "2026-12-01T12:00:00Z"))
        #expect(try await limit(database) == "800")
    }

    @Test("is ignored if its product grants none, and fails if it is not mapped")
    func products() async throws {
        let database = try await subscribed()
        try await database.psql.execute("select headroom.map_product('revenuecat', 'pack', null, p_messages => 0)")
        #expect(try await database.psql.ingest(granted("g"))["outcome"] == "ignored")
        try await database.psql.execute("select headroom.unmap_product('revenuecat', 'pack')")
        let failed = try await database.psql.ingest(granted("g2", transaction: "G2"))
        #expect(failed["outcome"] == "failed" && failed["problem"]?.contains("--messages") == true)
        try await database.psql.execute(
            "select headroom.map_product('revenuecat', 'pack', null, p_messages => 1000000)"
        )
        let large = try await database.psql.ingest(granted("g3", quantity: 2, transaction: "G3"))
        #expect(large["problem"]?.contains("at most 1000000") == true)
        #expect(try await limit(database) == "800")
    }
}
