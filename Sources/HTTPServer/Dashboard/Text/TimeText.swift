import Usage

/// An instant for a `<time>` element, in UTC.
struct TimeText: Equatable {
    let iso8601: String
    /// `21 November 2026, 07:05:09 UTC`
    let text: String

    init(_ instant: Instant) {
        iso8601 = instant.text
        let secondOfDay = instant.secondsSince1970 - instant.date.daysSince1970 * 86_400
        var clock = [secondOfDay / 3_600, secondOfDay / 60 % 60, secondOfDay % 60].map(TimeText.twoDigits)
        // Stores and operators mostly give times to the minute.
        if clock[2] == "00" { clock.removeLast() }
        text = "\(TimeText.day(instant.date)), \(clock.joined(separator: ":")) UTC"
    }

    /// `21 November 2026`
    static func day(_ date: CivilDate) -> String {
        "\(date.day) \(monthName(date.month)) \(date.year)"
    }

    /// `21 Nov`
    static func shortDay(_ date: CivilDate) -> String {
        "\(date.day) \(monthName(date.month).prefix(3))"
    }

    /// `November 2026`, `Week 47 of 2026`, `22 November 2026`, or the name of a period that never resets. A user's
    /// second period in a month is `November 2026 (2)`.
    static func period(_ period: BillingPeriod) -> String {
        if period == .open { return "Open now" }
        if let (year, month) = period.month { return "\(monthName(month)) \(year)\(number(period))" }
        if let (year, week) = period.week { return "Week \(week) of \(year)\(number(period))" }
        return period.day.map(day) ?? period.label
    }

    /// `Nov 26` or `Nov 26 (2)`, for an axis.
    static func shortPeriod(_ period: BillingPeriod) -> String {
        guard let (year, month) = period.month else { return period.label }
        return "\(monthName(month).prefix(3)) \(twoDigits(Int64(year % 100)))\(number(period))"
    }

    private static func number(_ period: BillingPeriod) -> String { period.number > 1 ? " (\(period.number))" : "" }

    static func monthName(_ month: Int) -> String {
        let date = CivilDate(year: 1970, month: month, day: 1)
        return String(date.monthAndDay.prefix { $0 != " " })
    }

    private static func twoDigits(_ number: Int64) -> String {
        number < 10 ? "0\(number)" : "\(number)"
    }
}
