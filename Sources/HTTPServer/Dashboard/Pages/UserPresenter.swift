import Engine
import Usage

/// The values that a user's page shows.
struct UserFigures: Sendable {
    var user: UserID
    var usage: Result<Answer, EngineError>
    var history: Result<[PeriodUsage], EngineError>
    var records: Result<UserDetails, EngineError>
    /// What the user's models and members have in the open period.
    var allowances: Result<[ReportedAllowance], EngineError>
}

/// Turns one user's figures into texts and a bar.
struct UserPresenter {
    let figures: UserFigures
    /// Of the sentences that the user sees, in the setting's language.
    var vocabulary = Words.shipped.standard
    /// The viewer has the scope operator.
    var mayChange = false
    /// The model or member to show alone; nil shows all.
    var partSearch: PartSearch?
    /// The usage with the model or member that is shown alone; nil if none is, or if it cannot be read.
    var partSnapshot: UsageSnapshot?

    /// - Parameter actions: the operator's forms; nil for a viewer that may not change anything.
    func page(_ frame: Frame, notices: [Notice], actions: UserPage.Actions?) -> UserPage {
        let records = try? figures.records.get()
        let periods = (try? figures.history.get()) ?? []
        return UserPage(
            frame: frame,
            user: figures.user.description,
            notices: notices + errorNotices + stateNotices + (isUnknown ? [UserPresenter.unknown] : []),
            usage: answer.map { usage($0) },
            parts: partsSection,
            texts: answer.map { texts(partSnapshot ?? $0.snapshot) },
            actions: answer == nil ? nil : actions,
            chart: chart(periods),
            periods: periods.map(period),
            hasPeriods: !periods.isEmpty,
            periodsPlaceholder: periodsPlaceholder,
            recordsPlaceholder: recordsPlaceholder,
            hasRecords: records != nil,
            subscriptions: (records?.subscriptions ?? []).map(subscription),
            hasSubscriptions: records?.subscriptions.isEmpty == false,
            events: (records?.events ?? []).map(event),
            hasEvents: records?.events.isEmpty == false,
            changes: (records?.changes ?? []).map(change),
            hasChanges: records?.changes.isEmpty == false,
            isTruncated: (records?.changes.count ?? 0) >= UserPresenter.listMaximum
        )
    }

    /// The length of each list; `headroom audit` prints the rest.
    static let listMaximum = 100

    var answer: Answer? { try? figures.usage.get() }

    var currentPeriod: BillingPeriod? { answer?.snapshot.period }

    /// Something could not be loaded.
    var isIncomplete: Bool { !errors.isEmpty }

    private var errors: [EngineError] {
        var errors: [EngineError] = []
        if case .failure(let error) = figures.usage { errors.append(error) }
        if case .failure(let error) = figures.history { errors.append(error) }
        if case .failure(let error) = figures.records { errors.append(error) }
        if case .failure(let error) = figures.allowances { errors.append(error) }
        return errors
    }

    private var errorNotices: [Notice] {
        errors.first.map { [Notice(.warning, $0.headline, $0.advice)] } ?? []
    }

    /// Problems of the subscription that the numbers do not show.
    private var stateNotices: [Notice] {
        guard let snapshot = answer?.snapshot else { return [] }
        switch snapshot.state {
        case .gracePeriod:
            let end = snapshot.expiresAt.map { " until \(TimeText($0).text)" } ?? ""
            return [
                Notice(
                    .bad,
                    "A payment failed.",
                    "The user keeps access\(end) and is asked to update the payment method."
                )
            ]
        case .billingRetry:
            let text = "The user has no access until the payment is made."
            return [Notice(.bad, "A payment failed, and its grace period is over.", text)]
        case .revoked:
            let text = "It was refunded or is no longer shared with a family. The user has no access."
            return [Notice(.bad, "The subscription is revoked.", text)]
        case .trial, .active, .cancelled, .expired, .free: return []
        }
    }

    private var periodsPlaceholder: String {
        guard case .failure(let error) = figures.history else { return "No messages yet." }
        return error.advice
    }

    private var recordsPlaceholder: String? {
        guard case .failure(let error) = figures.records else { return nil }
        return error.advice
    }

    /// No message, no store event and no change.
    private var isUnknown: Bool {
        guard let answer, let periods = try? figures.history.get(), let records = try? figures.records.get() else {
            return false
        }
        return periods.isEmpty && records.isEmpty && answer.snapshot.used == 0
    }

    private static let unknown = Notice(
        .warning,
        "No data about this user yet.",
        "The page shows the state before a first message. If you expected more, check the id."
    )

    // MARK: Usage now

    private func usage(_ answer: Answer) -> UserPage.Usage {
        let snapshot = answer.snapshot
        let limit = snapshot.limit
        let used = NumberText.grouped(snapshot.used)
        let bar = limit.map { limit in
            self.bar(
                "usage",
                snapshot.accessible.text(in: vocabulary),
                used: snapshot.used,
                held: snapshot.held,
                of: limit,
                snapshot.tier,
                snapshot.plan
            )
        }
        let stateClass = UserPresenter.stateClass(snapshot)
        return UserPage.Usage(
            used: limit.map { "\(used) of \(NumberText.grouped($0))" } ?? used,
            sentence: sentence(snapshot),
            bar: bar,
            state: snapshot.denialReason == .trialEnded ? "trial ended" : snapshot.state.rawValue.spaced,
            stateClass: stateClass,
            tier: snapshot.tier.rawValue,
            tierClass: stateClass == "good" ? snapshot.tier.rawValue : "",
            details: details(snapshot)
        )
    }

    /// What is used and held of a limit, with marks where the tiers gentle and prominent begin.
    func bar(
        _ id: String,
        _ title: String,
        used: Int,
        held: Int,
        of limit: Int,
        _ tier: Tier,
        _ plan: Plan
    ) -> String {
        ShareBar(
            id: id,
            title: title,
            summary: "\(NumberText.percent(used, of: max(limit, 1))) of the limit; tier \(tier.rawValue)",
            parts: [
                ShareBar.Part(name: tier.rawValue, count: used), ShareBar.Part(name: "held", count: held),
            ],
            whole: max(limit, 1),
            marks: UserPresenter.thresholds(of: limit, plan)
        ).svg
    }

    /// The lowest counts in the tiers gentle and prominent, rounded up.
    private static func thresholds(of limit: Int, _ plan: Plan) -> [Int] {
        [plan.gentlePercent, plan.prominentPercent].map { (limit * $0 + 99) / 100 }
    }

    private func sentence(_ snapshot: UsageSnapshot) -> String {
        guard let limit = snapshot.limit, limit != 0 else { return snapshot.accessible.text(in: vocabulary) + "." }
        let marks = UserPresenter.thresholds(of: limit, snapshot.plan).map(NumberText.grouped)
        return snapshot.accessible.text(in: vocabulary)
            + ". The marks show where the tiers gentle (\(marks[0])) and prominent (\(marks[1])) begin."
    }

    private func details(_ snapshot: UsageSnapshot) -> [UserPage.Detail] {
        var details = [
            UserPage.Detail(name: "Plan", text: snapshot.plan.label, more: snapshot.plan.name),
            UserPage.Detail(
                name: "State",
                text: snapshot.stateLabel.text(in: vocabulary),
                more: snapshot.state.rawValue.spaced
            ),
            UserPage.Detail(
                name: "Remaining",
                text: snapshot.remaining.map(NumberText.grouped) ?? "unlimited",
                more: snapshot.plan.isEnforced || snapshot.limit == nil ? nil : "not enforced"
            ),
            UserPage.Detail(name: "Billing period", text: TimeText.period(snapshot.period)),
        ]
        if snapshot.held > 0 {
            details.append(
                UserPage.Detail(name: "Held", text: NumberText.grouped(snapshot.held), more: "not yet committed")
            )
        }
        for allowance in snapshot.otherAllowancesShown {
            guard let used = allowance.used else { continue }
            let beginsWithMessage = allowance.part == nil || allowance.seconds != nil
            details.append(
                UserPage.Detail(
                    name: allowance.title,
                    text: NumberText.grouped(used) + (allowance.limit.map { " of \(NumberText.grouped($0))" } ?? ""),
                    more: beginsWithMessage && allowance.resetsAt == nil ? "opens with a message" : nil
                )
            )
            if let resetsAt = allowance.resetsAt {
                details.append(UserPage.Detail(name: "\(allowance.title) ends", time: TimeText(resetsAt)))
            }
        }
        if let denialReason = snapshot.denialReason ?? snapshot.refusal(of: 1) {
            details.append(UserPage.Detail(name: "Denial reason", text: denialReason.rawValue.spaced))
        }
        if let availableAgainAt = snapshot.availableAgainAt {
            details.append(UserPage.Detail(name: "Available again", time: TimeText(availableAgainAt)))
        }
        if let (day, days) = snapshot.trialDay {
            details.append(UserPage.Detail(name: "Trial", text: "day \(day) of \(days)"))
        }
        if let access = UserPresenter.access(snapshot) { details.append(access) }
        if let price = snapshot.details?.price {
            details.append(UserPage.Detail(name: "Price", text: price, more: snapshot.details?.currency))
        }
        if let address = snapshot.details?.manage { details.append(UserPage.Detail(name: "Managed at", link: address)) }
        if let previous = snapshot.previousPlan {
            details.append(UserPage.Detail(name: "Previous plan", text: previous))
        }
        return details
    }

    /// The end of access, or that there is none. A revoked subscription gives no access, whatever was paid for.
    private static func access(_ snapshot: UsageSnapshot) -> UserPage.Detail? {
        let expiresAt = snapshot.expiresAt
        guard snapshot.denialReason == nil else {
            guard let expiresAt, expiresAt <= snapshot.observedAt, snapshot.state != .revoked else {
                return UserPage.Detail(name: "Access", text: "none")
            }
            return UserPage.Detail(name: "Access ended", time: TimeText(expiresAt))
        }
        return expiresAt.map { end in
            UserPage.Detail(name: snapshot.renewsAt != nil ? "Renews" : "Access until", time: TimeText(end))
        }
    }

    /// A class of the stylesheet.
    private static func stateClass(_ snapshot: UsageSnapshot) -> String {
        switch snapshot.state {
        case .gracePeriod, .billingRetry, .revoked: "bad"
        case .cancelled, .expired: "warning"
        case .trial: snapshot.denialReason == nil ? "good" : "warning"
        case .active: "good"
        case .free: "neutral"
        }
    }

    private func texts(_ snapshot: UsageSnapshot) -> UserPage.Texts {
        UserPage.Texts(
            about: partSnapshot == nil ? nil : partsShown.first?.choiceName,
            display: snapshot.display.rawValue,
            banner: snapshot.banner?.text(in: vocabulary),
            notice: snapshot.notice?.text(in: vocabulary),
            steps: snapshot.steps?.text(in: vocabulary),
            label: snapshot.label(in: vocabulary),
            isEmpty: snapshot.banner == nil && snapshot.notice == nil
        )
    }
}

extension ShownAllowance {
    /// The name as a heading: "Window", or "Model gpt-5".
    fileprivate var title: String { "\(name)".capitalized + (part.map { " \($0.name)" } ?? "") }
}
