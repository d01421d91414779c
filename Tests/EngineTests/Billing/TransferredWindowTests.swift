import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("The window of a transferred subscription")
struct TransferredWindowTests: BillingSuite {
    /// Ten messages in three hours under the plans of buyers and of newcomers.
    private func withWindows() async throws -> TestDatabase {
        let database = try await fresh("2026-11-20T12:00:00Z")
        try await database.psql.execute(
            "update headroom.plans set window_messages = 10, window_seconds = 10800 where plan in ('paid', 'trial')"
        )
        return database
    }

    /// Messages taken from the open window, and when it ends; "none" without one.
    private func window(_ user: UserID, _ database: TestDatabase) async throws -> String? {
        try await database.psql.text(
            """
            select coalesce(
                snapshot.window_used + snapshot.window_held || ' until '
                    || to_char(snapshot.window_ends_at at time zone 'UTC', 'HH24:MI'), 'none'
            )
            from headroom.read_usage_snapshot('\(user)', 'trial') as snapshot
            """
        )
    }

    @Test("goes along with what is held in it, so that a transfer is no free window")
    func goesAlong() async throws {
        let database = try await withWindows()
        try await database.psql.ingest(bought("T", by: ada))
        _ = try await database.consume(user(1), 8)
        try await database.hold(2, of: user(1))
        try await database.psql.ingest(transfer("t", "2026-11-20T12:00:00Z", from: [ada], to: [bob]))
        #expect(try await window(user(2), database) == "10 until 15:00")
        #expect(try await database.consume(user(2))["reason"] == "window_limit_reached")
        try await database.moveClock(to: at("2026-11-20T15:00:00Z"))
        #expect(try await database.consume(user(2))["status"] == "ALLOWED")
        #expect(try await window(user(2), database) == "1 until 18:00")
    }

    @Test(
        "becomes one with the receiver's: the fuller count and the later end",
        arguments: [
            (giver: 9, receiver: 2, isGiverFirst: true, both: "9 until 16:00"),
            (giver: 9, receiver: 2, isGiverFirst: false, both: "9 until 16:00"),
            (giver: 2, receiver: 9, isGiverFirst: true, both: "9 until 16:00"),
            (giver: 2, receiver: 9, isGiverFirst: false, both: "9 until 16:00"),
        ]
    )
    func bothHaveOne(giver: Int, receiver: Int, isGiverFirst: Bool, both: String) async throws {
        let database = try await withWindows()
        try await database.psql.ingest(bought("T", by: ada))
        let engine = EngineHarness(database.conninfo, lanes: 1)
        try await engine.running {
            let requests: [(UserID, EngineOperation)] = [
                (user(1), .consume(giver)), (user(2), .consume(receiver, key: messageKey("k"))),
            ]
            for (user, operation) in isGiverFirst ? requests : requests.reversed() {
                #expect(try await engine.execute(user, operation).isAllowed)
                try await database.moveClock(to: at("2026-11-20T13:00:00Z"))
            }
            try await database.psql.ingest(transfer("t", "2026-11-20T13:00:00Z", from: [ada], to: [bob]))
            #expect(try await window(user(2), database) == both)
            let rows = try await database.psql.number(
                "select count(window_opened_at) from message_usage where user_id = '\(bob)'"
            )
            #expect(rows == 1, "one row has the window")
            #expect(try await window(user(1), database) == "\(giver) until \(isGiverFirst ? 15 : 16):00")
            // The receiver's key counts in the window that is left, under another plan.
            _ = try await engine.execute(user(2), .release(messageKey("k")))
            #expect(try await window(user(2), database) == "\(9 - receiver) until 16:00")
        }
    }

    @Test("does not count a message twice when the subscription comes back")
    func wayBack() async throws {
        let database = try await withWindows()
        try await database.psql.ingest(bought("T", by: ada))
        _ = try await database.consume(user(1), 4)
        try await database.psql.ingest(transfer("t1", "2026-11-20T12:00:00Z", from: [ada], to: [bob]))
        _ = try await database.consume(user(2), 3)
        try await database.moveClock(to: at("2026-11-20T12:10:00Z"))
        for (number, names) in [(2, [bob, ada]), (3, [ada, bob]), (4, [bob, ada])] {
            let event = transfer("t\(number)", "2026-11-20T12:0\(number):00Z", from: [names[0]], to: [names[1]])
            try await database.psql.ingest(event)
        }
        #expect(try await window(user(1), database) == "7 until 15:00")
    }

    @Test("goes along through a user whose transfer arrives last")
    func chainOutOfOrder() async throws {
        let database = try await withWindows()
        try await database.psql.ingest(bought("T", by: ada))
        _ = try await database.consume(user(1), 10)
        try await database.psql.ingest(transfer("t2", "2026-11-20T11:00:00Z", from: [bob], to: [cleo]))
        try await database.psql.ingest(transfer("t1", "2026-11-20T10:00:00Z", from: [ada], to: [bob]))
        #expect(try await window(user(3), database) == "10 until 15:00")
    }

    @Test("is as long as it was, also if a plan with shorter windows is left to the giver")
    func shorterPlanOfTheGiver() async throws {
        let database = try await withWindows()
        try await database.psql.execute(
            """
            insert into headroom.plans (plan, label, cycle, allowance, window_messages, window_seconds)
            values ('short', 'Short', 'monthly', 100, 10, 3600);
            select headroom.map_product('revenuecat', 'small', 'short')
            """
        )
        try await database.psql.ingest(bought("T", by: ada))
        try await database.psql.ingest(Event("small", "2026-11-06", by: [bob], Event.purchased("S", "small")))
        try await database.psql.ingest(transfer("t1", "2026-11-20T12:00:00Z", from: [ada], to: [bob]))
        _ = try await database.consume(user(2), 10)
        try await database.moveClock(to: at("2026-11-20T13:30:00Z"))
        try await database.psql.ingest(transfer("t2", "2026-11-20T13:30:00Z", from: [bob], to: [ada]))
        #expect(try await window(user(2), database) == "none")
        #expect(try await window(user(1), database) == "10 until 15:00")
    }

    @Test(
        "is subtracted again when an earlier purchase of the receiver arrives late",
        arguments: [(before: 0, after: 0), (before: 0, after: 3), (before: 2, after: 0), (before: 2, after: 3)]
    )
    func lateOwnPurchase(before: Int, after: Int) async throws {
        let database = try await withWindows()
        try await database.psql.ingest(bought("T", by: ada))
        if before > 0 { _ = try await database.consume(user(2), before) }
        try await database.moveClock(to: at("2026-11-20T13:00:00Z"))
        _ = try await database.consume(user(1), 6)
        try await database.psql.ingest(transfer("t", "2026-11-20T13:00:00Z", from: [ada], to: [bob]))
        #expect(try await window(user(2), database) == "6 until 16:00")
        if after > 0 { _ = try await database.consume(user(2), after) }
        try await database.psql.ingest(bought("T2", by: bob))
        let left = before + after > 0 ? "\(before + after) until \(before > 0 ? 15 : 16):00" : "none"
        #expect(try await window(user(2), database) == left)
    }

    @Test("is not subtracted from a window that opened after a reset")
    func lateOwnPurchaseAfterReset() async throws {
        let database = try await withWindows()
        try await database.psql.ingest(bought("T", by: ada))
        _ = try await database.consume(user(1), 6)
        try await database.psql.ingest(transfer("t", "2026-11-20T12:00:00Z", from: [ada], to: [bob]))
        try await database.psql.execute("select reset_usage('\(bob)')")
        try await database.moveClock(to: at("2026-11-20T12:01:00Z"))
        _ = try await database.consume(user(2), 5)
        try await database.psql.ingest(bought("T2", by: bob))
        #expect(try await window(user(2), database) == "5 until 15:01")
    }
}
