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
        return errors.isEmpty && periods.reports.isEmpty && days.allSatisfy { $0.messages == 0 && $0.blocked == 0 }
    }

    /// An empty list may be out of date.
    fileprivate var errors: [EngineError] {
        [periods.error, days.error, top.error, billing.error].compactMap(\.self)
    }

    fileprivate var isLoading: Bool {
        periods.isLoading || days.isLoading || top.isLoading || billing.isLoading
    }
}

/// Turns the overview's figures into texts and charts.
struct OverviewPresenter {
    let figures: OverviewFigures
    /// Shown by a new installation.
    var firstSteps = FirstSteps(command: nil)
    /// The viewer has the scope operator.
    var mayChange = false

    func page(_ frame: Frame) -> OverviewPage {
        let heading = TimeText.period(figures.period)
        let report = figures.periods.value?.report(of: figures.period)
        let summary = report.flatMap { $0.users == 0 ? nil : self.summary($0) }
        let isNew = figures.isNewInstallation
        let options = PeriodOptions(figures.periods.value, selected: figures.period)
        return OverviewPage(
            frame: frame,
            refreshSeconds: figures.isLoading
                ? OverviewPage.refreshSecondsWhileLoading : OverviewPage.refreshSeconds,
            notices: notices,
            firstSteps: isNew && figures.period == .open ? firstSteps : nil,
            hasCharts: !isNew,
            periods: options.options,
            isPeriodsTruncated: options.isTruncated,
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
                    (count == 1 ? "Its user" : "Their users")
                        + " may have the wrong access. See “Failed store events” below."
                )
            )
        }
        return notices
    }

    // MARK: The period

    private var explanation: String {
        guard figures.period != .open else {
            return "Each user’s current period: a month from the user’s own start day, a week, a day, or a trial."
        }
        let period = figures.period
        guard period.number == 1 else {
            let start = TimeText.period(period.unnumbered)
            return "Users who bought again: their period number \(period.number) that began in \(start)."
        }
        let again = " A user who bought again in it counts once."
        if period.month != nil { return "Periods that begin in this month, on each user’s own start day.\(again)" }
        if period.week != nil { return "Periods that begin in this week.\(again)" }
        return period.day == nil
            ? "This allowance never resets, so all users share one period."
            : "It begins at midnight in the time zone of each user’s plan."
    }

    private static let tierMeanings: [Tier: String] = [
        .silent: "below 80 % of the limit", .gentle: "80 to 94 %", .prominent: "95 to 99 %",
        .blocked: "limit reached, or no access",
    ]

    private func summary(_ report: PeriodReport) -> PeriodSummary {
        let blocked = report.users(in: .blocked)
        let rows = Tier.allCases.map { tier in
            let count = report.users(in: tier)
            return PeriodSummary.TierRow(
                name: tier.rawValue,
                meaning: OverviewPresenter.tierMeanings[tier] ?? "",
                users: NumberText.grouped(count),
                link: count == 0 ? nil : UserListQuery(period: figures.period, tier: tier).path(),
                linkLabel: "\(NumberText.count(count, "user")) in the tier \(tier.rawValue)",
                share: NumberText.percent(count, of: report.users)
            )
        }
        let bar = ShareBar(
            id: "tiers",
            title: "Users by tier",
            summary: rows.map { "\($0.name): \($0.users), \($0.share)" }.joined(separator: "; "),
            parts: Tier.allCases.map { ShareBar.Part(name: $0.rawValue, count: report.users(in: $0)) }
        )
        return PeriodSummary(
            messages: NumberText.grouped(report.messages),
            users: NumberText.grouped(report.users),
            average: OverviewPresenter.average(report),
            blocked: NumberText.grouped(blocked),
            blockedShare: NumberText.percent(blocked, of: report.users),
            hasBlocked: blocked > 0,
            bar: bar.svg,
            tiers: rows,
            age: age(figures.periods)
        )
    }

    /// Messages are whole; only an average of few of them needs a decimal.
    private static func average(_ report: PeriodReport) -> String {
        // Not messages * 10 / users, which may overflow.
        let (ones, rest) = report.messages.quotientAndRemainder(dividingBy: max(1, report.users))
        let tenths = rest * 10 / max(1, report.users)
        guard ones < 10, tenths > 0 else {
            let rounded = ones + (ones >= 10 && rest * 2 >= report.users ? 1 : 0)
            return "\(NumberText.count(rounded, "message")) a user on average"
        }
        return "\(ones).\(tenths) messages a user on average"
    }

    private var summaryPlaceholder: String {
        guard figures.periods.value != nil else { return placeholder(figures.periods) }
        guard figures.period == .open else { return empty("No usage in this period.", figures.periods) }
        return empty("No period is open now. Choose an earlier billing period above.", figures.periods)
    }

    // MARK: Top users

    private var top: TopUsersSection? {
        guard let users = figures.top.value, !users.isEmpty else { return nil }
        return TopUsersSection(
            rows: users.enumerated().map { index, usage in
                TopUsersSection.Row(usage, rank: index + 1)
            },
            age: age(figures.top)
        )
    }

    private var topPlaceholder: String {
        // A period without users has no top users, whether or not these are loaded.
        let hasUsers = figures.periods.value.map { $0.report(of: figures.period).users > 0 } ?? true
        guard figures.top.value != nil || !hasUsers && figures.top.isLoading else { return placeholder(figures.top) }
        return empty("No messages in this period.", figures.top)
    }

    // MARK: Placeholders and ages

    func placeholder<Value>(_ figure: Figure<Value>) -> String { OverviewPresenter.placeholder(figure) }

    func empty<Value>(_ text: String, _ figure: Figure<Value>) -> String { OverviewPresenter.empty(text, figure) }

    /// A text that says that a figure is empty. If it could not be read since, the text says so, and how old it is.
    static func empty<Value>(_ text: String, _ figure: Figure<Value>) -> String {
        guard let error = figure.error else { return text }
        let age = figure.age.map { " That was \(NumberText.age($0))." } ?? ""
        return "\(text)\(age) \(error.advice)"
    }

    /// Why a figure is not shown.
    static func placeholder<Value>(_ figure: Figure<Value>) -> String {
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
