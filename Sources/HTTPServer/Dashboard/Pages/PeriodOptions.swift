import Usage

/// The billing periods that a page offers to choose from.
struct PeriodOptions {
    struct Option {
        var value: String
        var text: String
        var isSelected: Bool
    }

    /// Ten years of months, a year of weeks, two months of days, and far more plans that never reset than a product
    /// has. Rows that were inserted manually can have any label, and a page must not grow with their number.
    static let (monthsMaximum, weeksMaximum, daysMaximum, othersMaximum) = (120, 53, 62, 50)

    let options: [Option]
    /// Some periods are left out.
    let isTruncated: Bool

    /// - Parameter periods: nil while they are being loaded.
    init(_ periods: AllPeriods?, selected: BillingPeriod) {
        // Those with a number are in the report of their month or week.
        var labels = Set(periods?.reports.map(\.period).filter { $0.number == 1 } ?? [])
        if let current = periods?.current { labels.insert(current) }
        labels.remove(.open)
        let kinds = Dictionary(grouping: labels, by: Kind.init)
        var shown: [BillingPeriod] = []
        var isTruncated = false
        for kind in Kind.allCases {
            let all = (kinds[kind] ?? []).sorted { kind.comesBefore($0.label, $1.label) }
            var some = Array(all.prefix(kind.maximum))
            if selected != .open, Kind(selected) == kind, !some.contains(selected) {
                some = (some + [selected]).sorted { kind.comesBefore($0.label, $1.label) }
            }
            shown += some
            isTruncated = isTruncated || all.count > kind.maximum
        }
        options = ([.open] + shown).map { period in
            let text = TimeText.period(period) + (period == periods?.current ? " (this month)" : "")
            return Option(value: period.label, text: text, isSelected: period == selected)
        }
        self.isTruncated = isTruncated
    }

    /// Listed one after the other.
    private enum Kind: CaseIterable {
        case month, week, day, other

        init(_ period: BillingPeriod) {
            if period.month != nil {
                self = .month
            } else if period.week != nil {
                self = .week
            } else {
                self = period.day == nil ? .other : .day
            }
        }

        var maximum: Int {
            switch self {
            case .month: PeriodOptions.monthsMaximum
            case .week: PeriodOptions.weeksMaximum
            case .day: PeriodOptions.daysMaximum
            case .other: PeriodOptions.othersMaximum
            }
        }

        /// The newest first, and names by the alphabet.
        func comesBefore(_ one: String, _ other: String) -> Bool {
            self == .other ? one < other : one > other
        }
    }
}
