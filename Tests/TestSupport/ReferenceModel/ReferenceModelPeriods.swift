import Usage

extension ReferenceModel {
    /// Whether a row was never used: no message was counted or is held, nothing was granted, and the limit is the
    /// plan's. Such a row follows from the user's subscription alone.
    func isUnused(_ period: BillingPeriod, of user: UserID, at now: Instant) -> Bool {
        guard let row = rows[user]?[period] else { return true }
        return row.count == 0 && row.released == 0 && row.granted == 0 && row.limit == row.planLimit
            && held(by: user, in: period, at: now) == 0
            && !(windows[user].map { $0.period == period && $0.endsAt > now } ?? false)
    }

    /// Updates the rows after a change of the subscription. The current period gets a row if the user has access, and
    /// unused rows are rewritten or deleted, so the rows do not depend on the order of changes.
    mutating func applySubscription(of user: UserID, at now: Instant) {
        shortenWindow(of: user, under: subscriber(user, at: now).subscription.plan)
        var snapshot = snapshot(of: user, at: now)
        let allowance = allowance(of: user, under: snapshot.plan)
        let opened = snapshot.denialReason == nil && allowance != 0 ? snapshot.period : nil
        for period in (rows[user] ?? [:]).keys where period != opened && isUnused(period, of: user, at: now) {
            rows[user]?[period] = nil
        }
        guard let opened, isUnused(opened, of: user, at: now) else {
            // A new anchor day changes the end of the current month.
            if let end = snapshot.resetsAt, rows[user]?[snapshot.period]?.lastSnapshot.resetsAt != nil {
                rows[user]?[snapshot.period]?.lastSnapshot.resetsAt = end
            }
            return
        }
        let row = rows[user]?[opened]
        snapshot.limit = allowance
        rows[user, default: [:]][opened] = Row(
            count: 0,
            limit: allowance,
            planLimit: allowance,
            lastSnapshot: snapshot,
            updatedAt: row?.updatedAt ?? now,
            generation: row?.generation ?? nextGeneration()
        )
        writeWindow(snapshot, of: user)
    }
}
