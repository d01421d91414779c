import Testing
import Usage

@Suite("A date")
struct CivilDateTests {
    /// Days since 1970 from PostgreSQL: `date '2000-03-01' - date '1970-01-01'`.
    @Test(
        "is converted to days since 1970",
        arguments: [
            (1970, 1, 1, 0),
            (1969, 12, 31, -1),
            (1970, 2, 28, 58),
            (1970, 3, 1, 59),
            (1972, 2, 29, 789),
            (2000, 2, 29, 11_016),
            (2000, 3, 1, 11_017),
            (2026, 11, 24, 20_781),
            (2100, 2, 28, 47_540),
            (2100, 3, 1, 47_541),
            (1, 1, 1, -719_162),
            (9999, 12, 31, 2_932_896),
        ] as [(Int, Int, Int, Int64)]
    )
    func knownDays(year: Int, month: Int, day: Int, days: Int64) {
        let date = CivilDate(year: year, month: month, day: day)
        #expect(date.daysSince1970 == days)
        #expect(CivilDate(daysSince1970: days) == date)
    }

    @Test("is converted to its number and back, for each day from 1970 to 2400")
    func roundTrip() {
        var expected = CivilDate(year: 1970, month: 1, day: 1)
        var days: Int64 = 0
        while expected.year <= 2400 {
            guard CivilDate(daysSince1970: days) == expected, expected.daysSince1970 == days else {
                Issue.record("day \(days) is not \(expected)")
                return
            }
            let isLast = expected.day == CivilDate.daysInMonth(year: expected.year, month: expected.month)
            let isLastOfYear = isLast && expected.month == 12
            expected = CivilDate(
                year: isLastOfYear ? expected.year + 1 : expected.year,
                month: isLastOfYear ? 1 : isLast ? expected.month + 1 : expected.month,
                day: isLast ? 1 : expected.day + 1
            )
            days += 1
        }
        // 431 years with 105 leap years: 108 are divisible by 4, without 2100, 2200 and 2300.
        #expect(days == 431 * 365 + 105)
    }

    @Test("has months of 28 to 31 days")
    func monthLengths() {
        #expect(
            (1...12).map { CivilDate.daysInMonth(year: 2026, month: $0) }
                == [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        )
        let leapYears = [1999, 2000, 2024, 2025, 2100, 2400].filter { CivilDate.daysInMonth(year: $0, month: 2) == 29 }
        #expect(leapYears == [2000, 2024, 2400])
    }

    @Test("is shown as month and day, without a leading zero")
    func monthAndDay() {
        #expect(CivilDate(year: 2026, month: 12, day: 1).monthAndDay == "December 1")
        #expect(
            (1...12).map { CivilDate(year: 2026, month: $0, day: 10 + $0).monthAndDay } == [
                "January 11", "February 12", "March 13", "April 14", "May 15", "June 16",
                "July 17", "August 18", "September 19", "October 20", "November 21", "December 22",
            ]
        )
    }
}
