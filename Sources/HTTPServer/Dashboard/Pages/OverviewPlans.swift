import Engine
import Usage

/// Who is on which plan, how many trials there are, and which store events failed.
extension OverviewPresenter {
    var plans: PlansPart? {
        guard let periods = figures.periods.value, let records = figures.records.value else { return nil }
        let reports = periods.plans[figures.period] ?? []
        let known = records.plans.map { plan in
            (plan: plan, report: reports.first { $0.plan == plan.name } ?? PlanReport(plan: plan.name))
        }
        // Of the open periods, plans without users are listed too; of one month, only those that were used.
        let shown = known.filter { figures.period == .open || $0.report.users > 0 }
        let rows = shown.map { OverviewPresenter.row($0.plan.label, $0.plan.name, $0.plan, $0.report) }
        // Rows of a plan that was deleted, and rows that name none.
        let others = reports.filter { report in !records.plans.contains { $0.name == report.plan } }
            .map { OverviewPresenter.row($0.plan ?? "no plan named", nil, nil, $0) }
        return PlansPart(
            trials: records.plans.filter(\.isTrial).map { OverviewPresenter.trials($0, periods) },
            rows: (rows + others).sorted { ($0.count, $1.label) > ($1.count, $0.label) },
            hasRows: !(rows + others).isEmpty,
            age: age(figures.periods)
        )
    }

    var plansMissing: String {
        figures.periods.value == nil ? missing(figures.periods) : missing(figures.records)
    }

    private static func row(_ label: String, _ name: String?, _ plan: Plan?, _ report: PlanReport) -> PlansPart.Row {
        PlansPart.Row(
            label: label,
            name: name,
            allowance: plan.map(allowance) ?? "–",
            users: NumberText.grouped(report.users),
            messages: NumberText.grouped(report.messages),
            blocked: NumberText.grouped(report.blocked),
            count: report.users
        )
    }

    private static func allowance(_ plan: Plan) -> String {
        guard let allowance = plan.allowance.map(NumberText.grouped) else { return "unlimited" }
        return switch plan.cycle {
        case .monthly: "\(allowance) a month"
        case .trial(let days): "\(allowance) in \(NumberText.count(days, "day"))"
        case .lifetime: plan.allowance == 0 ? "none" : "\(allowance) in all"
        }
    }

    /// A trial's period never resets, so its rows are those of everybody who has ever had it.
    private static func trials(_ plan: Plan, _ periods: AllPeriods) -> PlansPart.Trials {
        let open = periods.plans[.open]?.first { $0.plan == plan.name }
        let all = periods.report(of: BillingPeriod(planNamed: plan.name)).users
        let running = (open?.users ?? 0) - (open?.blocked ?? 0)
        return PlansPart.Trials(
            label: plan.label,
            running: NumberText.grouped(running),
            usedUp: NumberText.grouped(open?.blocked ?? 0),
            over: NumberText.grouped(max(0, all - (open?.users ?? 0)))
        )
    }

    // MARK: Store events

    /// Nil when there are none, or when that is not known.
    var failedEvents: FailedEventsPart? {
        guard let records = figures.records.value, records.failedCount > 0 else { return nil }
        return FailedEventsPart(
            count: OverviewPresenter.failedText(records.failedCount),
            events: records.failedEvents.map { event in
                FailedEventsPart.Event(
                    at: TimeText(event.receivedAt),
                    source: event.source,
                    type: event.type,
                    user: event.user?.description,
                    problem: event.problem
                )
            },
            age: age(figures.records)
        )
    }

    var failedEventsMissing: String {
        figures.records.value == nil ? missing(figures.records) : "None. Every event that a store sent was understood."
    }

    static func failedText(_ count: Int) -> String {
        count >= OverviewRecords.failedCountMaximum
            ? "\(NumberText.grouped(count)) store events or more" : NumberText.count(count, "store event")
    }
}
