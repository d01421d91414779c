import Usage

/// A period of a plan that has periods: a month from the anchor day at 00:00 UTC, or a week or a day of a time zone.
public struct BillingCycle: Hashable, Sendable {
    public let period: BillingPeriod
    public let start: Instant
    public let end: Instant

    /// The one that contains `instant`; nil for a plan that never resets.
    public init?(containing instant: Instant, plan: Plan, anchorDay: Int = 1) {
        let zone = LocalTime(zone: plan.timeZone ?? "UTC")
        let today = zone.date(of: instant).daysSince1970
        switch plan.cycle {
        case .monthly:
            self.init(containing: instant, anchorDay: anchorDay)
        case .weekly:
            // 1970-01-05 was a Monday.
            let monday = today - ((today - 4) % 7 + 7) % 7
            self.init(BillingPeriod(weekOf: CivilDate(daysSince1970: today)), monday..<monday + 7, in: zone)
        case .daily:
            self.init(BillingPeriod(day: CivilDate(daysSince1970: today)), today..<today + 1, in: zone)
        case .trial, .lifetime:
            return nil
        }
    }

    private init(_ period: BillingPeriod, _ days: Range<Int64>, in zone: LocalTime) {
        self.period = period
        start = zone.start(of: CivilDate(daysSince1970: days.lowerBound))
        end = zone.start(of: CivilDate(daysSince1970: days.upperBound))
    }

    /// The month that contains `instant`.
    ///
    /// - Parameter anchorDay: 1 to 31. In a shorter month the period begins on the last day.
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

    /// The period that begins in the given month.
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
