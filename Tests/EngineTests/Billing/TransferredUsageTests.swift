import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("The usage of a transferred subscription")
struct TransferredUsageTests: BillingSuite {
    @Test(
        "goes along through names without a user, in every order of the transfers",
        arguments: [[0, 1, 2], [2, 1, 0], [1, 0, 2], [2, 0, 1]]
    )
    func anonymous(order: [Int]) async throws {
        let database = try await bought(used: 800)
        let transfers = [
            transfer("t1", "2026-11-20T10:00:00Z", from: [ada], to: [digest(1)]),
            transfer("t2", "2026-11-20T10:10:00Z", from: [digest(1)], to: [digest(2)]),
            transfer("t3", "2026-11-20T10:20:00Z", from: [digest(2)], to: [bob]),
        ]
        for index in order { try await database.psql.ingest(transfers[index]) }
        #expect(try await snapshot(user(2), database) == "fine|paid|800|800")
        #expect(try await database.consume(user(2))["reason"] == "limit_reached")
        let made = try await database.psql.rows("select event_id, giver, receiver from headroom.usage_transfers")
        #expect(made == ["t3|\(ada)|\(bob)"])
    }

    @Test("goes along through a user whose transfer arrives last")
    func chainOutOfOrder() async throws {
        let database = try await bought(used: 800)
        try await database.psql.ingest(transfer("t2", "2026-11-20T11:00:00Z", from: [bob], to: [cleo]))
        try await database.psql.ingest(transfer("t1", "2026-11-20T10:00:00Z", from: [ada], to: [bob]))
        #expect(try await snapshot(user(3), database) == "fine|paid|800|800")
        #expect(try await database.count(of: user(2), period: "2026-11") == 800)
    }

    /// Ada has sent five messages with a large model, two of them in the open window, and three of them as a member.
    private func boughtWithParts() async throws -> TestDatabase {
        let database = try await fresh()
        try await database.psql.execute(
            """
            insert into headroom.plan_limits (plan, kind, name, allowance, window_messages, window_seconds, weight)
            values ('paid', 'model', 'large', 9, 4, 10800, 5), ('paid', 'member', '*', 50, null, null, 1)
            """
        )
        try await database.psql.ingest(bought("T", by: ada))
        try await database.psql.execute(
            """
            select increment_and_check_usage('\(ada)', 3, 'large', '\(cleo)');
            select reset_usage('\(ada)', 'window', 'large');
            select increment_and_check_usage('\(ada)', 2, 'large');
            select increment_and_check_usage('\(bob)', 4);
            """
        )
        return database
    }

    /// Messages counted of each part, in the month and in the window.
    private func parts(of user: String, _ database: TestDatabase) async throws -> [String] {
        try await database.psql.rows(
            """
            select kind, used, coalesce(window_used::text, '-') from headroom.usage_parts
            where user_id = '\(user)' and billing_period = '2026-11' order by 1
            """
        )
    }

    @Test("goes along with the counts and windows of models and members, and no message counts twice")
    func parts() async throws {
        let database = try await boughtWithParts()
        for (number, names) in [(0, [ada, bob]), (1, [bob, ada]), (2, [ada, bob])] {
            let event = transfer("t\(number)", "2026-11-20T11:0\(number):00Z", from: [names[0]], to: [names[1]])
            try await database.psql.ingest(event)
            #expect(try await parts(of: bob, database) == ["member|15|-", "model|5|2"], "\(number)")
        }
        #expect(try await parts(of: ada, database) == ["member|15|-", "model|5|2"])
        let answer = try await database.psql.rows(
            "select status, reason, model_used from increment_and_check_usage('\(bob)', 3, 'large')"
        )
        #expect(answer == ["BLOCKED|model_exceeds_remaining|5"])
    }

    @Test("is subtracted from models and members, too, when an earlier purchase of the receiver arrives late")
    func revertedParts() async throws {
        let database = try await boughtWithParts()
        try await database.psql.ingest(transfer("t", "2026-11-20T11:00:00Z", from: [ada], to: [bob]))
        #expect(try await parts(of: bob, database) == ["member|15|-", "model|5|2"])
        try await database.psql.ingest(bought("T2", by: bob))
        #expect(try await parts(of: bob, database) == ["member|0|-", "model|0|0"])
    }

    @Test(
        "goes along within a day or a week of the plan",
        arguments: [("daily", "2026-11-21", "2026-11-21T15:00:00Z"), ("weekly", "2026-W47", "2026-11-22T15:00:00Z")]
    )
    func localPeriods(cycle: String, label: String, end: String) async throws {
        // In Tokyo it is 01:00 of the 21st, a Saturday.
        let database = try await fresh("2026-11-20T16:00:00Z")
        try await database.psql.execute(
            "update headroom.plans set cycle = '\(cycle)', time_zone = 'Asia/Tokyo' where plan = 'paid'"
        )
        try await database.psql.ingest(bought("T", by: ada))
        _ = try await database.consume(user(1), 800)
        let other = cycle == "daily" ? "2026-W47" : "2026-11-21"
        // Rows of other forms stay with the giver.
        try await database.psql.execute(
            "insert into message_usage (user_id, billing_period, message_count) values ('\(ada)', '\(other)', 5)"
        )
        try await database.psql.ingest(transfer("t1", "2026-11-20T15:30:00Z", from: [ada], to: [bob]))
        try await database.psql.ingest(transfer("t2", "2026-11-20T15:40:00Z", from: [bob], to: [cleo]))
        #expect(try await snapshot(user(3), database) == "fine|paid|800|800")
        let rows = try await database.psql.rows(
            "select user_id, billing_period, message_count from message_usage where user_id <> '\(ada)' order by 1, 2"
        )
        #expect(rows == ["\(bob)|\(label)|800", "\(cleo)|\(label)|800"])
        try await database.moveClock(to: at(end))
        #expect(try await snapshot(user(3), database) == "fine|paid|0|800")
    }

    @Test("includes what the giver holds")
    func held() async throws {
        let database = try await bought(used: 100)
        try await database.hold(700, of: user(1))
        try await database.psql.ingest(transfer("t", "2026-11-20T10:00:00Z", from: [ada], to: [bob]))
        #expect(try await snapshot(user(2), database) == "fine|paid|800|800")
    }

    @Test(
        "raises no count of a user who has access of at least that allowance",
        arguments: ["store", "operator", "trial"]
    )
    func gift(own: String) async throws {
        let database = try await bought(used: 800)
        switch own {
        case "store": try await database.psql.ingest(bought("T2", by: bob, "2026-11-10"))
        case "operator":
            try await database.moveClock(to: at("2026-11-20T09:00:00Z"))
            try await database.psql.execute("select set_plan('\(bob)', 'paid')")
            try await database.moveClock(to: at("2026-11-20T12:00:00Z"))
        default: break
        }
        _ = try await database.consume(user(2), 10)
        try await database.psql.ingest(transfer("t", "2026-11-20T11:00:00Z", from: [ada], to: [bob]))
        // A trial allows less, so the transferred subscription is what gives access.
        #expect(try await snapshot(user(2), database) == "fine|paid|\(own == "trial" ? 800 : 10)|800")
    }

    @Test("is subtracted again when an earlier purchase of the receiver arrives late, and only once")
    func lateOwnPurchase() async throws {
        let database = try await bought(used: 300)
        try await database.psql.ingest(transfer("t", "2026-11-20T10:00:00Z", from: [ada], to: [bob]))
        _ = try await database.consume(user(2), 5)
        #expect(try await snapshot(user(2), database) == "fine|paid|305|800")
        try await database.psql.ingest(bought("T2", by: bob))
        #expect(try await snapshot(user(2), database) == "fine|paid|5|800")
        try await database.psql.ingest(Event("c", "2026-11-20T11:00:00Z", ["kind": "cancelled", "transaction": "T2"]))
        #expect(try await snapshot(user(2), database) == "fine|paid|5|800")
        let rows = try await database.psql.rows("select event_id from headroom.usage_transfers")
        #expect(rows == [])
    }

    @Test("is not subtracted from a row that was reset since")
    func lateOwnPurchaseAfterReset() async throws {
        let database = try await bought(used: 300)
        try await database.psql.ingest(transfer("t", "2026-11-20T10:00:00Z", from: [ada], to: [bob]))
        try await database.psql.execute("select reset_usage('\(bob)')")
        _ = try await database.consume(user(2), 5)
        try await database.psql.ingest(bought("T2", by: bob))
        #expect(try await snapshot(user(2), database) == "fine|paid|5|800")
    }

    @Test("stays where a purchase follows the transfer")
    func laterOwnPurchase() async throws {
        let database = try await bought(used: 300)
        try await database.psql.ingest(transfer("t", "2026-11-20T10:00:00Z", from: [ada], to: [bob]))
        try await database.psql.ingest(bought("T2", by: bob, "2026-11-20T11:00:00Z"))
        #expect(try await snapshot(user(2), database) == "fine|paid|300|800")
    }

    @Test(
        "counts in the receiver's month, whatever the two anchor days are",
        arguments: [
            ("2026-11-05", "2026-10-20", "2026-11-12"), ("2026-11-05", "2026-10-20", "2026-11-25"),
            // The giver's month has another label than the receiver's.
            ("2026-10-20", "2026-11-05", "2026-11-12"),
        ]
    )
    func anchorDays(giver: String, receiver: String, now: String) async throws {
        let database = try await fresh("\(now)T12:00:00Z")
        try await database.psql.ingest(bought("T", by: ada, giver))
        _ = try await database.consume(user(1), 300)
        // Bob's subscription was refunded.
        try await database.psql.ingest(bought("T2", by: bob, receiver))
        _ = try await database.consume(user(2), 7)
        try await database.psql.ingest(Event("refund", "\(now)T09:00:00Z", ["kind": "revoked", "transaction": "T2"]))
        try await database.psql.ingest(transfer("t", "\(now)T10:00:00Z", from: [ada], to: [bob]))
        #expect(try await snapshot(user(2), database) == "fine|paid|300|800")
    }

    @Test("leaves grants and purchased messages with the giver")
    func grants() async throws {
        let database = try await fresh()
        try await database.psql.ingest(bought("T", by: ada))
        let pack: [String: Any & Sendable] = ["kind": "granted", "transaction": "P", "product": "pack"]
        try await database.psql.ingest(Event("pack", "2026-11-06", by: [ada], pack))
        try await database.psql.execute("select grant_messages('\(ada)', 20)")
        _ = try await database.consume(user(1), 40)
        try await database.psql.ingest(transfer("t", "2026-11-20T10:00:00Z", from: [ada], to: [bob]))
        #expect(try await snapshot(user(2), database) == "fine|paid|40|800")
        let buyers = try await database.psql.rows("select user_id from headroom.message_purchases")
        #expect(buyers == [ada])
        let revoked: [String: Any & Sendable] = ["kind": "revoked", "transaction": "P"]
        try await database.psql.ingest(Event("refund", "2026-11-20T11:00:00Z", revoked))
        #expect(try await snapshot(user(2), database) == "fine|paid|40|800")
    }

    @Test("raises no trial of a receiver who gets a paid subscription")
    func otherPeriods() async throws {
        let database = try await fresh("2026-11-20T00:00:00Z")
        _ = try await database.consume(user(1), 100)
        try await database.psql.ingest(bought("T", by: ada, "2026-11-20"))
        _ = try await database.consume(user(1), 300)
        _ = try await database.consume(user(2), 10)
        try await database.moveClock(to: at("2026-11-20T12:00:00Z"))
        try await database.psql.ingest(transfer("t1", "2026-11-20T10:00:00Z", from: [ada], to: [bob]))
        #expect(try await snapshot(user(2), database) == "fine|paid|300|800")
        try await database.psql.ingest(transfer("t2", "2026-11-20T11:00:00Z", from: [bob], to: [ada]))
        #expect(try await snapshot(user(2), database) == "fine|trial|10|100", "as before the gift")
    }

    @Test("of an alias raises nothing for a user who has access")
    func alias() async throws {
        let database = try await fresh()
        try await database.psql.ingest(bought("T", by: ada))
        try await database.psql.ingest(bought("T2", by: bob))
        _ = try await database.consume(user(1), 800)
        _ = try await database.consume(user(2), 10)
        let merged: [String: Any & Sendable] = ["kind": "merged", "identities": [bob, ada]]
        try await database.psql.ingest(Event("m", "2026-11-20T10:00:00Z", type: "SUBSCRIBER_ALIAS", merged))
        #expect(try await snapshot(user(2), database) == "fine|paid|10|800")
    }
}
