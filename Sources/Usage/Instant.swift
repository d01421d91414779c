/// A point in time in microseconds since 1970-01-01T00:00:00Z, the resolution of PostgreSQL.
///
/// It has no "now", because only the database's clock is used (docs/contributors/architecture.md).
public struct Instant: Hashable, Sendable, Comparable {
    public let microsecondsSince1970: Int64

    public init(microsecondsSince1970: Int64) {
        self.microsecondsSince1970 = microsecondsSince1970
    }

    /// Makes an instant of the years 2000 to 9999 in UTC, which the check constraints of the tables require, too. It is
    /// nil for any other, such as infinity.
    package init?(validating microsecondsSince1970: Int64) {
        guard (946_684_800_000_000..<253_402_300_800_000_000).contains(microsecondsSince1970) else { return nil }
        self.init(microsecondsSince1970: microsecondsSince1970)
    }

    /// The latest instant that the database stores, 9999-12-31T23:59:59.999999Z.
    public static var latest: Instant { Instant(microsecondsSince1970: 253_402_300_799_999_999) }

    /// Seconds outside the range of microseconds become the nearest value of that range.
    public init(secondsSince1970: Int64) {
        let (microseconds, overflow) = secondsSince1970.multipliedReportingOverflow(by: 1_000_000)
        self.init(microsecondsSince1970: overflow ? (secondsSince1970 < 0 ? .min : .max) : microseconds)
    }

    public init(_ date: CivilDate) {
        self.init(secondsSince1970: date.daysSince1970 * 86_400)
    }

    public static func < (lhs: Instant, rhs: Instant) -> Bool {
        lhs.microsecondsSince1970 < rhs.microsecondsSince1970
    }

    /// Returns the later instant, which is at most `latest`, as in the database.
    public func advanced(bySeconds seconds: Int64) -> Instant {
        let (microseconds, productOverflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
        let (sum, sumOverflow) = microsecondsSince1970.addingReportingOverflow(microseconds)
        guard !productOverflow, !sumOverflow else {
            return seconds < 0 ? Instant(microsecondsSince1970: .min) : .latest
        }
        return min(Instant(microsecondsSince1970: sum), .latest)
    }

    /// Whole seconds since 1970, rounded down.
    public var secondsSince1970: Int64 {
        floorDivide(microsecondsSince1970, 1_000_000)
    }

    /// The day in UTC in which the instant lies.
    public var date: CivilDate {
        CivilDate(daysSince1970: floorDivide(microsecondsSince1970, 86_400_000_000))
    }

    /// Whole seconds from `earlier` until this instant, rounded up, so that waiting that long is enough.
    public func secondsRoundedUp(since earlier: Instant) -> Int64 {
        -floorDivide(earlier.microseconds(since: self), 1_000_000)
    }

    /// Returns the difference, limited to the range of `Int64`.
    func microseconds(since earlier: Instant) -> Int64 {
        let (difference, overflow) = microsecondsSince1970.subtractingReportingOverflow(earlier.microsecondsSince1970)
        return overflow ? (self < earlier ? .min : .max) : difference
    }
}

/// A day of the proleptic Gregorian calendar, without a time zone.
public struct CivilDate: Hashable, Sendable {
    public let year: Int
    public let month: Int
    public let day: Int

    /// The day must exist; it is not validated here. `Instant.init(_: String)` and `BillingPeriod` validate input.
    public init(year: Int, month: Int, day: Int) {
        self.year = year
        self.month = month
        self.day = day
    }

    /// The computation counts from March so that the leap day is a year's last, and in eras of 400 years (146,097
    /// days), as described in Howard Hinnant's "chrono-compatible low-level date algorithms".
    public init(daysSince1970 days: Int64) {
        let shifted = days + 719_468
        let era = floorDivide(shifted, 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        self.init(
            year: Int(yearOfEra + era * 400 + (month <= 2 ? 1 : 0)),
            month: Int(month),
            day: Int(dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
        )
    }

    public var daysSince1970: Int64 {
        let shiftedYear = Int64(month <= 2 ? year - 1 : year)
        let era = floorDivide(shiftedYear, 400)
        let yearOfEra = shiftedYear - era * 400
        let shiftedMonth = Int64(month > 2 ? month - 3 : month + 9)
        let dayOfYear = (153 * shiftedMonth + 2) / 5 + Int64(day) - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    public static func daysInMonth(year: Int, month: Int) -> Int {
        switch month {
        case 2: (year % 4 == 0 && year % 100 != 0) || year % 400 == 0 ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// The date in English sentences: `December 1`.
    public var monthAndDay: String { Words.shipped.standard.text(self) }
}

/// Divides and rounds towards negative infinity, so that instants before 1970 keep their order.
func floorDivide(_ dividend: Int64, _ divisor: Int64) -> Int64 {
    let quotient = dividend / divisor
    return dividend % divisor < 0 ? quotient - 1 : quotient
}
