import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("A subscription that was bought on an anchor day")
struct AnchorDayTests {
    @Test("for a year has monthly periods, and ends with the year")
    func annual() async throws {
        let database = try await TestDatabase.fresh(at: at("2027-01-31T08:00:00Z"))
        try await database.report(
            StoreEvent(
                "purchased",
                "2027-01-31T08:00:00Z",
                ["plan": "paid", "product": "premium.annual", "expires": "2028-01-31T08:00:00Z"],
                of: ada
            )
        )
        let starts = [
            "2027-01-31", "2027-02-28", "2027-03-31", "2027-04-30", "2027-05-31", "2027-06-30", "2027-07-31",
            "2027-08-31", "2027-09-30", "2027-10-31", "2027-11-30", "2027-12-31", "2028-01-31",
        ]
        for (start, end) in zip(starts, starts.dropFirst()) {
            try await database.moveClock(to: max(at(start), at("2027-01-31T08:00:00Z")))
            let all = try await database.consume(ada, 800)
            #expect(all["status"] == "ALLOWED" && all["used"] == "800" && all["period"] == String(start.prefix(7)))
            try await database.moveClock(to: at(end).justBefore)
            let refused = try await database.consume(ada)
            #expect(refused["reason"] == "limit_reached" && refused["retry_after"] == "1")
        }
        // The last anchor day is some hours before the end of the year.
        try await database.moveClock(to: at("2028-01-31T08:00:00Z").justBefore)
        #expect(try await database.consume(ada)["used"] == "1")
        try await database.moveClock(to: at("2028-01-31T08:00:00Z"))
        #expect(try await database.consume(ada)["reason"] == "expired")
    }

    @Test("keeps its anchor day when renewed, and changes it when bought again or set by the store")
    func movedAnchor() async throws {
        let database = try await TestDatabase.fresh(at: at("2026-01-31"))
        let day = "select anchor_day from headroom.subscribers"
        try await database.report(
            StoreEvent("purchased", "2026-01-31", ["plan": "paid", "expires": "2026-02-28"]),
            StoreEvent("renewed", "2026-02-28", ["expires": "2026-03-31"])
        )
        #expect(try await database.psql.number(day) == 31)
        try await database.report(
            StoreEvent("expired", "2026-03-31"),
            StoreEvent("purchased", "2026-05-20", ["plan": "paid", "started": "2026-05-17", "expires": "2026-06-17"])
        )
        #expect(try await database.psql.number(day) == 17)
        try await database.report(StoreEvent("renewed", "2026-06-17", ["expires": "2026-07-17", "anchor": "9"]))
        #expect(try await database.psql.number(day) == 9)
        // An operator's later change stays after a renewal.
        try await database.moveClock(to: at("2026-06-20"))
        try await database.psql.execute("select set_plan('\(user(1))', 'paid', p_anchor => 3)")
        try await database.report(StoreEvent("renewed", "2026-07-17", ["plan": "paid", "expires": "2026-08-17"]))
        #expect(try await database.psql.number(day) == 3)
    }

    @Test(
        "has no effect on the anchor day of a user that does not own it, whichever event is last",
        arguments: [true, false]
    )
    func anothers(isLast: Bool) async throws {
        let database = try await TestDatabase.fresh(at: at("2026-01-31"))
        func cancelled(_ at: String, by person: UserID, _ anchor: Int) -> Event {
            Event(at, at, by: ["\(person)"], ["kind": "cancelled", "transaction": "T", "anchor": anchor])
        }
        let order = [cancelled("2026-01-05", by: user(1), 7), cancelled("2026-01-06", by: user(2), 9)]
        for notification in isLast ? order : order.reversed() { try await database.psql.ingest(notification) }
        #expect(
            try await database.psql.rows("select user_id, anchor_day from headroom.subscribers order by user_id")
                == ["\(user(1))|1", "\(user(2))|9"]
        )
    }
}
