import Usage

/// The overview's charts, each with the table of the same numbers.
extension OverviewPresenter {
    var days: OverviewPage.Chart? {
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
        return OverviewPage.Chart(
            svg: chart("days", "Messages by day", columns, total: total),
            unit: "Day",
            hasBlocked: true,
            rows: days.enumerated().reversed().map { index, day in
                OverviewPage.Chart.Row(
                    name: TimeText.day(day.day),
                    messages: NumberText.grouped(day.messages),
                    blocked: NumberText.grouped(day.blocked),
                    isUnfinished: index == days.count - 1
                )
            },
            note: "\(NumberText.count(total, "message")) in 30 days. The last column is today, which goes on.",
            age: age(figures.days)
        )
    }

    var daysMissing: String {
        guard figures.days.value != nil else { return missing(figures.days) }
        return "No message was counted in the last 30 days. Days fill up as your product sends CONSUME."
    }

    var historyMissing: String {
        guard figures.periods.value != nil else { return missing(figures.periods) }
        return "Nobody has used a monthly plan in these months. Trials never reset, so they are in no month."
    }

    /// Twelve months up to the current one, those without usage too; nil where none has any.
    var history: OverviewPage.Chart? {
        guard let known = figures.periods.value, let current = known.current.month else { return nil }
        let months = (0..<12).reversed().map { back in
            let month = current.year * 12 + current.month - 1 - back
            return BillingPeriod(year: month / 12, month: month % 12 + 1)
        }
        let reports = months.map { known.report(of: $0) }
        guard reports.contains(where: { $0.users > 0 }) else { return nil }
        let columns = reports.map { report in
            ColumnChart.Column(
                label: TimeText.shortPeriod(report.period),
                name: TimeText.period(report.period),
                value: report.messages,
                isUnfinished: report.period == known.current,
                isSelected: report.period == figures.period
            )
        }
        return OverviewPage.Chart(
            svg: chart("history", "Messages by billing period", columns, total: reports.reduce(0) { $0 + $1.messages }),
            unit: "Period",
            hasBlocked: false,
            rows: reports.reversed().map { report in
                OverviewPage.Chart.Row(
                    name: TimeText.period(report.period),
                    link: "/dashboard?period=\(report.period.label)",
                    messages: NumberText.grouped(report.messages),
                    users: NumberText.grouped(report.users),
                    isUnfinished: report.period == known.current
                )
            },
            note: nil,
            age: age(figures.periods)
        )
    }

    private func chart(_ id: String, _ title: String, _ columns: [ColumnChart.Column], total: Int) -> String {
        let most = columns.max { $0.value < $1.value }
        let peak = most.map { " Most in \($0.name): \(NumberText.grouped($0.value))." } ?? ""
        let summary =
            "\(columns.count) columns, \(NumberText.count(total, "message")) together.\(peak) The table below has all."
        return ColumnChart(id: id, title: title, summary: summary, columns: columns).svg
    }
}
