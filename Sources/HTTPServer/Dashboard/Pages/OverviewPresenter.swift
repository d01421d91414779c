import Engine
import Usage

/// The values that the overview shows.
struct OverviewFigures: Sendable {
    /// Reports of all billing periods, and the current month by the database's clock.
    var periods: Figure<AllPeriods>
    /// The selected period; `BillingPeriod.open` by default.
    var period: BillingPeriod
    var top: Figure<[PeriodUsage]>
    /// Oldest first; today is the last.
    var days: Figure<[DailyActivity]>
    /// All plans, and the store events that failed.
    var billing: Figure<BillingOverview>
    var live: LiveFigures

    /// All figures are loaded, and none of them shows a message.
    var isNewInstallation: Bool {
        guard let periods = periods.value, let days = days.value else { return false }
        return periods.reports.isEmpty && days.allSatisfy { $0.messages == 0 && $0.blocked == 0 }
    }

    fileprivate var errors: [EngineError] {
        [periods.error, days.error, top.error, billing.error].compactMap(\.self)
    }

    fileprivate var isLoading: Bool {
        periods.isLoading || days.isLoading || top.isLoading || billing.isLoading
    }
}

/// Turns the overview's figures into texts and charts.
struct OverviewPresenter {
    /// An adopted table may have rows with any labels, thousands of them. Every period can be selected by its address.
    private static let listedMonthsMaximum = 60
    private static let listedPlansMaximum = 40

    let figures: OverviewFigures
    /// Shown by a new installation.
    var firstSteps = FirstSteps(command: nil)

    func page(_ frame: Frame) -> OverviewPage {
        let heading = TimeText.period(figures.period)
        let report = figures.periods.value?.report(of: figures.period)
        let summary = report.flatMap { $0.users == 0 ? nil : self.summary($0) }
        let isNew = figures.isNewInstallation
        return OverviewPage(
            frame: frame,
            refreshSeconds: figures.isLoading
                ? OverviewPage.refreshSecondsWhileLoading : OverviewPage.refreshSeconds,
            notices: notices,
            firstSteps: isNew && figures.period == .open ? firstSteps : nil,
            hasCharts: !isNew,
            periods: options,
            heading: heading,
            explanation: explanation,
            summary: summary,
            summaryPlaceholder: summary == nil ? summaryPlaceholder : nil,
            live: figures.live.view,
            days: days,
            daysPlaceholder: days == nil ? daysPlaceholder : nil,
            history: history,
            historyPlaceholder: history == nil ? historyPlaceholder : nil,
            top: top,
            topPlaceholder: top == nil ? topPlaceholder : nil,
            plans: plans,
            plansPlaceholder: plans == nil ? plansPlaceholder : nil,
            failedEvents: failedEvents,
            failedEventsPlaceholder: failedEvents == nil ? failedEventsPlaceholder : nil
        )
    }

    /// Some figure could not be loaded.
    var isIncomplete: Bool { !figures.errors.isEmpty }

    private var notices: [Notice] {
        var notices: [Notice] = []
        if let error = figures.errors.first {
            let hasValues = figures.periods.value != nil
            let rest = hasValues ? " The figures below are older; each section says how old." : ""
            notices.append(Notice(.warning, error.headline, error.advice + rest))
        }
        if let count = figures.billing.value?.failedCount, count > 0 {
            notices.append(
                Notice(
                    .warning,
                    "\(OverviewPresenter.failedText(count)) failed.",
                    "Their users may have the wrong access. See “Failed store events” below."
                )
            )
        }
        return notices
    }

    // MARK: The period

    private var options: [OverviewPage.PeriodOption] {
        let loaded = figures.periods.value
        var labels = Set(loaded?.reports.map(\.period) ?? [])
        if let current = loaded?.current { labels.insert(current) }
        labels.formUnion([.open, figures.period])
        let months = labels.filter { $0.month != nil }.sorted { $0.label > $1.label }
            .bounded(to: OverviewPresenter.listedMonthsMaximum, keeping: [loaded?.current, figures.period])
        let others = labels.filter { $0.month == nil && $0 != .open }.sorted { $0.label < $1.label }
            .bounded(to: OverviewPresenter.listedPlansMaximum, keeping: [figures.period])
        return ([.open] + months + others).map { period in
            let text = TimeText.period(period) + (period == loaded?.current ? " (this month)" : "")
            return OverviewPage.PeriodOption(value: period.label, text: text, isSelected: period == figures.period)
        }
    }

    private var explanation: String {
        guard figures.period != .open else {
            return "Each user’s current period: a month from the user’s own start day, or a trial."
        }
        return figures.period.month == nil
            ? "This allowance never resets, so all users share one period."
            : "Periods that begin in this month, on each user’s own start day."
    }

    private static let tierMeanings: [Tier: String] = [
        .silent: "below 80 % of the limit", .gentle: "80 to 94 %", .prominent: "95 to 99 %",
        .blocked: "limit reached, or no access",
    ]

    private func summary(_ report: PeriodReport) -> PeriodSummary {
        let blocked = report.users(in: .blocked)
        let rows = Tier.allCases.map { tier in
            PeriodSummary.TierRow(
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
        // Not messages * 10 / users, which may overflow.
        let (ones, rest) = report.messages.quotientAndRemainder(dividingBy: max(1, report.users))
        let tenths = ones * 10 + rest * 10 / max(1, report.users)
        return PeriodSummary(
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

    private var summaryPlaceholder: String {
        guard figures.periods.value != nil else { return placeholder(figures.periods) }
        guard figures.period == .open else { return "No usage in this period." }
        return "No period is open now. Choose an earlier billing period above."
    }

    // MARK: Top users

    private var top: TopUsersSection? {
        guard let users = figures.top.value, !users.isEmpty else { return nil }
        return TopUsersSection(
            rows: users.enumerated().map { index, usage in
                TopUsersSection.Row(
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

    private var topPlaceholder: String {
        // A period without users has no top users, whether or not these are loaded.
        let hasUsers = figures.periods.value.map { $0.report(of: figures.period).users > 0 } ?? true
        guard figures.top.value != nil || !hasUsers && figures.top.isLoading else { return placeholder(figures.top) }
        return "No messages in this period."
    }

    // MARK: Placeholders and ages

    func placeholder<Value>(_ figure: Figure<Value>) -> String {
        switch figure {
        case .failed(let error): error.advice
        case .loading, .loaded:
            "Still counting: a large table is read slowly so that messages are not held up. "
                + "If scripts are off, reload the page in a few seconds."
        }
    }

    func age<Value>(_ figure: Figure<Value>) -> String {
        guard let age = figure.age.map(NumberText.age) else { return "" }
        return figure.isLoading ? "\(age), being updated now" : age
    }
}

extension [BillingPeriod] {
    /// The first `count` periods, and those to keep.
    fileprivate func bounded(to count: Int, keeping kept: [BillingPeriod?]) -> [BillingPeriod] {
        Array(prefix(count)) + dropFirst(count).filter { kept.contains($0) }
    }
}
