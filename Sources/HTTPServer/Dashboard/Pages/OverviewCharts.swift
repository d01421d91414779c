import Usage

/// The overview's charts.
extension OverviewPresenter {
    var days: ChartSection? {
        guard let days = figures.days.value, days.contains(where: { $0.messages > 0 || $0.blocked > 0 }) else {
            return nil
        }
        let columns = days.enumerated().map { index, day in
            ColumnChart.Column(
                label: TimeText.shortDay(day.day),
                name: TimeText.day(day.day),
                value: day.messages,
                isUnfinished: index == days.count - 1
            )
        }
        let total = days.reduce(0) { $0 + $1.messages }
        return ChartSection(
            svg: chart("days", "Messages by day", columns, total: total),
            unit: "Day",
            hasBlocked: true,
            rows: days.enumerated().reversed().map { index, day in
                ChartSection.Row(
                    name: TimeText.day(day.day),
                    messages: NumberText.grouped(day.messages),
                    blocked: NumberText.grouped(day.blocked),
                    isUnfinished: index == days.count - 1
                )
            },
            note: "\(NumberText.count(total, "message")) in 30 days. The last column is today so far.",
            age: age(figures.days)
        )
    }

    var daysPlaceholder: String {
        guard figures.days.value != nil else { return placeholder(figures.days) }
        return empty(
            "No messages in the last 30 days. They appear here as your product sends CONSUME.",
            figures.days
        )
    }

    var historyPlaceholder: String {
        guard figures.periods.value != nil else { return placeholder(figures.periods) }
        return empty(
            "No usage of monthly plans in these months. Trials, weeks and days belong to no month.",
            figures.periods
        )
    }

    /// The last twelve months, with those without usage; nil where none has any.
    var history: ChartSection? {
        guard let periods = figures.periods.value, let current = periods.current.month else { return nil }
        let months = (0..<12).reversed().map { back in
            let month = current.year * 12 + current.month - 1 - back
            return BillingPeriod(year: month / 12, month: month % 12 + 1)
        }
        let reports = months.map { periods.report(of: $0) }
        guard reports.contains(where: { $0.users > 0 }) else { return nil }
        let columns = reports.map { report in
            ColumnChart.Column(
                label: TimeText.shortPeriod(report.period),
                name: TimeText.period(report.period),
                value: report.messages,
                isUnfinished: report.period == periods.current,
                isSelected: report.period == figures.period.unnumbered
            )
        }
        return ChartSection(
            svg: chart("history", "Messages by billing period", columns, total: reports.reduce(0) { $0 + $1.messages }),
            unit: "Period",
            hasBlocked: false,
            rows: reports.reversed().map { report in
                ChartSection.Row(
                    name: TimeText.period(report.period),
                    link: "/dashboard?period=\(report.period.label)",
                    messages: NumberText.grouped(report.messages),
                    users: NumberText.grouped(report.users),
                    isUnfinished: report.period == periods.current
                )
            },
            note: nil,
            age: age(figures.periods)
        )
    }

    private func chart(_ id: String, _ title: String, _ columns: [ColumnChart.Column], total: Int) -> String {
        let highest = columns.max { $0.value < $1.value }
        let peak = highest.map { " Highest: \(NumberText.grouped($0.value)) in \($0.name)." } ?? ""
        let summary =
            "\(columns.count) columns, \(NumberText.count(total, "message")) in total.\(peak) "
            + "The table below lists all values."
        return ColumnChart(id: id, title: title, summary: summary, columns: columns).svg
    }
}
