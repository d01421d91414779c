/// The billing period of a row of `message_usage`: `YYYY-MM` for a monthly plan, the ISO week `YYYY-Www` for a weekly
/// one, the day `YYYY-MM-DD` for a daily one, else the plan's name (`trial`, `free`), because such an allowance never
/// resets.
///
/// A user who buys again within a month or week has a second period that begins in it, `YYYY-MM.2` or `YYYY-Www.2`,
/// then `.3`, up to `.999`.
public struct BillingPeriod: Hashable, Sendable {
    public let label: String

    /// Makes the monthly period that begins in a month.
    public init(year: Int, month: Int) {
        label = "\(BillingPeriod.padded(year, to: 4))-\(BillingPeriod.padded(month, to: 2))"
    }

    /// Makes the ISO week in which a day lies. It lasts from Monday to Sunday and belongs to the year of its Thursday.
    public init(weekOf day: CivilDate) {
        let daysSinceMonday = day.daysSinceMonday
        let thursday = CivilDate(daysSince1970: day.daysSince1970 - daysSinceMonday + 3)
        let newYear = CivilDate(year: thursday.year, month: 1, day: 1)
        let week = Int((thursday.daysSince1970 - newYear.daysSince1970) / 7) + 1
        label = "\(BillingPeriod.padded(thursday.year, to: 4))-W\(BillingPeriod.padded(week, to: 2))"
    }

    public init(day: CivilDate) {
        label = BillingPeriod(year: day.year, month: day.month).label + "-" + BillingPeriod.padded(day.day, to: 2)
    }

    /// Makes the only period of a plan that never resets.
    public init(planNamed name: String) {
        label = name
    }

    /// All periods that are open now, which is the default of reports.
    public static let open = BillingPeriod(planNamed: "open")

    /// Parses a label; nil if it is neither a month, a week, a day nor a plan's name.
    public init?(_ label: String) {
        self.init(storedLabel: label)
        guard month != nil || week != nil || day != nil || Plan.isName(label) else { return nil }
    }

    /// The forms of a label, for the message about a wrong one.
    public static let forms =
        "a month as YYYY-MM, a week as YYYY-Www (YYYY-MM.2 and YYYY-Www.2 are a user's second period in it), "
        + "a day as YYYY-MM-DD, or a plan's name such as trial"

    /// Takes a label from the database without validation.
    public init(storedLabel: String) {
        label = storedLabel
    }

    /// Year and month in which a monthly period begins; nil for other periods.
    public var month: (year: Int, month: Int)? {
        guard let numbers = BillingPeriod.numbers(in: split.start, "dddd-dd"), (1...12).contains(numbers[1]) else {
            return nil
        }
        return (numbers[0], numbers[1])
    }

    /// Year and number of the ISO week in which a weekly period begins; nil for other periods.
    public var week: (year: Int, week: Int)? {
        monday == nil ? nil : BillingPeriod.numbers(in: split.start, "dddd-Wdd").map { ($0[0], $0[1]) }
    }

    /// The number of the period among a user's periods that begin in this month or week: 2 for `2026-03.2`, 1 for a
    /// label without a number.
    public var number: Int { month == nil && week == nil ? 1 : split.number }

    /// The month or week without the number: `2026-03` for `2026-03.2`. Reports of it include all of its numbers.
    public var unnumbered: BillingPeriod { number == 1 ? self : BillingPeriod(storedLabel: String(split.start)) }

    /// The day of a daily period; nil for other periods.
    public var day: CivilDate? {
        guard let numbers = BillingPeriod.numbers(in: label[...], "dddd-dd-dd"), numbers[0] > 0,
            (1...12).contains(numbers[1]),
            (1...CivilDate.daysInMonth(year: numbers[0], month: numbers[1])).contains(numbers[2])
        else { return nil }
        return CivilDate(year: numbers[0], month: numbers[1], day: numbers[2])
    }

    /// The day after a week or a day, on which the next one begins; nil for other periods. It is a day of the plan's
    /// time zone.
    public var nextDay: CivilDate? {
        if let day { return CivilDate(daysSince1970: day.daysSince1970 + 1) }
        return monday.map { CivilDate(daysSince1970: $0.daysSince1970 + 7) }
    }

    /// The month before a monthly period; nil for other periods, and in the year 0.
    public var previousMonth: BillingPeriod? {
        guard let (year, month) = month, year > 0 else { return nil }
        return month == 1
            ? BillingPeriod(year: year - 1, month: 12) : BillingPeriod(year: year, month: month - 1)
    }

    /// The first day of a week; nil for other periods.
    private var monday: CivilDate? {
        guard let numbers = BillingPeriod.numbers(in: split.start, "dddd-Wdd"), numbers[0] > 0, numbers[1] > 0 else {
            return nil
        }
        // The 4th of January is always in the first week.
        let january4 = CivilDate(year: numbers[0], month: 1, day: 4)
        let monday = CivilDate(
            daysSince1970: january4.daysSince1970 - january4.daysSinceMonday + 7 * Int64(numbers[1] - 1)
        )
        return BillingPeriod(weekOf: monday).label == split.start ? monday : nil
    }

    /// The label before a number from 2 to 999 at its end, and that number. Without one, it is the whole label and 1.
    private var split: (start: Substring, number: Int) {
        let bytes = label.utf8
        guard let dot = bytes.firstIndex(of: UInt8(ascii: ".")),
            case let digits = bytes[dot...].dropFirst(), (1...3).contains(digits.count),
            digits.first != UInt8(ascii: "0"),
            digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
            let number = Int(String(digits) ?? ""), number > 1
        else { return (label[...], 1) }
        return (label[..<dot], number)
    }

    /// Reads the numbers in a text of this form, in which `d` stands for a digit and any other character for itself.
    private static func numbers(in text: Substring, _ form: StaticString) -> [Int]? {
        let bytes = text.utf8
        guard bytes.count == form.utf8CodeUnitCount else { return nil }
        var numbers: [Int] = []
        var isInNumber = false
        for (index, byte) in bytes.enumerated() {
            let expected = form.utf8Start[index]
            guard expected == UInt8(ascii: "d") else {
                guard byte == expected else { return nil }
                isInNumber = false
                continue
            }
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
            if !isInNumber { numbers.append(0) }
            isInNumber = true
            numbers[numbers.count - 1] = numbers[numbers.count - 1] * 10 + Int(byte - UInt8(ascii: "0"))
        }
        return numbers
    }

    private static func padded(_ number: Int, to digits: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
    }
}

extension CivilDate {
    /// The number of days since Monday. The first day of 1970 was a Thursday.
    fileprivate var daysSinceMonday: Int64 { (daysSince1970 + 3) - floorDivide(daysSince1970 + 3, 7) * 7 }
}

extension BillingPeriod: CustomStringConvertible {
    public var description: String { label }
}
