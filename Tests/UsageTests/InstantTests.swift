import TestSupport
import Testing
import Usage

@Suite("An instant")
struct InstantTests {
    @Test(
        "is parsed from ISO 8601",
        arguments: [
            ("2000-01-01", 946_684_800_000_000),
            ("2000-01-01T00:00:00Z", 946_684_800_000_000),
            ("2026-11-24T09:30:00Z", 1_795_512_600_000_000),
            ("2026-11-24T09:30:00.5Z", 1_795_512_600_500_000),
            ("2026-11-24T09:30:00.000001Z", 1_795_512_600_000_001),
            ("2026-11-24T09:30:00.123456Z", 1_795_512_600_123_456),
            ("2026-11-24T10:30:00+01:00", 1_795_512_600_000_000),
            ("2026-11-24T04:00:00-05:30", 1_795_512_600_000_000),
            ("2026-11-24T09:30:00.25+00:00", 1_795_512_600_250_000),
            ("2000-02-29", 951_782_400_000_000),
            ("9999-12-31T23:59:59Z", 253_402_300_799_000_000),
        ] as [(String, Int64)]
    )
    func reading(text: String, microseconds: Int64) {
        #expect(Instant(text) == Instant(microsecondsSince1970: microseconds))
    }

    @Test(
        "is not parsed from other forms, or on a day or at a time that does not exist",
        arguments: [
            "", "infinity", "now", "2026", "2026-11", "2026-11-24 09:30:00Z", "2026-11-24T09:30:00",
            "2026-11-24T09:30Z",
            "2026-11-24t09:30:00Z", "2026-11-24T09:30:00z", "2026-11-24T09:30:00Z ", " 2026-11-24", "2026-11-24T",
            "2026-11-24T09:30:00.Z", "2026-11-24T09:30:00.1234567Z", "2026-11-24T09:30:00,5Z", "2026-11-24T9:30:00Z",
            "2026-11-24T24:00:00Z", "2026-11-24T23:60:00Z", "2026-11-24T23:59:60Z", "2026-11-24T09:30:00+0100",
            "2026-11-24T09:30:00+24:00", "2026-11-24T09:30:00+01:60", "2026-11-24T09:30:00+01", "2026-00-10",
            "2026-13-10",
            "2026-11-00", "2026-11-31", "2026-02-29", "2100-02-29", "1999-12-31", "0000-01-01", "10000-01-01",
            "1999-12-31T23:59:59Z", "2000-01-01T00:30:00+01:00", "9999-12-31T23:30:00-01:00",
            "-026-11-24",
            "2026-11-2४", "1795512600",
        ]
    )
    func rejection(text: String) { #expect(Instant(text) == nil) }

    @Test(
        "is written in whole seconds, rounded down",
        arguments: [
            (0, "1970-01-01T00:00:00Z"),
            (1_795_512_600_000_000, "2026-11-24T09:30:00Z"),
            (1_795_512_600_999_999, "2026-11-24T09:30:00Z"),
            (1_709_251_199_000_000, "2024-02-29T23:59:59Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (253_402_300_799_999_999, "9999-12-31T23:59:59Z"),
            (253_402_300_800_000_000, "010000-01-01T00:00:00Z"),
            (Int64.max, "294247-01-10T04:00:54Z"),
            (-62_135_596_800_000_000, "0001-01-01T00:00:00Z"),
            (-62_198_755_200_000_000, "0000-01-01T00:00:00Z"),
        ] as [(Int64, String)]
    )
    func writing(microseconds: Int64, text: String) {
        let instant = Instant(microsecondsSince1970: microseconds)
        #expect(instant.text == text)
        #expect("\(instant)" == text)
    }

    @Test("equals the instant parsed from its text, for each hour of a year")
    func roundTrip() {
        let start = at("2028-01-01")
        for hour in 0..<Int64(366 * 24) {
            let instant = start.advanced(bySeconds: hour * 3_600 + hour % 3_600)
            #expect(Instant(instant.text) == instant)
        }
    }

    @Test(
        "rounds seconds since 1970 down, also before 1970",
        arguments: [
            (0, 0), (999_999, 0), (1_000_000, 1), (-1, -1), (-1_000_000, -1), (-1_000_001, -2),
        ] as [(Int64, Int64)]
    )
    func roundingDown(microseconds: Int64, seconds: Int64) {
        #expect(Instant(microsecondsSince1970: microseconds).secondsSince1970 == seconds)
    }

    @Test(
        "rounds the wait until it up",
        arguments: [
            (0, 0), (1, 1), (999_999, 1), (1_000_000, 1), (1_000_001, 2), (-1, 0), (-1_000_000, -1),
        ] as [(Int64, Int64)]
    )
    func roundingUp(microseconds: Int64, seconds: Int64) {
        let now = at("2026-11-24T09:30:00Z")
        let later = Instant(microsecondsSince1970: now.microsecondsSince1970 + microseconds)
        #expect(later.secondsRoundedUp(since: now) == seconds)
    }

    @Test("has the date of its day in UTC")
    func day() {
        let midnight = at("2027-03-01")
        #expect(midnight.date == CivilDate(year: 2027, month: 3, day: 1))
        #expect(midnight.justBefore.date == CivilDate(year: 2027, month: 2, day: 28))
        #expect(midnight.justBefore < midnight)
        #expect(Instant(CivilDate(year: 2027, month: 3, day: 1)) == midnight)
        #expect(Instant(microsecondsSince1970: -1).date == CivilDate(year: 1969, month: 12, day: 31))
    }

    @Test("from the database is invalid if infinite or outside the years 2000 to 9999")
    func validating() {
        let first: Int64 = 946_684_800_000_000
        let end: Int64 = 253_402_300_800_000_000
        for microseconds in [Int64.min, -1, 0, first - 1, end, .max] {
            #expect(Instant(validating: microseconds) == nil)
        }
        for microseconds in [first, end - 1] {
            #expect(Instant(validating: microseconds)?.microsecondsSince1970 == microseconds)
        }
        #expect(Instant(validating: end - 1) == .latest)
    }

    @Test("is limited to the range of Int64 in computations, and never traps")
    func arithmetic() {
        let extremes = [Int64.min, .min + 1, -1, 0, 1, .max - 1, .max].map { Instant(microsecondsSince1970: $0) }
        for first in extremes {
            for second in extremes {
                let seconds = first.secondsRoundedUp(since: second)
                #expect(first == second ? seconds == 0 : (seconds > 0) == (first > second) || seconds == 0)
                let snapshot = UsageSnapshot(
                    plan: .trial,
                    state: .trial,
                    period: BillingPeriod(planNamed: "trial"),
                    used: 0,
                    limit: 100,
                    startedAt: first,
                    resetsAt: second,
                    observedAt: second
                )
                #expect((1...3).contains(snapshot.trialDay?.day ?? 0))
                _ = (snapshot.nextTrialDayAt, snapshot.isPast, snapshot.retryAfterSeconds(.limitReached, messages: 1))
            }
            for seconds in [Int64.min, -1, 0, 1, .max] {
                #expect(first.advanced(bySeconds: seconds) <= max(first, .latest))
            }
            #expect((20...22).contains(first.text.utf8.count))
        }
        for seconds in [Int64.min, .max] {
            #expect((Instant(secondsSince1970: seconds).microsecondsSince1970 < 0) == (seconds < 0))
        }
    }
}
