import Usage

/// The billing periods that a page offers to choose from.
struct PeriodOptions {
    struct Option {
        var value: String
        var text: String
        var isSelected: Bool
    }

    /// Ten years, and far more plans that never reset than a product has. Rows that were inserted manually can have any
    /// label, and a page must not grow with their number.
    static let (monthsMaximum, othersMaximum) = (120, 50)

    let options: [Option]
    /// Some periods are left out.
    let isTruncated: Bool

    /// - Parameter periods: nil while they are being loaded.
    init(_ periods: AllPeriods?, selected: BillingPeriod) {
        var labels = Set(periods?.reports.map(\.period) ?? [])
        if let current = periods?.current { labels.insert(current) }
        let months = labels.filter { $0.month != nil }.sorted { $0.label > $1.label }
        let others = labels.filter { $0.month == nil && $0 != .open }.sorted { $0.label < $1.label }
        var shownMonths = Array(months.prefix(PeriodOptions.monthsMaximum))
        var shownOthers = Array(others.prefix(PeriodOptions.othersMaximum))
        if selected.month != nil, !shownMonths.contains(selected) {
            shownMonths = (shownMonths + [selected]).sorted { $0.label > $1.label }
        } else if selected.month == nil, selected != .open, !shownOthers.contains(selected) {
            shownOthers.append(selected)
        }
        options = ([.open] + shownMonths + shownOthers).map { period in
            let text = TimeText.period(period) + (period == periods?.current ? " (this month)" : "")
            return Option(value: period.label, text: text, isSelected: period == selected)
        }
        isTruncated = months.count > PeriodOptions.monthsMaximum || others.count > PeriodOptions.othersMaximum
    }
}
