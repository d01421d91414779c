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
            notices: notices + troubles + stateNotices + (isUnknown ? [UserPresenter.unknown] : []),
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

    var answer: Answer? { try? figures.usage.get() }

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
        errors.first.map { [Notice(.warning, $0.headline, $0.advice)] } ?? []
    }

    /// What has to be known before the numbers: they look as ever while a payment is missing.
    private var stateNotices: [Notice] {
        guard let standing = answer?.standing else { return [] }
        switch standing.state {
        case .gracePeriod:
            let end = standing.expiresAt.map { " until \(TimeText($0).person)" } ?? ""
            return [Notice(.bad, "A payment failed.", "The user has access\(end), and is asked to mend the payment.")]
        case .billingRetry:
            let text = "The user has no access until the payment is made."
            return [Notice(.bad, "A payment failed, and its grace period is over.", text)]
        case .revoked:
            let text = "It was refunded, or is no longer shared by a family. The user has no access."
            return [Notice(.bad, "The subscription is revoked.", text)]
        case .trial, .active, .cancelled, .expired, .free: return []
        }
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
            state: standing.lapse == .trialEnded ? "trial ended" : standing.state.rawValue.spaced,
            stateLook: UserPresenter.look(standing),
            tier: standing.tier.rawValue,
            tierLook: UserPresenter.look(standing) == "good" ? standing.tier.rawValue : "",
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
        if let access = UserPresenter.access(standing) { facts.append(access) }
        if let previous = standing.previousPlan {
            facts.append(UserPage.Fact(name: "Plan before", text: previous))
        }
        return facts
    }

    /// How long the user has access, or that there is none. What was paid for may last longer: a revoked subscription gives
    /// nothing at all.
    private static func access(_ standing: Standing) -> UserPage.Fact? {
        let expiresAt = standing.expiresAt
        guard standing.lapse == nil else {
            guard let expiresAt, expiresAt <= standing.observedAt, standing.state != .revoked else {
                return UserPage.Fact(name: "Access", text: "none")
            }
            return UserPage.Fact(name: "Access ended", time: TimeText(expiresAt))
        }
        return expiresAt.map { end in
            UserPage.Fact(name: standing.renewsAt != nil ? "Renews" : "Access until", time: TimeText(end))
        }
    }

    /// Of the stylesheet's states.
    private static func look(_ standing: Standing) -> String {
        switch standing.state {
        case .gracePeriod, .billingRetry, .revoked: "bad"
        case .cancelled, .expired: "warning"
        case .trial: standing.lapse == nil ? "good" : "warning"
        case .active: "good"
        case .free: "neutral"
        }
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
}

extension String {
    /// A name of the protocol's as words.
    var spaced: String { String(map { $0 == "_" ? " " : $0 }) }
}
