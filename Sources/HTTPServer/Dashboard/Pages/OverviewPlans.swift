import Engine
import Usage

/// The overview's sections: users by plan, with trials; and failed store events.
extension OverviewPresenter {
    var plans: PlansSection? {
        guard let periods = figures.periods.value, let billing = figures.billing.value else { return nil }
        let reports = periods.plans[figures.period] ?? []
        let configured = billing.plans.map { plan in
            (plan: plan, report: reports.first { $0.plan == plan.name } ?? PlanReport(plan: plan.name))
        }
        // A plan without users is listed only if the open periods are shown.
        let shown = configured.filter { figures.period == .open || $0.report.users > 0 }
        let rows = shown.map { row($0.plan.label, $0.plan.name, $0.plan, $0.report) }
        // Usage rows of deleted plans, and usage rows without a plan.
        let others = reports.filter { report in !billing.plans.contains { $0.name == report.plan } }
            .map { row($0.plan ?? "no plan", nil, nil, $0) }
        let sorted = (rows + others).sorted { ($0.userCount, $1.label) > ($1.userCount, $0.label) }
        return PlansSection(
            trials: billing.plans.filter(\.isTrial).prefix(OverviewPresenter.trialsMaximum)
                .map { OverviewPresenter.trials($0, periods) },
            unenforced: unenforced(billing.plans.filter { !$0.isEnforced && $0.allowance != nil }),
            rows: Array(sorted.prefix(OverviewPresenter.plansMaximum)),
            hasRows: !sorted.isEmpty,
            isTruncated: sorted.count > OverviewPresenter.plansMaximum,
            age: age(figures.periods)
        )
    }

    private func unenforced(_ plans: [Plan]) -> String? {
        guard !plans.isEmpty else { return nil }
        let labels = plans.prefix(OverviewPresenter.trialsMaximum).map(\.label).joined(separator: ", ")
        let more = plans.count > OverviewPresenter.trialsMaximum ? " and more" : ""
        let answers = NumberText.count(figures.live.shadowAnswers, "message")
        return "Not enforced: the limit of \(labels)\(more). This instance has allowed \(answers) since its start that "
            + "enforced limits would have refused."
    }

    var plansPlaceholder: String {
        figures.periods.value == nil ? placeholder(figures.periods) : placeholder(figures.billing)
    }

    /// Of plans, and of trials among them: a page must not grow with their number.
    static let (plansMaximum, trialsMaximum, limitsMaximum) = (100, 10, 10)

    private func row(_ label: String, _ name: String?, _ plan: Plan?, _ report: PlanReport) -> PlansSection.Row {
        // A row that was inserted manually can have any text as its plan.
        let listed = report.users == 0 ? nil : report.plan.flatMap { Plan.isName($0) ? $0 : nil }
        return PlansSection.Row(
            label: label,
            name: name,
            allowance: plan.map { OverviewPresenter.text($0.allowance, $0.window, of: $0) } ?? "–",
            limits: plan.map(OverviewPresenter.limits) ?? [],
            users: NumberText.grouped(report.users),
            link: listed.map { UserListQuery(period: figures.period, plan: $0).path() },
            linkLabel: "\(NumberText.count(report.users, "user")) on the plan \(label)",
            messages: NumberText.grouped(report.messages),
            blocked: NumberText.grouped(report.blocked),
            userCount: report.users
        )
    }

    /// `800 a month, 80 in 3 h`
    private static func text(_ allowance: Int?, _ window: Plan.Window?, of plan: Plan) -> String {
        let zone = plan.timeZone.map { " (\($0))" } ?? ""
        let inPeriod = allowance.map { messages in
            let number = NumberText.grouped(messages)
            return switch plan.cycle {
            case .monthly: "\(number) a month"
            case .weekly: "\(number) a week\(zone)"
            case .daily: "\(number) a day\(zone)"
            case .trial(let days): "\(number) in \(NumberText.count(days, "day"))"
            case .lifetime: messages == 0 ? "none" : "\(number) in all"
            }
        }
        let inWindow = window.map { "\(NumberText.grouped($0.messages)) in \(NumberText.duration($0.seconds))" }
        let texts = [inPeriod, inWindow].compactMap(\.self)
        return texts.isEmpty ? "unlimited" : texts.joined(separator: ", ")
    }

    /// Of each model and member, some at most: a page must not grow with their number.
    private static func limits(_ plan: Plan) -> [String] {
        let limits = plan.limits.prefix(limitsMaximum).map { limit in
            let name = limit.label ?? (limit.kind == .member ? "each member" : limit.name)
            let weight = limit.weight > 1 ? ", each counts \(limit.weight)" : ""
            return "\(name.isolated): \(text(limit.allowance, limit.window, of: plan))\(weight)"
        }
        let more = plan.limits.count - limits.count
        return limits + (more > 0 ? ["and \(NumberText.count(more, "limit")) more"] : [])
    }

    /// A trial's period never resets, so its usage rows are those of all users that ever had the trial.
    private static func trials(_ plan: Plan, _ periods: AllPeriods) -> PlansSection.Trials {
        let open = periods.plans[.open]?.first { $0.plan == plan.name }
        let all = periods.report(of: BillingPeriod(planNamed: plan.name)).users
        let running = (open?.users ?? 0) - (open?.blocked ?? 0)
        return PlansSection.Trials(
            label: plan.label,
            running: NumberText.grouped(running),
            usedUp: NumberText.grouped(open?.blocked ?? 0),
            over: NumberText.grouped(max(0, all - (open?.users ?? 0)))
        )
    }

    // MARK: Store events

    /// Nil if none failed, or if they are not loaded.
    var failedEvents: FailedEventsSection? {
        guard let billing = figures.billing.value, billing.failedCount > 0 else { return nil }
        return FailedEventsSection(
            count: OverviewPresenter.failedText(billing.failedCount),
            events: billing.failedEvents.map { event in
                FailedEventsSection.Event(
                    replayLink: mayChange ? EventPage.path(of: event.name) : nil,
                    at: TimeText(event.receivedAt),
                    source: event.name.source,
                    type: event.type,
                    user: event.user?.description,
                    problem: event.problem
                )
            },
            age: age(figures.billing)
        )
    }

    var failedEventsPlaceholder: String {
        figures.billing.value == nil
            ? placeholder(figures.billing) : empty("No store event has failed.", figures.billing)
    }

    static func failedText(_ count: Int) -> String {
        count >= BillingOverview.failedCountMaximum
            ? "\(NumberText.grouped(count)) store events or more" : NumberText.count(count, "store event")
    }
}
