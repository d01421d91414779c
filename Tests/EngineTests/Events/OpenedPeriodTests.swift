import TestSupport
import Testing
import Usage

@testable import Engine

/// Rows of `message_usage` between a change of plan and the first message.
@Suite("The period that a change of plan opens")
struct OpenedPeriodTests {
    private let bob = "\(user(2))"

    private func fresh(_ instant: String = "2026-11-20T12:00:00Z") async throws -> TestDatabase {
        try await .withProducts(at: at(instant))
    }

    private func rows(_ database: TestDatabase, of user: UserID = ada) async throws -> [String] {
        try await database.psql.rows(
            """
            select billing_period, message_count, "limit" from message_usage
            where user_id = '\(user)' order by billing_period
            """
        )
    }

    private func setPlan(_ database: TestDatabase, _ arguments: String) async throws {
        try await database.psql.execute("select set_plan('\(ada)', \(arguments))")
    }

    private func bought(_ product: String = "monthly") -> Event {
        Event("bought \(product)", "2026-11-20T10:00:00Z", by: ["\(ada)"], Event.purchased("T", product))
    }

    private func about(_ kind: String, _ time: String) -> Event {
        Event("\(kind) \(time)", "2026-11-20T\(time)Z", by: ["\(ada)"], ["kind": kind, "transaction": "T"])
    }

    @Test("appears beside the used-up trial before the first message", arguments: [true, false])
    func besideTrial(isOfStore: Bool) async throws {
        let database = try await fresh()
        _ = try await database.consume(ada, 100)
        if isOfStore {
            try await database.psql.ingest(bought())
        } else {
            try await setPlan(database, "'paid'")
        }
        #expect(try await rows(database) == ["2026-11|0|800", "trial|100|100"])
        let open = "select billing_period, tier from monthly_usage where user_id = '\(ada)' and is_open"
        #expect(try await database.psql.rows(open) == ["2026-11|silent"])
        #expect(try await database.consume(ada)["used"] == "1")
        #expect(try await rows(database) == ["2026-11|1|800", "trial|100|100"])
    }

    @Test("counts its first message on the fast path")
    func fastPath() async throws {
        try await EngineHarness.serving(fresh()) { database, engine in
            try await setPlan(database, "'paid'")
            let version = "select entitlement_version from message_usage where user_id = '\(ada)'"
            let before = try await database.psql.text(version)
            #expect(try await engine.execute(ada, .consume(1)).isAllowed)
            #expect(try await database.psql.text(version) == before)
            #expect(engine.slowPathStatements == 0)
        }
    }

    @Test("disappears and returns with access, and follows plan changes until the first message")
    func followsState() async throws {
        let database = try await fresh()
        try await database.psql.ingest(bought())
        #expect(try await rows(database) == ["2026-11|0|800"])
        try await database.psql.ingest(about("revoked", "11:00:00"))
        #expect(try await rows(database) == [])
        try await database.psql.ingest(about("reinstated", "11:10:00"))
        #expect(try await rows(database) == ["2026-11|0|800"])
        try await setPlan(database, "'pro'")
        #expect(try await rows(database) == ["2026-11|0"])
        // An unused row of November does not keep the user in November: with this anchor day the month is October.
        try await setPlan(database, "'paid', p_anchor => 25")
        #expect(try await rows(database) == ["2026-10|0|800"])
        try await setPlan(database, "'trial'")
        #expect(try await rows(database) == ["trial|0|100"])
        try await setPlan(database, "'trial', 'expired'")
        #expect(try await rows(database) == [])
    }

    @Test("does not exist on a plan without messages")
    func withoutAllowance() async throws {
        let database = try await fresh()
        try await setPlan(database, "'free'")
        #expect(try await rows(database) == [])
        try await database.psql.execute("update headroom.plans set allowance = 3 where plan = 'free'")
        try await setPlan(database, "'free'")
        #expect(try await rows(database) == ["free|0|3"])
    }

    @Test(
        "stays after another change of plan if it was used",
        arguments: [
            ("select increment_and_check_usage('\(ada)')", "2026-11|1|800"),
            ("select grant_messages('\(ada)', 5)", "2026-11|0|805"),
            ("select increment_and_check_usage('\(ada)'); select reset_usage('\(ada)')", "2026-11|0|800"),
            (#"update message_usage set "limit" = 900"#, "2026-11|0|900"),
            ("update message_usage set message_count = 0, released = released + 2", "2026-11|0|800"),
        ]
    )
    func used(statement: String, row: String) async throws {
        let database = try await fresh()
        try await setPlan(database, "'paid'")
        try await database.psql.execute(statement)
        try await setPlan(database, "'trial'")
        #expect(try await rows(database) == [row, "trial|0|100"])
    }

    @Test("stays after another change of plan while messages are held in it")
    func holding() async throws {
        let database = try await fresh()
        try await setPlan(database, "'paid'")
        try await database.hold(2, of: ada)
        try await setPlan(database, "'trial'")
        #expect(try await rows(database) == ["2026-11|0|800", "trial|0|100"])
    }

    @Test("disappears if only an expired hold used it")
    func endedHold() async throws {
        let database = try await fresh()
        try await setPlan(database, "'paid'")
        try await database.hold(2, of: ada)
        try await database.moveClock(to: at("2026-11-20T12:02:00Z"))
        try await setPlan(database, "'paid'")
        let held = "select held, usable_until > headroom.now() from message_usage where user_id = '\(ada)'"
        #expect(try await database.psql.rows(held) == ["0|true"])
        try await setPlan(database, "'trial'")
        #expect(try await rows(database) == ["trial|0|100"])
    }

    @Test("does not change rows written by older clients")
    func writtenByOthers() async throws {
        let database = try await fresh()
        try await database.psql.execute(
            """
            insert into message_usage (user_id, billing_period, message_count, "limit")
            values ('\(ada)', '2026-11', 0, 50), ('\(ada)', '2026-10', 0, 50)
            """
        )
        try await setPlan(database, "'trial'")
        try await setPlan(database, "'paid'")
        #expect(try await rows(database) == ["2026-10|0|50", "2026-11|0|50"])
        #expect(try await database.consume(ada)["limit"] == "800")
    }

    @Test("stays after a reset, even if a new anchor day names the month before")
    func reset() async throws {
        let database = try await fresh()
        try await setPlan(database, "'paid', p_anchor => 25")
        _ = try await database.consume(ada, 800)
        try await setPlan(database, "'paid', p_anchor => 20")
        _ = try await database.consume(ada, 800)
        try await database.psql.execute("select reset_usage('\(ada)')")
        try await setPlan(database, "'paid', p_anchor => 25")
        #expect(try await database.consume(ada)["period"] == "2026-11")
    }

    @Test("ends on the newest anchor day if it was used, also without messages between the changes")
    func movedEnd() async throws {
        let database = try await fresh()
        try await setPlan(database, "'paid'")
        _ = try await database.consume(ada)
        for anchorDay in [5, 10, 15] {
            try await setPlan(database, "'paid', p_anchor => \(anchorDay)")
            let end = "select billing_period, extract(day from resets_at at time zone 'UTC') from message_usage"
            #expect(try await database.psql.rows(end) == ["2026-11|\(anchorDay)"])
        }
    }

    @Test("is the same whether messages were bought before or after the subscription, also after a refund")
    func boughtMessages() async throws {
        let pack = Event(
            "pack",
            "2026-11-20T11:00:00Z",
            by: ["\(ada)"],
            ["kind": "granted", "transaction": "G", "product": "pack", "quantity": 1]
        )
        let refund = Event("refund", "2026-11-20T11:30:00Z", by: ["\(ada)"], ["kind": "revoked", "transaction": "G"])
        for isPackFirst in [true, false] {
            let database = try await fresh()
            for notification in isPackFirst ? [pack, bought()] : [bought(), pack] {
                try await database.psql.ingest(notification)
            }
            #expect(try await rows(database) == ["2026-11|0|850"])
            try await database.psql.ingest(refund)
            #expect(try await rows(database) == ["2026-11|0|800"])
        }
        let database = try await fresh()
        try await database.psql.ingest(pack)
        #expect(try await rows(database) == ["trial|0|150"])
        try await database.psql.ingest(refund)
        #expect(try await rows(database) == [], "the trial has not begun")
    }

    @Test("belongs to the new owner after a transfer, and disappears for the giver")
    func transferred() async throws {
        let database = try await fresh()
        try await database.psql.ingest(bought())
        let transfer = Event("t", "2026-11-20T11:00:00Z", Event.transferred(from: ["\(ada)"], to: [bob]))
        try await database.psql.ingest(transfer)
        #expect(try await rows(database) == [])
        #expect(try await rows(database, of: user(2)) == ["2026-11|0|800"])
    }
}
