import Usage

extension ReferenceModel {
    /// `GRANT`: raises this period's limit, once per key. Starts no trial.
    public mutating func grant(
        _ user: UserID,
        messages: Int,
        key: MessageKey,
        at now: Instant
    ) throws(ChangeError) -> Answer {
        if let granted = grants[user]?[key] {
            guard granted == messages else { throw .grantConflict }
            return Answer(user: user, status: .ok, snapshot: snapshot(of: user, at: now), isRepeated: true)
        }
        let unchanged = self
        restoreForgotten(user, at: now)
        var snapshot = snapshot(of: user, at: now)
        let row = rows[user]?[snapshot.period]
        let granted = (row?.granted ?? 0) + messages
        let limit = snapshot.limit.map { $0 + messages }
        guard max(granted, limit ?? 0) <= UsageSnapshot.countMaximum else {
            self = unchanged
            throw .grantTooLarge
        }
        snapshot.limit = limit
        grants[user, default: [:]][key] = messages
        rows[user, default: [:]][snapshot.period] = Row(
            count: snapshot.used,
            limit: limit,
            planLimit: allowance(of: user, under: snapshot.plan),
            granted: granted,
            released: row?.released ?? 0,
            lastSnapshot: snapshot,
            updatedAt: row?.updatedAt ?? now,
            generation: row?.generation ?? nextGeneration()
        )
        return Answer(user: user, status: .ok, snapshot: snapshot)
    }

    /// `FORGET`: deletes everything except the start and the usage of a trial.
    public mutating func forget(_ user: UserID) {
        let subscription = subscribers[user]?.subscription
        for plan in plans.values {
            let period = BillingPeriod(planNamed: plan.name)
            let used = rows[user]?[period]?.count
            let isCurrentPlan = subscription?.plan.name == plan.name
            if plan.isTrial, let subscription, isCurrentPlan {
                let ends = [subscription.revokedAt, subscription.expiresAt].compactMap(\.self).min()
                trialEnds[user] = ends ?? trialEnds[user]
            }
            let isPlanOfUser = used != nil || isCurrentPlan || plan.name == "trial"
            if isPlanOfUser, plan.isTrial && trialStarts[user] != nil || used ?? 0 > 0 {
                spentTrials[user, default: [:]][period] = used ?? spentTrials[user]?[period] ?? 0
            }
        }
        subscribers[user] = nil
        rows[user] = nil
        keys[user] = nil
        windows[user] = nil
        grants[user] = nil
    }

    /// Restores the usage of plans that never reset of a forgotten user that returns.
    mutating func restoreForgotten(_ user: UserID, at now: Instant) {
        for (period, used) in spentTrials.removeValue(forKey: user) ?? [:] {
            guard let plan = plans[period.label] else { preconditionFailure("the model never deletes a plan") }
            let isTrial = plan.isTrial
            let spent = ModelSubscription(
                plan: plan,
                startedAt: isTrial ? trialStarts[user] : nil,
                expiresAt: isTrial ? trialEnds[user] : nil
            )
            let snapshot = UsageSnapshot(
                plan: plan,
                state: isTrial ? .trial : .free,
                period: period,
                used: used,
                limit: plan.allowance,
                startedAt: spent.startedAt ?? now,
                expiresAt: spent.accessEndsAt,
                observedAt: now
            )
            rows[user, default: [:]][period] = Row(
                count: used,
                limit: plan.allowance,
                planLimit: plan.allowance,
                lastSnapshot: snapshot,
                updatedAt: now,
                generation: nextGeneration()
            )
        }
    }
}
