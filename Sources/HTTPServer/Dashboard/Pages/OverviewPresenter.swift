import Engine
import Usage

/// What the overview is drawn from.
struct OverviewFigures: Sendable {
    /// All billing periods, all that are open together, and which one is the current month by the database's clock.
    var periods: Figure<AllPeriods>
    /// What the page is about; `BillingPeriod.open` unless somebody chose another.
    var period: BillingPeriod
    var top: Figure<[PeriodUsage]>
    /// Oldest first; today is the last.
    var days: Figure<[DayActivity]>
    var records: Figure<OverviewRecords>
    var live: LiveFigures

    /// All figures are read, and none of them shows a message.
    var isNewInstallation: Bool {
        guard let periods = periods.value, let days = days.value else { return false }
        return periods.reports.isEmpty && days.allSatisfy { $0.messages == 0 && $0.blocked == 0 }
    }

    fileprivate var troubles: [EngineError] {
        [periods.trouble, days.trouble, top.trouble, records.trouble].compactMap(\.self)
    }

    fileprivate var isUnderWay: Bool {
        periods.isUnderWay || days.isUnderWay || top.isUnderWay || records.isUnderWay
    }
}

/// Draws the overview's figures as texts and charts.
struct OverviewPresenter {
    let figures: OverviewFigures
    /// The first steps that a new installation shows.
    var firstSteps = FirstSteps(command: nil)

    func page(_ frame: Frame) -> OverviewPage {
        let heading = TimeText.period(figures.period)
        let report = figures.periods.value?.report(of: figures.period)
        let isNew = figures.isNewInstallation
        return OverviewPage(
            frame: frame,
            refreshSeconds: figures.isUnderWay ? OverviewPage.soon : OverviewPage.later,
            notices: notices,
            firstSteps: isNew && figures.period == .open ? firstSteps : nil,
            hasCharts: !isNew,
            periods: options,
            heading: heading,
            explanation: explanation,
            glance: report.flatMap { $0.users == 0 ? nil : glance($0) },
            glanceMissing: report == nil || report?.users == 0 ? OverviewPage.Missing(text: glanceMissing) : nil,
            live: figures.live.view,
            days: days,
            daysMissing: days == nil ? OverviewPage.Missing(text: daysMissing) : nil,
            history: history,
            historyMissing: history == nil ? OverviewPage.Missing(text: historyMissing) : nil,
            top: top,
            topMissing: top == nil ? OverviewPage.Missing(text: topMissing) : nil,
            plans: plans,
            plansMissing: plans == nil ? OverviewPage.Missing(text: plansMissing) : nil,
            failedEvents: failedEvents,
            failedEventsMissing: failedEvents == nil ? OverviewPage.Missing(text: failedEventsMissing) : nil
        )
    }

    /// Something that is needed cannot be read.
    var isIncomplete: Bool { !figures.troubles.isEmpty }

    private var notices: [Notice] {
        var notices: [Notice] = []
        if let trouble = figures.troubles.first {
            let isKnown = figures.periods.value != nil
            let rest = isKnown ? " What you see was read before that; each part says when." : ""
            notices.append(Notice(.warning, trouble.headline, trouble.advice + rest))
        }
        if let count = figures.records.value?.failedCount, count > 0 {
            notices.append(
                Notice(
                    .warning,
                    "\(OverviewPresenter.failedText(count)) failed.",
                    "The users concerned may have the wrong access. The end of this page says what to do."
                )
            )
        }
        return notices
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
        return "No period is open now. Choose a billing period above to see an earlier one."
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
        // Nothing has to be read to know that.
        let hasUsers = figures.periods.value.map { $0.report(of: figures.period).users > 0 } ?? true
        guard figures.top.value != nil || !hasUsers && figures.top.isUnderWay else { return missing(figures.top) }
        return "Nobody has sent a message in this period."
    }

    // MARK: What is not there

    func missing<Value>(_ figure: Figure<Value>) -> String {
        switch figure {
        case .missing(let error): error.advice
        case .counting, .known:
            "This is being counted: the table is large, and it is read slowly so that messages go on. "
                + "Without scripts, reload the page in a few seconds."
        }
    }

    func age<Value>(_ figure: Figure<Value>) -> String {
        guard let age = figure.age.map(NumberText.age) else { return "" }
        return figure.isUnderWay ? "\(age), and being read again now" : age
    }
}
