import Usage
import UsageStore

/// What one user's page is drawn from.
struct UserFigures: Sendable {
    var user: UserID
    /// The standing now, or why it cannot be read.
    var usage: Result<Answer, StoreError>
    var history: Result<[PeriodUsage], StoreError>
    var records: Result<UserRecords, StoreError>
}

/// Draws one user's figures as texts and a bar.
struct UserPresenter {
    let figures: UserFigures

    /// - Parameter actions: the operator's forms; nil for who may only look.
    func page(_ frame: Frame, notices: [Notice], actions: UserPage.Actions?) -> UserPage {
        let records = try? figures.records.get()
        let periods = (try? figures.history.get()) ?? []
        return UserPage(
            frame: frame,
            user: figures.user.description,
            notices: notices + troubles + (isUnknown ? [UserPresenter.unknown] : []),
            usage: answer.map { usage($0) },
            words: answer.map { words($0.standing) },
            actions: answer == nil ? nil : actions,
            chart: chart(periods),
            periods: periods.map(period),
            hasPeriods: !periods.isEmpty,
            recordsMissing: recordsMissing,
            hasRecords: records != nil,
            subscriptions: (records?.subscriptions ?? []).map(subscription),
            hasSubscriptions: records?.subscriptions.isEmpty == false,
            events: (records?.events ?? []).map(event),
            hasEvents: records?.events.isEmpty == false,
            changes: (records?.changes ?? []).map(change),
            hasChanges: records?.changes.isEmpty == false,
            isCut: (records?.changes.count ?? 0) >= UserPresenter.listMaximum
        )
    }

    /// Of each list; `headroom audit` has the rest.
    static let listMaximum = 100

    private var answer: Answer? { try? figures.usage.get() }

    var currentPeriod: BillingPeriod? { answer?.standing.period }

    /// Something that is needed cannot be read.
    var isIncomplete: Bool { !errors.isEmpty }

    private var errors: [StoreError] {
        var errors: [StoreError] = []
        if case .failure(let error) = figures.usage { errors.append(error) }
        if case .failure(let error) = figures.history { errors.append(error) }
        if case .failure(let error) = figures.records { errors.append(error) }
        return errors
    }

    private var troubles: [Notice] {
        guard let error = errors.first else { return [] }
        return [
            Notice(.warning, error.isTransient ? "The database is away." : "Not everything can be read.", error.advice)
        ]
    }

    private var recordsMissing: OverviewPage.Missing? {
        guard case .failure(let error) = figures.records else { return nil }
        return OverviewPage.Missing(text: error.advice)
    }

    /// Nobody has told of the user, and the user has sent nothing.
    private var isUnknown: Bool {
        guard let answer, let periods = try? figures.history.get(), let records = try? figures.records.get() else {
            return false
        }
        return periods.isEmpty && records.isEmpty && answer.standing.used == 0
    }

    private static let unknown = Notice(
        .warning,
        "This user is not known yet.",
        "Below is how a first message would find things. If you expected more, compare the id with your product’s."
    )

    // MARK: Usage now

    private func usage(_ answer: Answer) -> UserPage.Usage {
        let standing = answer.standing
        let limit = standing.limit
        let used = NumberText.grouped(standing.used)
        let thresholds = limit.map { limit in
            // The first count that is in the tier: rounded up, as in the arithmetic without division.
            [standing.plan.gentlePercent, standing.plan.prominentPercent].map { (limit * $0 + 99) / 100 }
        }
        let bar = limit.map { limit in
            ShareBar(
                id: "usage",
                title: standing.accessible,
                summary:
                    "\(NumberText.percent(standing.used, of: max(limit, 1))) of the limit; tier \(standing.tier.rawValue)",
                parts: [
                    ShareBar.Part(name: standing.tier.rawValue, count: standing.used),
                    ShareBar.Part(name: "held", count: standing.held),
                ],
                whole: max(limit, 1),
                marks: thresholds ?? []
            ).svg
        }
        return UserPage.Usage(
            used: limit.map { "\(used) of \(NumberText.grouped($0))" } ?? used,
            sentence: sentence(standing, thresholds),
            bar: bar,
            tier: standing.tier.rawValue,
            facts: facts(standing),
            age: "just now"
        )
    }

    private func sentence(_ standing: Standing, _ thresholds: [Int]?) -> String {
        guard let thresholds, standing.limit != 0 else { return standing.accessible + "." }
        let marks = thresholds.map(NumberText.grouped)
        return standing.accessible + ". The marks are where gentle (\(marks[0])) and prominent (\(marks[1])) begin."
    }

    private func facts(_ standing: Standing) -> [UserPage.Fact] {
        var facts = [
            UserPage.Fact(name: "Plan", text: standing.plan.label, more: standing.plan.name),
            UserPage.Fact(name: "State", text: standing.state.rawValue.spaced),
            UserPage.Fact(name: "Remaining", text: standing.remaining.map(NumberText.grouped) ?? "unlimited"),
            UserPage.Fact(name: "Billing period", text: TimeText.period(standing.period)),
        ]
        if standing.held > 0 {
            facts.append(
                UserPage.Fact(name: "Held", text: NumberText.grouped(standing.held), more: "not yet committed")
            )
        }
        if let lapse = standing.lapse ?? standing.refusal(of: 1) {
            facts.append(UserPage.Fact(name: "Refused because", text: lapse.rawValue.spaced))
        }
        if let comesBackAt = standing.comesBackAt {
            facts.append(UserPage.Fact(name: "Comes back", time: TimeText(comesBackAt)))
        }
        if let (day, days) = standing.trialDay {
            facts.append(UserPage.Fact(name: "Trial", text: "day \(day) of \(days)"))
        }
        if let expiresAt = standing.expiresAt {
            let isOver = expiresAt <= standing.observedAt
            let name = isOver ? "Ended" : standing.renewsAt != nil ? "Renews" : "Access until"
            facts.append(UserPage.Fact(name: name, time: TimeText(expiresAt)))
        }
        if let previous = standing.previousPlan {
            facts.append(UserPage.Fact(name: "Plan before", text: previous))
        }
        return facts
    }

    private func words(_ standing: Standing) -> UserPage.Words {
        UserPage.Words(
            display: standing.display.rawValue,
            banner: standing.banner,
            notice: standing.notice,
            label: standing.label,
            isSilent: standing.banner == nil && standing.notice == nil
        )
    }

    // MARK: Lists

    private func period(_ usage: PeriodUsage) -> UserPage.Period {
        UserPage.Period(
            name: TimeText.period(usage.period),
            used: NumberText.grouped(usage.used),
            limit: usage.limit.map(NumberText.grouped) ?? "unlimited",
            share: usage.limit.map { NumberText.percent(usage.used, of: $0) } ?? "–",
            tier: usage.tier.rawValue,
            isCurrent: usage.period == answer?.standing.period
        )
    }

    /// From two periods on there is something to compare.
    private func chart(_ periods: [PeriodUsage]) -> OverviewPage.Chart? {
        guard periods.count > 1 else { return nil }
        let columns = periods.reversed().map { usage in
            ColumnChart.Column(
                label: TimeText.shortPeriod(usage.period),
                name: TimeText.period(usage.period),
                value: usage.used,
                isUnfinished: usage.period == answer?.standing.period
            )
        }
        let summary = "\(columns.count) periods, oldest first. The table below has the numbers."
        return OverviewPage.Chart(
            svg: ColumnChart(id: "periods", title: "Messages by billing period", summary: summary, columns: columns)
                .svg,
            unit: "Period",
            hasBlocked: false,
            rows: [],
            age: ""
        )
    }

    private func subscription(_ subscription: UserRecords.Subscription) -> UserPage.Subscription {
        var more: [String] = []
        func add(_ words: String, _ instant: Instant?) {
            if let instant { more.append("\(words) \(TimeText(instant).person)") }
        }
        add("revoked", subscription.revokedAt)
        add("payment trouble since", subscription.billingIssueAt)
        add("grace until", subscription.graceUntil)
        add("unsubscribed", subscription.unsubscribedAt)
        if let next = subscription.nextPlan { more.append("next plan \(next)") }
        if let product = subscription.product { more.append("product \(product)") }
        return UserPage.Subscription(
            transaction: subscription.transaction,
            plan: subscription.plan,
            started: subscription.startedAt.map { TimeText($0) },
            expires: subscription.expiresAt.map { TimeText($0) },
            more: more.isEmpty ? nil : more.joined(separator: "; ").sentence
        )
    }

    private func event(_ event: UserRecords.Event) -> UserPage.Event {
        let state =
            switch event.outcome {
            case "applied": "good"
            case "failed": "bad"
            case "waiting": "warning"
            default: "neutral"
            }
        return UserPage.Event(
            at: TimeText(event.at),
            source: event.source,
            type: event.type,
            outcome: event.outcome,
            outcomeState: state,
            problem: event.problem,
            detail: event.detail?.isEmpty == true ? nil : event.detail
        )
    }

    private func change(_ change: StoryReader.Event) -> UserPage.Change {
        let parts = (change.detail ?? "").split(separator: ", ").map(String.init)
        let changed = parts.filter { $0.contains("→") }
        // A row that came or went has nothing on the other side.
        let told = changed.isEmpty ? parts : changed
        let rest = changed.isEmpty ? [] : parts.filter { !$0.contains("→") }
        return UserPage.Change(
            at: TimeText(change.at),
            what: change.what.spaced,
            changed: told.isEmpty ? nil : told.joined(separator: ", "),
            unchanged: rest.isEmpty ? nil : rest.joined(separator: ", "),
            actor: change.actor,
            reason: change.reason
        )
    }
}

extension String {
    /// A name of the protocol's as words.
    fileprivate var spaced: String { String(map { $0 == "_" ? " " : $0 }) }
}
