import Engine
import Usage

/// The lists of a user's page: periods, subscriptions, store events and changes.
extension UserPresenter {
    func period(_ usage: PeriodUsage) -> UserPage.Period {
        UserPage.Period(
            name: TimeText.period(usage.period),
            used: NumberText.grouped(usage.used),
            limit: usage.limit.map(NumberText.grouped) ?? "unlimited",
            share: usage.limit.map { NumberText.percent(usage.used, of: $0) } ?? "–",
            tier: usage.tier.rawValue,
            isCurrent: usage.period == answer?.snapshot.period
        )
    }

    /// Nil for fewer than two periods, which leave nothing to compare.
    func chart(_ periods: [PeriodUsage]) -> ChartSection? {
        guard periods.count > 1 else { return nil }
        let columns = periods.reversed().map { usage in
            ColumnChart.Column(
                label: TimeText.shortPeriod(usage.period),
                name: TimeText.period(usage.period),
                value: usage.used,
                isUnfinished: usage.period == answer?.snapshot.period
            )
        }
        let summary = "\(columns.count) periods, oldest first. The table below lists the values."
        return ChartSection(
            svg: ColumnChart(id: "periods", title: "Messages by billing period", summary: summary, columns: columns)
                .svg,
            unit: "Period",
            hasBlocked: false,
            rows: [],
            age: ""
        )
    }

    func subscription(_ subscription: UserDetails.Subscription) -> UserPage.Subscription {
        var more: [String] = []
        func add(_ label: String, _ instant: Instant?) {
            if let instant { more.append("\(label) \(TimeText(instant).text)") }
        }
        // A revocation ends access before the end of the paid time.
        let end = [subscription.expiresAt, subscription.revokedAt].compactMap(\.self).min()
        if subscription.revokedAt != nil {
            more.append("revoked")
            if let paidUntil = subscription.expiresAt, paidUntil != end { add("paid until", paidUntil) }
        }
        add("payment failing since", subscription.billingIssueAt)
        add("grace period until", subscription.graceUntil)
        add("renewal turned off", subscription.unsubscribedAt)
        if let next = subscription.nextPlan { more.append("next plan \(next)") }
        if let product = subscription.product { more.append("product \(product)") }
        return UserPage.Subscription(
            transaction: subscription.transaction,
            plan: subscription.plan,
            started: subscription.startedAt.map { TimeText($0) },
            expires: end.map { TimeText($0) },
            more: more.isEmpty ? nil : more.joined(separator: "; ").sentence
        )
    }

    func event(_ event: UserDetails.Event) -> UserPage.Event {
        return UserPage.Event(
            replayLink: mayChange && event.outcome == "failed" ? EventPage.path(of: event.name) : nil,
            at: TimeText(event.at),
            source: event.name.source,
            type: event.type,
            outcome: event.outcome,
            outcomeState: EventPage.state(of: event.outcome),
            problem: event.problem,
            detail: event.detail?.isEmpty == true ? nil : event.detail
        )
    }

    func change(_ change: AuditTrailReader.Event) -> UserPage.Change {
        let parts = (change.detail ?? "").split(separator: ", ").map(String.init)
        let changed = parts.filter { $0.contains("→") }
        // A row that was added or removed has no other side to compare with.
        let shown = changed.isEmpty ? parts : changed
        let unchanged = changed.isEmpty ? [] : parts.filter { !$0.contains("→") }
        return UserPage.Change(
            at: TimeText(change.at),
            kind: change.what.spaced,
            changed: shown.isEmpty ? nil : shown.joined(separator: ", "),
            unchanged: unchanged.isEmpty ? nil : unchanged.joined(separator: ", "),
            actor: change.actor,
            reason: change.reason
        )
    }
}
