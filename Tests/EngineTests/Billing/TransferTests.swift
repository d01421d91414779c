import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("A transferred subscription")
struct TransferTests: BillingSuite {
    @Test("keeps the usage of the period, and gives no free period, also after several transfers")
    func usageGoesAlong() async throws {
        let database = try await bought(used: 300)
        let answer = try await database.psql.ingest(transfer("t1", "2026-11-20T10:00:00Z", from: [ada], to: [bob]))
        #expect(answer["outcome"] == "applied" && answer["user"] == bob && answer["plan"] == "paid")
        #expect(try await snapshot(user(2), database) == "fine|paid|300|800")
        _ = try await database.consume(user(2), 50)
        try await database.psql.ingest(transfer("t2", "2026-11-20T11:00:00Z", from: [bob], to: [ada]))
        #expect(try await snapshot(user(1), database) == "fine|paid|350|800", "the maximum, not the sum")
        #expect(try await database.count(of: user(2), period: "2026-11") == 350)
        for number in 3..<9 {
            let (from, to) = number % 2 == 1 ? (ada, bob) : (bob, ada)
            try await database.psql.ingest(
                transfer("t\(number)", "2026-11-20T11:0\(number):00Z", from: [from], to: [to])
            )
        }
        #expect(try await snapshot(user(1), database) == "fine|paid|350|800")
        #expect(try await database.consume(user(1), 451)["status"] == "BLOCKED")
        #expect(try await database.consume(user(1), 450)["status"] == "ALLOWED")
    }

    @Test("leaves earlier periods with their user, and starts the next one at 0")
    func otherPeriods() async throws {
        let database = try await fresh("2026-10-20T12:00:00Z")
        try await database.psql.ingest(Event("bought", "2026-10-05", by: [ada], Event.purchased("T")))
        _ = try await database.consume(user(1), 700)
        try await database.moveClock(to: at("2026-11-06T12:00:00Z"))
        _ = try await database.consume(user(1), 20)
        try await database.psql.ingest(transfer("t", "2026-11-06T11:00:00Z", from: [ada], to: [bob]))
        #expect(try await database.count(of: user(1), period: "2026-10") == 700)
        #expect(try await database.count(of: user(2), period: "2026-10") == nil)
        #expect(try await snapshot(user(2), database) == "fine|paid|20|800")
        try await database.moveClock(to: at("2026-12-05T00:00:00Z"))
        try await database.psql.ingest(Event("later", "2026-12-05T00:00:00Z", by: [bob], Event.purchased("T")))
        #expect(try await snapshot(user(2), database) == "fine|paid|0|800")
    }

    @Test("does not restore usage that an operator has reset, and keeps usage since then")
    func afterReset() async throws {
        let database = try await bought(used: 300)
        try await database.psql.ingest(transfer("t1", "2026-11-20T10:00:00Z", from: [ada], to: [bob]))
        try await database.psql.execute("select reset_usage('\(bob)')")
        _ = try await database.consume(user(2), 7)
        let cancelled: [String: Any & Sendable] = ["kind": "cancelled", "transaction": "T"]
        try await database.psql.ingest(Event("c", "2026-11-20T10:30:00Z", by: [bob], cancelled))
        #expect(try await snapshot(user(2), database) == "fine|paid|7|800")
        try await database.psql.ingest(transfer("t2", "2026-11-20T11:00:00Z", from: [bob], to: [cleo]))
        #expect(try await snapshot(user(3), database) == "fine|paid|7|800")
    }

    @Test("keeps the transferred usage when an operator changes the plan, also after a time without one")
    func afterSetPlan() async throws {
        let database = try await bought(used: 300)
        try await database.psql.ingest(transfer("t1", "2026-11-20T10:00:00Z", from: [ada], to: [bob]))
        for plan in ["pro", "free", "paid"] {
            try await database.psql.execute("select set_plan('\(bob)', '\(plan)')")
            let cancelled: [String: Any & Sendable] = ["kind": "cancelled", "transaction": "T"]
            try await database.psql.ingest(Event("after \(plan)", "2026-11-20T11:00:00Z", cancelled))
            #expect(try await database.count(of: user(2), period: "2026-11") == 300, "\(plan)")
        }
        #expect(try await snapshot(user(2), database) == "fine|paid|300|800")
    }

    @Test("keeps the transferred usage when the receiver's anchor day moves within a month")
    func afterNewAnchorDay() async throws {
        let database = try await bought(used: 700, "2026-11-15T12:00:00Z")
        try await database.psql.ingest(transfer("t", "2026-11-15T11:00:00Z", from: [ada], to: [bob]))
        #expect(try await snapshot(user(2), database) == "fine|paid|700|800")
        try await database.moveClock(to: at("2026-11-20T12:00:00Z"))
        try await database.psql.ingest(
            Event("other", "2026-11-20T11:00:00Z", by: [bob], Event.purchased("T2", expires: "2026-12-20T11:00:00Z"))
        )
        #expect(try await database.count(of: user(2), period: "2026-11") == 700)
        // A second transfer neither loses usage nor counts it twice.
        try await database.moveClock(to: at("2026-12-10T12:00:00Z"))
        try await database.psql.ingest(Event("c", "2026-12-10T11:00:00Z", ["kind": "cancelled", "transaction": "T2"]))
        #expect(try await database.count(of: user(2), period: "2026-11") == 700)
        try await database.psql.ingest(transfer("back", "2026-12-10T11:30:00Z", from: [bob], to: [cleo]))
        #expect(try await database.count(of: user(2), period: "2026-11") == 700)
        #expect(try await snapshot(user(3), database) == "fine|paid|700|800")
        #expect(try await database.psql.number("select count(*) from headroom.usage_transfers") == 2)
    }

    @Test("keeps the usage if the giver sent nothing since receiving it")
    func passedOn() async throws {
        let database = try await bought(used: 300, "2026-11-10T12:00:00Z")
        try await database.psql.ingest(transfer("t1", "2026-11-10T11:00:00Z", from: [ada], to: [bob]))
        // The period begins on the 5th.
        try await database.moveClock(to: at("2026-12-03T12:00:00Z"))
        try await database.psql.ingest(transfer("t2", "2026-12-03T11:00:00Z", from: [bob], to: [cleo]))
        #expect(try await snapshot(user(3), database) == "fine|paid|300|800")
    }

    @Test("raises no count of a receiver without a monthly plan")
    func withoutMonthlyPlan() async throws {
        let database = try await bought(used: 300)
        try await database.psql.execute("select set_plan('\(bob)', 'free')")
        try await database.psql.ingest(transfer("t", "2026-11-20T10:00:00Z", from: [ada], to: [bob]))
        #expect(try await database.psql.rows("select billing_period from message_usage where user_id = '\(bob)'") == [])
        try await database.psql.execute("select set_plan('\(bob)', 'paid')")
        #expect(try await snapshot(user(2), database) == "fine|paid|0|800")
    }

    @Test("has its earlier events, also those that arrive later, and despite a set_plan")
    func lateEvents() async throws {
        let database = try await fresh()
        try await database.psql.execute("select set_plan('\(bob)', 'free')")
        try await database.psql.ingest(transfer("t", "2026-11-21T00:00:00Z", from: [ada], to: [bob]))
        try await database.psql.ingest(Event("bought", "2026-11-05", by: [ada], Event.purchased("T")))
        #expect(try await snapshot(user(2), database) == "fine|paid|0|800")
        #expect(
            try await database.psql.number("select count(*) from headroom.subscriptions where user_id = '\(ada)'") == 0
        )
        let renewed = Event("r", "2026-11-20T00:00:00Z", Event.purchased("T", "large"))
        #expect(try await database.psql.ingest(renewed)["user"] == bob, "without a user it belongs to the owner")
    }

    @Test("leaves the trial spent for all its owners, and moves its usage to the next")
    func trials() async throws {
        for isLate in [false, true] {
            let database = try await fresh("2026-11-05T12:00:00Z")
            let trial = Event(
                "trial",
                "2026-11-05",
                by: [ada],
                Event.purchased("T", expires: "2026-11-08", period: "trial")
            )
            let transfer = transfer("t", "2026-11-05T11:00:00Z", from: [ada], to: [bob])
            if isLate { try await database.psql.ingest(transfer) }
            try await database.psql.execute(
                """
                insert into message_usage (user_id, billing_period, message_count, "limit")
                values ('\(ada)', 'trial', 90, 100)
                """
            )
            try await database.psql.ingest(trial)
            if !isLate { try await database.psql.ingest(transfer) }
            #expect(try await snapshot(user(2), database) == "fine|trial|90|100")
            #expect(try await snapshot(user(1), database) == "fine|trial|90|100", "the first trial")
            try await database.psql.execute("select forget_user('\(ada)')")
            try await database.moveClock(to: at("2026-11-09T00:00:00Z"))
            #expect(try await snapshot(user(1), database) == "trial_ended|trial|90|100")
            #expect(try await snapshot(user(2), database) == "trial_ended|trial|90|100")
        }
    }

    @Test("by an alias belongs to the first id, with the trial that the other had used")
    func aliases() async throws {
        let database = try await fresh()
        _ = try await database.consume(user(2), 100)
        try await database.moveClock(to: at("2026-11-21T12:00:00Z"))
        let merged: [String: Any & Sendable] = ["kind": "merged", "identities": [ada, bob, digest(5)]]
        let answer = try await database.psql.ingest(
            Event("m", "2026-11-21T00:00:00Z", type: "SUBSCRIBER_ALIAS", merged)
        )
        #expect(answer["outcome"] == "applied")
        #expect(try await database.consume(user(1))["reason"] == "trial_limit_reached")
        try await database.psql.ingest(Event("bought", "2026-11-20T13:00:00Z", by: [bob], Event.purchased("T")))
        #expect(try await snapshot(user(1), database) == "fine|paid|0|800", "bought before by the same customer")
        try await database.psql.ingest(
            Event("by digest", "2026-11-21T01:00:00Z", by: [digest(5)], Event.purchased("T2", "large"))
        )
        #expect(try await snapshot(user(1), database) == "fine|pro|0")
        #expect(try await database.consume(user(2))["reason"] == "trial_limit_reached")
    }

    @Test("is in the audit trail of both users, and its events have the new owner")
    func trail() async throws {
        let database = try await fresh()
        try await database.psql.ingest(
            Event("bought", "2026-11-05", by: [ada], type: "INITIAL_PURCHASE", Event.purchased("T"))
        )
        try await database.psql.ingest(transfer("t", "2026-11-20T10:00:00Z", from: [ada], to: [bob]))
        for person in [ada, bob] {
            let record = try await database.psql.text(
                "select detail from audit_trail where user_id = '\(person)' and reason = 'TRANSFER reported by revenuecat'"
            )
            #expect(record?.contains("state active") == true)
        }
        let events = try await database.psql.rows("select id, user_id from headroom.billing_events order by id")
        #expect(events == ["bought|\(bob)", "t|\(bob)"])
        let transfers = try await database.psql.rows(
            "select event_id, giver, receiver, headroom.instant_text(made_at) from headroom.usage_transfers"
        )
        #expect(transfers == ["t|\(ada)|\(bob)|2026-11-20T12:00:00Z"])
    }
}
