import Usage
import UsageStore

/// What the overview is drawn from.
struct OverviewFigures: Sendable {
    /// All billing periods, all that are open together, and which one is the current month by the database's clock.
    var periods: Figure<AllPeriods>
    /// What the page is about; `BillingPeriod.open` unless somebody chose another.
    var period: BillingPeriod
    var top: Figure<[PeriodUsage]>
    /// Oldest first; today is the last.
    var days: Figure<[DayActivity]>
    var live: LiveFigures
}

/// Draws the overview's figures as texts and charts.
struct OverviewPresenter {
    let figures: OverviewFigures

    func page(_ frame: Frame) -> OverviewPage {
        let heading = TimeText.period(figures.period)
        let report = figures.periods.value?.report(of: figures.period)
        return OverviewPage(
            frame: frame,
            notices: notices,
            periods: options,
            heading: heading,
            explanation: explanation,
            glance: report.flatMap { $0.users == 0 ? nil : glance($0) },
            glanceMissing: report == nil || report?.users == 0 ? OverviewPage.Missing(text: glanceMissing) : nil,
            live: figures.live.view,
            days: days,
            daysMissing: days == nil ? OverviewPage.Missing(text: daysMissing) : nil,
            history: history,
            historyMissing: history == nil ? OverviewPage.Missing(text: missing(figures.periods)) : nil,
            top: top,
            topMissing: top == nil ? OverviewPage.Missing(text: topMissing) : nil
        )
    }

    /// Something that is needed cannot be read.
    var isIncomplete: Bool {
        [figures.periods.trouble, figures.top.trouble, figures.days.trouble].contains { $0 != nil }
    }

    private var notices: [Notice] {
        guard
            let trouble = [figures.periods.trouble, figures.days.trouble, figures.top.trouble].compactMap(\.self).first
        else { return [] }
        let isKnown = figures.periods.value != nil
        let rest = isKnown ? " What you see was read before that; each part says when." : ""
        return [
            Notice(
                .warning,
                trouble.isTransient ? "The database is away." : "Not everything can be read.",
                trouble.advice + rest
            )
        ]
    }

    // MARK: The period

    private var options: [OverviewPage.PeriodOption] {
        let known = figures.periods.value
        var labels = Set(known?.reports.map(\.period) ?? [])
        if let current = known?.current { labels.insert(current) }
        labels.formUnion([.open, figures.period])
        let months = labels.filter { $0.month != nil }.sorted { $0.label > $1.label }
        let others = labels.filter { $0.month == nil && $0 != .open }.sorted { $0.label < $1.label }
        return ([.open] + months + others).map { period in
            let text = TimeText.period(period) + (period == known?.current ? " (this month)" : "")
            return OverviewPage.PeriodOption(value: period.label, text: text, isSelected: period == figures.period)
        }
    }

    private var explanation: String {
        guard figures.period != .open else {
            return "The period that each user is in now: a month from their own day, or a trial."
        }
        return figures.period.month == nil
            ? "This allowance never comes back, so it is one period for everybody."
            : "Periods that begin in this month, on each user’s own day."
    }

    private static let tierMeanings: [Tier: String] = [
        .silent: "below 80 % of the limit", .gentle: "80 to 94 %", .prominent: "95 to 99 %", .blocked: "all of it",
    ]

    private func glance(_ report: PeriodReport) -> OverviewPage.Glance {
        let blocked = report.users(in: .blocked)
        let rows = Tier.allCases.map { tier in
            OverviewPage.TierRow(
                name: tier.rawValue,
                meaning: OverviewPresenter.tierMeanings[tier] ?? "",
                users: NumberText.grouped(report.users(in: tier)),
                share: NumberText.percent(report.users(in: tier), of: report.users)
            )
        }
        let bar = ShareBar(
            id: "tiers",
            title: "Users by tier",
            summary: rows.map { "\($0.name): \($0.users), \($0.share)" }.joined(separator: "; "),
            parts: Tier.allCases.map { ShareBar.Part(name: $0.rawValue, count: report.users(in: $0)) }
        )
        // Messages times ten may be more than Int holds.
        let (ones, rest) = report.messages.quotientAndRemainder(dividingBy: max(1, report.users))
        let tenths = ones * 10 + rest * 10 / max(1, report.users)
        return OverviewPage.Glance(
            messages: NumberText.grouped(report.messages),
            users: NumberText.grouped(report.users),
            average: "\(NumberText.grouped(tenths / 10)).\(tenths % 10) for each user",
            blocked: NumberText.grouped(blocked),
            blockedShare: NumberText.percent(blocked, of: report.users),
            hasBlocked: blocked > 0,
            bar: bar.svg,
            tiers: rows,
            age: age(figures.periods)
        )
    }

    private var glanceMissing: String {
        guard figures.periods.value != nil else { return missing(figures.periods) }
        guard figures.period == .open else { return "Nobody has used anything in this period." }
        return "Nobody has used anything yet. As soon as your product sends CONSUME, it shows here: "
            + "the README’s first lines have one to try."
    }

    // MARK: Charts

    private var days: OverviewPage.Chart? {
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

    private var daysMissing: String {
        guard figures.days.value != nil else { return missing(figures.days) }
        return "No message was counted in the last 30 days. Days fill up as your product sends CONSUME."
    }

    /// Twelve months up to the current one, those without usage too.
    private var history: OverviewPage.Chart? {
        guard let known = figures.periods.value, let current = known.current.month else { return nil }
        let months = (0..<12).reversed().map { back in
            let month = current.year * 12 + current.month - 1 - back
            return BillingPeriod(year: month / 12, month: month % 12 + 1)
        }
        let reports = months.map { known.report(of: $0) }
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

    // MARK: Top users

    private var top: OverviewPage.Top? {
        guard let users = figures.top.value, !users.isEmpty else { return nil }
        return OverviewPage.Top(
            rows: users.enumerated().map { index, usage in
                OverviewPage.Top.Row(
                    rank: index + 1,
                    user: usage.user.description,
                    used: NumberText.grouped(usage.used),
                    limit: usage.limit.map(NumberText.grouped) ?? "unlimited",
                    share: usage.limit.map { NumberText.percent(usage.used, of: $0) } ?? "–",
                    tier: usage.tier.rawValue
                )
            },
            age: age(figures.top)
        )
    }

    private var topMissing: String {
        guard figures.top.value != nil else { return missing(figures.top) }
        return "Nobody has sent a message in this period."
    }

    // MARK: What is not there

    private func missing<Value>(_ figure: Figure<Value>) -> String {
        switch figure {
        case .missing(let error): error.advice
        case .counting, .known:
            "This is being counted: the table is large, and it is read slowly so that messages go on. "
                + "Reload the page in a few seconds."
        }
    }

    private func age<Value>(_ figure: Figure<Value>) -> String {
        figure.age.map(NumberText.age) ?? ""
    }
}
