extension ReferenceModel {
    /// `GRANT`: raises this period's limit, once per key. Starts no trial.
    public mutating func grant(
        _ user: UserID,
        messages: Int,
        key: MessageKey,
        at now: Instant
    ) throws(ModelError) -> Answer {
        if let known = grants[user]?[key] {
            guard known == messages else { throw .grantConflict }
            return Answer(user: user, status: .ok, snapshot: snapshot(of: user, at: now), isReplay: true)
        }
        var snapshot = snapshot(of: user, at: now)
        let granted = (rows[user]?[snapshot.period]?.granted ?? 0) + messages
        let limit = snapshot.limit.map { $0 + messages }
        guard max(granted, limit ?? 0) <= UsageSnapshot.countMaximum else { throw .grantTooLarge }
        bringBack(user, at: now)
        let row = rows[user]?[snapshot.period]
        snapshot.limit = limit
        grants[user, default: [:]][key] = messages
        rows[user, default: [:]][snapshot.period] = Row(
            count: snapshot.used,
            limit: limit,
            planLimit: allowance(of: user, under: snapshot.plan),
            granted: granted,
            released: row?.released ?? 0,
            written: snapshot,
            updatedAt: row?.updatedAt ?? now,
            generation: row?.generation ?? nextGeneration()
        )
        return Answer(user: user, status: .ok, snapshot: snapshot)
    }

    /// `FORGET`: nothing stays but what was used of a trial that was started, and when that was.
    public mutating func forget(_ user: UserID) {
        let subscription = subscribers[user]?.subscription
        for plan in plans.values where plan.isTrial {
            let period = BillingPeriod(planNamed: plan.name)
            let used = rows[user]?[period]?.count
            let isOnIt = subscription?.plan.name == plan.name
            if let subscription, isOnIt {
                let ends = [subscription.revokedAt, subscription.expiresAt].compactMap(\.self).min()
                trialEnds[user] = ends ?? trialEnds[user]
            }
            let isConcerned = used != nil || isOnIt || plan.name == "trial"
            if isConcerned, trialStarts[user] != nil || used ?? 0 > 0 {
                spentTrials[user, default: [:]][period] = used ?? spentTrials[user]?[period] ?? 0
            }
        }
        subscribers[user] = nil
        rows[user] = nil
        keys[user] = nil
        grants[user] = nil
    }

    /// A forgotten user is here again: what was used of a trial stands in the rows again.
    mutating func bringBack(_ user: UserID, at now: Instant) {
        for (period, used) in spentTrials.removeValue(forKey: user) ?? [:] {
            guard let plan = plans[period.label] else { preconditionFailure("plans are not deleted here") }
            let trial = Subscription(plan: plan, startedAt: trialStarts[user], expiresAt: trialEnds[user])
            let written = UsageSnapshot(
                plan: plan,
                state: .trial,
                period: period,
                used: used,
                limit: plan.allowance,
                startedAt: trial.startedAt ?? now,
                expiresAt: trial.accessEndsAt,
                observedAt: now
            )
            rows[user, default: [:]][period] = Row(
                count: used,
                limit: plan.allowance,
                planLimit: plan.allowance,
                written: written,
                updatedAt: now,
                generation: nextGeneration()
            )
        }
    }
}
