import Usage

/// A period of a monthly plan: from the anchor day at 00:00 UTC to the anchor day of the next month.
public struct BillingCycle: Hashable, Sendable {
    public let period: BillingPeriod
    public let start: Instant
    public let end: Instant

    /// The cycle that contains `instant`.
    ///
    /// - Parameter anchorDay: 1 to 31. In a shorter month the cycle begins on the last day.
    public init(containing instant: Instant, anchorDay: Int) {
        let date = instant.date
        let thisMonth = BillingCycle.start(year: date.year, month: date.month, anchorDay: anchorDay)
        if instant >= thisMonth {
            self.init(year: date.year, month: date.month, anchorDay: anchorDay)
        } else {
            let (year, month) = date.month == 1 ? (date.year - 1, 12) : (date.year, date.month - 1)
            self.init(year: year, month: month, anchorDay: anchorDay)
        }
    }

    /// The cycle that begins in the given month.
    public init(year: Int, month: Int, anchorDay: Int) {
        period = BillingPeriod(year: year, month: month)
        start = BillingCycle.start(year: year, month: month, anchorDay: anchorDay)
        let (nextYear, nextMonth) = month == 12 ? (year + 1, 1) : (year, month + 1)
        end = BillingCycle.start(year: nextYear, month: nextMonth, anchorDay: anchorDay)
    }

    private static func start(year: Int, month: Int, anchorDay: Int) -> Instant {
        let day = min(anchorDay, CivilDate.daysInMonth(year: year, month: month))
        return Instant(CivilDate(year: year, month: month, day: day))
    }
}
