import Usage

extension ReferenceModel {
    /// Why the model rejects an operator's change.
    public enum ChangeError: Error, Sendable, Equatable {
        case unknownPlan
        /// The plan does not allow the state, such as `cancelled` for a trial: see `Plan.admits(_:)`.
        case stateDoesNotFit
        /// The key was used for another number of messages.
        case grantConflict
        /// The limit would exceed `UsageSnapshot.countMaximum`.
        case grantTooLarge
    }

    /// `SETPLAN`: replaces the user's subscription and keeps the counts.
    public mutating func setPlan(_ change: PlanChange, at now: Instant) throws(ChangeError) -> Answer {
        guard let plan = plans[change.plan] else { throw .unknownPlan }
        let state = change.state ?? plan.initialState
        guard plan.admits(state) else { throw .stateDoesNotFit }
        restoreForgotten(change.user, at: now)
        let old = subscribers[change.user]
        let anchorDay = change.anchorDay ?? old?.anchorDay ?? 1
        precondition((1...31).contains(anchorDay), "the anchor day is 1 to 31")
        var startedAt = change.startedAt
        if plan.isTrial {
            startedAt = startedAt ?? trialStarts[change.user] ?? now
            trialStarts[change.user] = startedAt
            trialEnds[change.user] = nil
        }
        var subscription = ModelSubscription(plan: plan, startedAt: startedAt ?? now, expiresAt: change.expiresAt)
        let cycle = BillingCycle(containing: now, plan: plan, anchorDay: anchorDay)
        subscription.enter(state, change: change, cycleEnd: cycle?.end, at: now)
        subscribers[change.user] = Subscriber(
            subscription: subscription,
            anchorDay: anchorDay,
            previousPlan: previousPlan(replacing: old, by: plan)
        )
        applySubscription(of: change.user, at: now)
        return Answer(user: change.user, status: .ok, snapshot: snapshot(of: change.user, at: now))
    }

    /// The last plan with periods: a trial in between does not replace it.
    private func previousPlan(replacing old: Subscriber?, by plan: Plan) -> String? {
        guard let old else { return nil }
        let oldPlan = plans[old.subscription.plan.name] ?? old.subscription.plan
        return oldPlan.cycle.isPeriodic && oldPlan.name != plan.name ? oldPlan.name : old.previousPlan
    }

    /// `RESETUSAGE`.
    ///
    /// - Parameter period: nil is the current period, with or without a row.
    /// - Returns: nil if the named period has no row.
    public mutating func resetUsage(_ user: UserID, period: BillingPeriod? = nil, at now: Instant) -> Answer? {
        let unchanged = self
        restoreForgotten(user, at: now)
        let target = period ?? snapshot(of: user, at: now).period
        guard period == nil || rows[user]?[target] != nil else {
            self = unchanged
            return nil
        }
        closeWindow(of: user, resetting: target, at: now)
        setCount(user, period: target, count: 0)
        rows[user]?[target]?.updatedAt = now
        let after = period == nil ? snapshot(of: user, at: now) : snapshot(of: user, in: target, at: now)
        return after.map { Answer(user: user, status: .ok, snapshot: $0) }
    }

    /// An operator's plain UPDATE of `message_count`. Without a row nothing changes. Every lower count is a reset.
    public mutating func setCount(_ user: UserID, period: BillingPeriod, count: Int) {
        guard var row = rows[user]?[period] else { return }
        if count < row.count {
            row.generation = nextGeneration()
            row.released += row.count - count
        }
        row.count = count
        rows[user]?[period] = row
    }

    /// An operator's DELETE of a row, which also ends its holds.
    public mutating func deleteRow(_ user: UserID, period: BillingPeriod) {
        rows[user]?[period] = nil
        if windows[user]?.period == period { windows[user] = nil }
        for (key, used) in keys[user] ?? [:] where used.period == period && used.status == .held {
            keys[user]?[key]?.expiresAt = nil
        }
    }

    /// An operator's plain UPDATE that clears the columns of the window.
    public mutating func deleteWindow(of user: UserID) {
        windows[user] = nil
    }

    /// An operator's plain UPDATE of `"limit"`. Without a row nothing changes.
    public mutating func setLimit(_ user: UserID, period: BillingPeriod, limit: Int?) {
        rows[user]?[period]?.limit = limit
    }

    /// An operator's UPDATE of, or INSERT into, `headroom.plans`.
    public mutating func setPlanDefinition(_ plan: Plan) {
        plans[plan.name] = plan
    }
}

extension ModelSubscription {
    /// Sets the inputs of which `state` follows at `now`. Later dates that contradict the state become `now`.
    fileprivate mutating func enter(
        _ state: SubscriptionState,
        change: PlanChange,
        cycleEnd: Instant?,
        at now: Instant
    ) {
        func atMostNow(_ instant: Instant?) -> Instant { instant.map { min($0, now) } ?? now }
        switch state {
        case .trial, .free, .active:
            break
        case .cancelled:
            unsubscribedAt = now
            expiresAt = change.expiresAt ?? cycleEnd
        case .gracePeriod:
            hasBillingIssue = true
            graceUntil = change.graceUntil ?? (change.expiresAt ?? now).advanced(bySeconds: Self.fallbackGraceSeconds)
        case .billingRetry:
            hasBillingIssue = true
            graceUntil = atMostNow(change.graceUntil)
            // Remaining paid time would give access.
            expiresAt = change.expiresAt.map(atMostNow)
        case .expired:
            expiresAt = atMostNow(change.expiresAt)
            // Without this date the state would be `trial`, with the denial reason `trialEnded`.
            if plan.isTrial { unsubscribedAt = expiresAt }
        case .revoked:
            revokedAt = now
        }
    }
}
