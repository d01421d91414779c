/// The billing period of a row of `message_usage`: `YYYY-MM` for a monthly plan, else the plan's name (`trial`,
/// `free`), because such an allowance never resets.
public struct BillingPeriod: Hashable, Sendable {
    public let label: String

    /// The month in which a monthly period begins.
    public init(year: Int, month: Int) {
        let year = String(year)
        label = String(repeating: "0", count: max(0, 4 - year.count)) + year + (month < 10 ? "-0" : "-") + String(month)
    }

    /// The only period of a plan that never resets.
    public init(planNamed name: String) {
        label = name
    }

    /// All periods that are open now: the default of reports.
    public static let open = BillingPeriod(planNamed: "open")

    /// Parses a label; nil if it is neither a month nor a plan's name.
    public init?(_ label: String) {
        guard BillingPeriod.monthOf(label) != nil || Plan.isName(label) else { return nil }
        self.label = label
    }

    /// A label from the database, without validation.
    public init(storedLabel: String) {
        label = storedLabel
    }

    /// Year and month of a monthly period; nil for other periods.
    public var month: (year: Int, month: Int)? { BillingPeriod.monthOf(label) }

    /// The month before a monthly period; nil for other periods, and in the year 0.
    public var previousMonth: BillingPeriod? {
        guard let (year, month) = month, year > 0 else { return nil }
        return month == 1
            ? BillingPeriod(year: year - 1, month: 12) : BillingPeriod(year: year, month: month - 1)
    }

    private static func monthOf(_ label: String) -> (year: Int, month: Int)? {
        let bytes = Array(label.utf8)
        guard bytes.count == 7, bytes[4] == UInt8(ascii: "-") else { return nil }
        var digits: [Int] = []
        for (index, byte) in bytes.enumerated() where index != 4 {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
            digits.append(Int(byte - UInt8(ascii: "0")))
        }
        let year = digits[0] * 1_000 + digits[1] * 100 + digits[2] * 10 + digits[3]
        let month = digits[4] * 10 + digits[5]
        guard (1...12).contains(month) else { return nil }
        return (year, month)
    }
}

extension BillingPeriod: CustomStringConvertible {
    public var description: String { label }
}
