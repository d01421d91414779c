import TestSupport
import Testing
import Usage

@testable import Engine

/// The starts of consecutive periods, taken from the calendar.
private struct Starts: Sendable, CustomTestStringConvertible {
    var anchorDay: Int
    var dates: [String]

    var testDescription: String { "day \(anchorDay), \(dates.first ?? "") to \(dates.last ?? "")" }

    static let all = [
        // The year's end and a February of 28 days.
        Starts(anchorDay: 1, dates: ["2026-12-01", "2027-01-01", "2027-02-01", "2027-03-01", "2027-04-01"]),
        Starts(anchorDay: 15, dates: ["2026-12-15", "2027-01-15", "2027-02-15", "2027-03-15", "2027-04-15"]),
        Starts(anchorDay: 29, dates: ["2026-12-29", "2027-01-29", "2027-02-28", "2027-03-29", "2027-04-29"]),
        Starts(anchorDay: 30, dates: ["2026-12-30", "2027-01-30", "2027-02-28", "2027-03-30", "2027-04-30"]),
        Starts(anchorDay: 31, dates: ["2026-12-31", "2027-01-31", "2027-02-28", "2027-03-31", "2027-04-30"]),
        // 2028 is a leap year.
        Starts(anchorDay: 1, dates: ["2027-12-01", "2028-01-01", "2028-02-01", "2028-03-01"]),
        Starts(anchorDay: 15, dates: ["2027-12-15", "2028-01-15", "2028-02-15", "2028-03-15"]),
        Starts(anchorDay: 29, dates: ["2027-12-29", "2028-01-29", "2028-02-29", "2028-03-29"]),
        Starts(anchorDay: 30, dates: ["2027-12-30", "2028-01-30", "2028-02-29", "2028-03-30"]),
        Starts(anchorDay: 31, dates: ["2027-12-31", "2028-01-31", "2028-02-29", "2028-03-31"]),
        // 2100 is no leap year, although four divides it.
        Starts(anchorDay: 1, dates: ["2099-12-01", "2100-01-01", "2100-02-01", "2100-03-01"]),
        Starts(anchorDay: 15, dates: ["2099-12-15", "2100-01-15", "2100-02-15", "2100-03-15"]),
        Starts(anchorDay: 29, dates: ["2099-12-29", "2100-01-29", "2100-02-28", "2100-03-29"]),
        Starts(anchorDay: 30, dates: ["2099-12-30", "2100-01-30", "2100-02-28", "2100-03-30"]),
        Starts(anchorDay: 31, dates: ["2099-12-31", "2100-01-31", "2100-02-28", "2100-03-31"]),
    ]
}

// Serialized, because each of the many cases has a database and connections of its own.
@Suite("A subscription that was bought on an anchor day", .serialized)
struct AnchorDayTests {

    /// Ada buys at 08:30 on the first of the dates.
    private func running(
        _ starts: Starts,
        _ body: @Sendable (_ database: TestDatabase, _ engine: EngineHarness) async throws -> Void
    ) async throws {
        let database = try await TestDatabase.fresh()
        let bought = starts.dates[0] + "T08:30:00Z"
        try await database.stopClock(at: at(bought))
        try await database.psql.apply(StoreEvent("purchased", bought, ["plan": "paid"], of: ada))
        let engine = EngineHarness(database.conninfo)
        try await engine.running { try await body(database, engine) }
    }

    @Test(
        "starts a period on each anchor day at 00:00 UTC, clamped to the last day of the month",
        arguments: Starts.all
    )
    fileprivate func periods(starts: Starts) async throws {
        try await running(starts) { database, engine in
            #expect(
                try await database.psql.number("select anchor_day from headroom.subscribers") == starts.anchorDay
            )
            for (index, (start, end)) in zip(starts.dates, starts.dates.dropFirst()).enumerated() {
                // The first period began at midnight, before it was bought.
                let first = index == 0 ? at(start + "T08:30:00Z") : at(start)
                for (used, instant) in [(1, first), (2, at(end).justBefore)] {
                    try await database.moveClock(to: instant)
                    let answer = try #require(try await engine.execute(ada, .consume(1)).answer)
                    #expect(answer.snapshot.period == billingPeriod(String(start.prefix(7))), "at \(instant)")
                    #expect(answer.snapshot.startedAt == at(start), "at \(instant)")
                    #expect(answer.snapshot.resetsAt == at(end), "at \(instant)")
                    #expect(answer.snapshot.used == used, "at \(instant)")
                    let answered = try await database.usage(ada)
                    #expect(answered == SQLAnswer.fields(of: answer.snapshot.usage(of: ada)), "at \(instant)")
                }
            }
            let labels = try await database.psql.text(
                "select string_agg(billing_period || ' ' || message_count, ' ' order by billing_period) from message_usage"
            )
            #expect(labels == starts.dates.dropLast().map { $0.prefix(7) + " 2" }.joined(separator: " "))
        }
    }

    @Test("for a year has monthly periods, and ends with the year")
    func annual() async throws {
        let database = try await TestDatabase.fresh()
        try await database.stopClock(at: at("2027-01-31T08:00:00Z"))
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
        let database = try await TestDatabase.fresh()
        try await database.stopClock(at: at("2026-01-31"))
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
        let database = try await TestDatabase.fresh()
        try await database.stopClock(at: at("2026-01-31"))
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
