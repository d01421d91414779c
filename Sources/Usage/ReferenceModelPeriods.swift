extension ReferenceModel {
    /// Whether a row holds nothing that happened, so that it follows from the user's subscription alone: no message was ever
    /// counted in it, none is held, nothing was granted, and its limit is the plan's.
    func isUnused(_ period: BillingPeriod, of user: UserID, at now: Instant) -> Bool {
        guard let row = rows[user]?[period] else { return true }
        return row.count == 0 && row.released == 0 && row.granted == 0 && row.limit == row.planLimit
            && held(by: user, in: period, at: now) == 0
    }

    /// After a change of the subscription: the period that the user may send in now gets a row, and rows that are unused
    /// follow the subscription. So the rows do not depend on the order of changes.
    mutating func openPeriod(of user: UserID, at now: Instant) {
        var snapshot = snapshot(of: user, at: now)
        let allowance = allowance(of: user, under: snapshot.plan)
        let opened = snapshot.denialReason == nil && allowance != 0 ? snapshot.period : nil
        for period in (rows[user] ?? [:]).keys where period != opened && isUnused(period, of: user, at: now) {
            rows[user]?[period] = nil
        }
        guard let opened, isUnused(opened, of: user, at: now) else {
            // A new anchor day moves the end of the open month.
            if let end = snapshot.resetsAt, rows[user]?[snapshot.period]?.written.resetsAt != nil {
                rows[user]?[snapshot.period]?.written.resetsAt = end
            }
            return
        }
        let row = rows[user]?[opened]
        snapshot.limit = allowance
        rows[user, default: [:]][opened] = Row(
            count: 0,
            limit: allowance,
            planLimit: allowance,
            written: snapshot,
            updatedAt: row?.updatedAt ?? now,
            generation: row?.generation ?? nextGeneration()
        )
    }
}
