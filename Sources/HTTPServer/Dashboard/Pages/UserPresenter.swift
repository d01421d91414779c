import Engine
import Usage

/// What one user's page is drawn from.
struct UserFigures: Sendable {
    var user: UserID
    /// The snapshot now, or why it cannot be read.
    var usage: Result<Answer, EngineError>
    var history: Result<[PeriodUsage], EngineError>
    var records: Result<UserRecords, EngineError>
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
            words: answer.map { words($0.snapshot) },
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

    var currentPeriod: BillingPeriod? { answer?.snapshot.period }

    /// Something that is needed cannot be read.
    var isIncomplete: Bool { !errors.isEmpty }

    private var errors: [EngineError] {
        var errors: [EngineError] = []
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
        guard let snapshot = answer?.snapshot else { return [] }
        switch snapshot.state {
        case .gracePeriod:
            let end = snapshot.expiresAt.map { " until \(TimeText($0).person)" } ?? ""
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
        return periods.isEmpty && records.isEmpty && answer.snapshot.used == 0
    }

    private static let unknown = Notice(
        .warning,
        "This user is not known yet.",
        "Below is how a first message would find things. If you expected more, compare the id with your product’s."
    )

    // MARK: Usage now

    private func usage(_ answer: Answer) -> UserPage.Usage {
        let snapshot = answer.snapshot
        let limit = snapshot.limit
        let used = NumberText.grouped(snapshot.used)
        let thresholds = limit.map { limit in
            // The first count that is in the tier: rounded up, as in the arithmetic without division.
            [snapshot.plan.gentlePercent, snapshot.plan.prominentPercent].map { (limit * $0 + 99) / 100 }
        }
        let bar = limit.map { limit in
            ShareBar(
                id: "usage",
                title: snapshot.accessible,
                summary:
                    "\(NumberText.percent(snapshot.used, of: max(limit, 1))) of the limit; tier \(snapshot.tier.rawValue)",
                parts: [
                    ShareBar.Part(name: snapshot.tier.rawValue, count: snapshot.used),
                    ShareBar.Part(name: "held", count: snapshot.held),
                ],
                whole: max(limit, 1),
                marks: thresholds ?? []
            ).svg
        }
        return UserPage.Usage(
            used: limit.map { "\(used) of \(NumberText.grouped($0))" } ?? used,
            sentence: sentence(snapshot, thresholds),
            bar: bar,
            state: snapshot.denialReason == .trialEnded ? "trial ended" : snapshot.state.rawValue.spaced,
            stateLook: UserPresenter.look(snapshot),
            tier: snapshot.tier.rawValue,
            tierLook: UserPresenter.look(snapshot) == "good" ? snapshot.tier.rawValue : "",
            facts: facts(snapshot),
            age: "just now"
        )
    }

    private func sentence(_ snapshot: UsageSnapshot, _ thresholds: [Int]?) -> String {
        guard let thresholds, snapshot.limit != 0 else { return snapshot.accessible + "." }
        let marks = thresholds.map(NumberText.grouped)
        return snapshot.accessible + ". The marks are where gentle (\(marks[0])) and prominent (\(marks[1])) begin."
    }

    private func facts(_ snapshot: UsageSnapshot) -> [UserPage.Fact] {
        var facts = [
            UserPage.Fact(name: "Plan", text: snapshot.plan.label, more: snapshot.plan.name),
            UserPage.Fact(name: "State", text: snapshot.state.rawValue.spaced),
            UserPage.Fact(name: "Remaining", text: snapshot.remaining.map(NumberText.grouped) ?? "unlimited"),
            UserPage.Fact(name: "Billing period", text: TimeText.period(snapshot.period)),
        ]
        if snapshot.held > 0 {
            facts.append(
                UserPage.Fact(name: "Held", text: NumberText.grouped(snapshot.held), more: "not yet committed")
            )
        }
        if let denialReason = snapshot.denialReason ?? snapshot.refusal(of: 1) {
            facts.append(UserPage.Fact(name: "Refused because", text: denialReason.rawValue.spaced))
        }
        if let availableAgainAt = snapshot.availableAgainAt {
            facts.append(UserPage.Fact(name: "Comes back", time: TimeText(availableAgainAt)))
        }
        if let (day, days) = snapshot.trialDay {
            facts.append(UserPage.Fact(name: "Trial", text: "day \(day) of \(days)"))
        }
        if let access = UserPresenter.access(snapshot) { facts.append(access) }
        if let previous = snapshot.previousPlan {
            facts.append(UserPage.Fact(name: "Plan before", text: previous))
        }
        return facts
    }

    /// How long the user has access, or that there is none. What was paid for may last longer: a revoked subscription gives
    /// nothing at all.
    private static func access(_ snapshot: UsageSnapshot) -> UserPage.Fact? {
        let expiresAt = snapshot.expiresAt
        guard snapshot.denialReason == nil else {
            guard let expiresAt, expiresAt <= snapshot.observedAt, snapshot.state != .revoked else {
                return UserPage.Fact(name: "Access", text: "none")
            }
            return UserPage.Fact(name: "Access ended", time: TimeText(expiresAt))
        }
        return expiresAt.map { end in
            UserPage.Fact(name: snapshot.renewsAt != nil ? "Renews" : "Access until", time: TimeText(end))
        }
    }

    /// Of the stylesheet's states.
    private static func look(_ snapshot: UsageSnapshot) -> String {
        switch snapshot.state {
        case .gracePeriod, .billingRetry, .revoked: "bad"
        case .cancelled, .expired: "warning"
        case .trial: snapshot.denialReason == nil ? "good" : "warning"
        case .active: "good"
        case .free: "neutral"
        }
    }

    private func words(_ snapshot: UsageSnapshot) -> UserPage.Words {
        UserPage.Words(
            display: snapshot.display.rawValue,
            banner: snapshot.banner,
            notice: snapshot.notice,
            label: snapshot.label,
            isSilent: snapshot.banner == nil && snapshot.notice == nil
        )
    }
}

extension String {
    /// A name of the protocol's as words.
    var spaced: String { String(map { $0 == "_" ? " " : $0 }) }
}
