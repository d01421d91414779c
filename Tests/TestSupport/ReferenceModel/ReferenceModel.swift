import Usage

/// The counting rules of the service in memory: one request at a time, with the clock as a parameter.
///
/// Tests run the same scenarios on this model and on PostgreSQL and compare the answers. It is written for readability,
/// not for speed.
public struct ReferenceModel: Sendable {
    /// A row of `message_usage`.
    struct Row: Sendable {
        var count: Int
        /// Nil is unlimited. An operator may have changed it.
        var limit: Int?
        /// The plan's allowance when `limit` was last derived from it. `limit` stays as it is while the plan has the
        /// same allowance, so an operator's plain UPDATE lasts until the plan changes.
        var planLimit: Int?
        /// Messages granted in this period beyond the allowance. A change of plan keeps them.
        var granted = 0
        /// Messages that were counted in this period and later released or reset.
        var released = 0
        /// The user's snapshot at the last write. Answers about a past period are derived from it.
        var lastSnapshot: UsageSnapshot
        /// When a message was last counted or held, or the count was last reset.
        var updatedAt: Instant
        /// Changes with each reset. A release lowers the count only if the generation is that of the counted message.
        var generation: Int

        /// The end of the period, or the time of the last use if the period has no end.
        var endsAt: Instant { lastSnapshot.resetsAt ?? lastSnapshot.expiresAt ?? updatedAt }
    }

    /// The rows of `headroom.subscribers` and `headroom.subscriptions` of one user.
    struct Subscriber: Sendable {
        var subscription: ModelSubscription
        var anchorDay = 1
        /// The last plan with periods before this one.
        var previousPlan: String?
    }

    public let unknownUsersPolicy: UnknownUsersPolicy
    var plans: [String: Plan]
    var subscribers: [UserID: Subscriber] = [:]
    /// Kept after a change of plan and after `forget`, because a trial cannot start again.
    var trialStarts: [UserID: Instant] = [:]
    /// Ends of forgotten users' trials that do not follow from the start and the plan's days.
    var trialEnds: [UserID: Instant] = [:]
    /// Messages that forgotten users had counted in plans that never reset, until these users return.
    var spentTrials: [UserID: [BillingPeriod: Int]] = [:]
    var grants: [UserID: [MessageKey: Int]] = [:]
    var rows: [UserID: [BillingPeriod: Row]] = [:]
    var keys: [UserID: [MessageKey: UsedKey]] = [:]
    var windows: [UserID: Window] = [:]
    private var lastGeneration = 0

    /// - Parameter plans: must include "trial" and "free", the plans of unknown users.
    public init(plans: [Plan] = Plan.initial, unknownUsersPolicy: UnknownUsersPolicy = .trial) {
        self.plans = Dictionary(plans.map { ($0.name, $0) }, uniquingKeysWith: { _, last in last })
        self.unknownUsersPolicy = unknownUsersPolicy
        precondition(self.plans["trial"] != nil && self.plans["free"] != nil, "plans must include trial and free")
    }
}

extension ReferenceModel {
    /// `CONSUME`: counts all of `messages` or none.
    public mutating func consume(_ user: UserID, messages: Int = 1, at now: Instant) -> Answer {
        var snapshot = snapshot(of: user, at: now)
        let answer = snapshot.consume(messages, of: user)
        // A user without access gets no row, and CHECK and USAGE create none.
        guard snapshot.denialReason == nil else { return answer }
        let isCounted = answer.status == .allowed
        guard isCounted || rows[user]?[snapshot.period] != nil else { return answer }
        // A refused message also writes the limit. Otherwise an operator who raises it would raise the old plan's
        // limit.
        write(snapshot, of: user, isUsed: isCounted, at: now)
        return answer
    }

    /// `CHECK`: the answer that `consume` would give. Writes nothing.
    public func check(_ user: UserID, messages: Int = 1, at now: Instant) -> Answer {
        snapshot(of: user, at: now).check(messages, of: user)
    }

    /// `USAGE` of the current period.
    public func usage(_ user: UserID, at now: Instant) -> Answer {
        snapshot(of: user, at: now).usage(of: user)
    }

    /// `USAGE` of a named period. Nil if the user has no row of it, also if it is the current one.
    public func usage(_ user: UserID, period: BillingPeriod, at now: Instant) -> Answer? {
        snapshot(of: user, in: period, at: now)?.usage(of: user)
    }

    /// `HISTORY`: at most `months` rows, ordered by the end of the period, latest first.
    ///
    /// The present period is listed as it would be answered now.
    public func history(_ user: UserID, months: Int = 12, at now: Instant) -> [PeriodUsage] {
        let current = snapshot(of: user, at: now)
        func endsAt(_ period: BillingPeriod, _ row: Row) -> Instant {
            guard period == current.period else { return row.endsAt }
            return current.resetsAt ?? current.expiresAt ?? row.updatedAt
        }
        let newestFirst = (rows[user] ?? [:]).sorted { one, other in
            (endsAt(one.key, one.value), one.key.label) > (endsAt(other.key, other.value), other.key.label)
        }
        return newestFirst.prefix(months).map { period, row in
            if period == current.period {
                return PeriodUsage(
                    user: user,
                    period: period,
                    used: current.used,
                    limit: current.limit,
                    tier: current.tier
                )
            }
            let plan = plans[row.lastSnapshot.plan.name] ?? row.lastSnapshot.plan
            let held = held(by: user, in: period, at: now)
            let tier = Tier(used: row.count + held, limit: row.limit, plan: plan)
            return PeriodUsage(user: user, period: period, used: row.count, limit: row.limit, tier: tier)
        }
    }
}

extension ReferenceModel {
    /// Writes the row of the current period. The first use by an unknown user starts the trial or the free plan.
    ///
    /// - Parameter isUsed: a message was counted, held or released.
    mutating func write(_ snapshot: UsageSnapshot, of user: UserID, isUsed: Bool, at now: Instant) {
        if isUsed, subscribers[user] == nil {
            restoreForgotten(user, at: now)
            if unknownUsersPolicy != .deny { subscribers[user] = subscriber(user, at: now) }
            if unknownUsersPolicy == .trial { trialStarts[user] = snapshot.startedAt }
        }
        let row = rows[user]?[snapshot.period]
        rows[user, default: [:]][snapshot.period] = Row(
            count: snapshot.used,
            limit: snapshot.limit,
            planLimit: allowance(of: user, under: snapshot.plan),
            granted: row?.granted ?? 0,
            released: row?.released ?? 0,
            lastSnapshot: snapshot,
            updatedAt: isUsed ? now : row?.updatedAt ?? now,
            generation: row?.generation ?? nextGeneration()
        )
        writeWindow(snapshot, of: user)
    }

    mutating func nextGeneration() -> Int {
        lastGeneration += 1
        return lastGeneration
    }

    /// The user's snapshot in the current period, with or without a row.
    func snapshot(of user: UserID, at now: Instant) -> UsageSnapshot {
        let subscriber = subscriber(user, at: now)
        let subscription = subscriber.subscription
        let plan = subscription.plan
        let denialReason = subscription.denialReason(at: now)
        let cycle = currentCycle(of: user, plan, anchorDay: subscriber.anchorDay, at: now)
        let period = cycle?.period ?? BillingPeriod(planNamed: plan.name)
        let row = rows[user]?[period]
        let allowance = allowance(of: user, under: plan)
        let spent = unknownUsersPolicy == .deny ? 0 : spentTrials[user]?[period] ?? 0
        let keepsLimit = row.map { $0.planLimit == allowance } ?? false
        let granted = row?.granted ?? 0
        var snapshot = UsageSnapshot(
            plan: plan,
            state: subscription.state(at: now),
            period: period,
            used: min((row?.count ?? 0) + spent, UsageSnapshot.countMaximum),
            held: held(by: user, in: period, at: now),
            limit: keepsLimit ? row?.limit : allowance.map { min($0 + granted, UsageSnapshot.countMaximum) },
            denialReason: denialReason,
            startedAt: cycle?.start ?? subscription.startedAt ?? now,
            resetsAt: cycle?.end,
            expiresAt: subscription.accessEndsAt,
            // A paywall highlights the plan that has ended.
            previousPlan: denialReason != nil && plan.cycle.isPeriodic ? plan.name : subscriber.previousPlan,
            observedAt: now
        )
        if subscribers[user] == nil, unknownUsersPolicy == .deny { snapshot.denialReason = .noSubscription }
        addWindow(to: &snapshot, of: user, at: now)
        return snapshot
    }

    /// The user's messages per period under a plan; nil is unlimited.
    func allowance(of user: UserID, under plan: Plan) -> Int? {
        subscribers[user] == nil && unknownUsersPolicy == .deny ? 0 : plan.allowance
    }

    /// The user's snapshot in a period; nil without a row. Any period other than the current one counts as past and is
    /// answered from its last write.
    func snapshot(of user: UserID, in period: BillingPeriod, at now: Instant) -> UsageSnapshot? {
        guard let row = rows[user]?[period] else { return nil }
        let current = snapshot(of: user, at: now)
        if current.period == period { return current }
        var snapshot = row.lastSnapshot
        snapshot.plan = plans[snapshot.plan.name] ?? snapshot.plan
        snapshot.window = nil
        (snapshot.windowUsed, snapshot.windowHeld) = (0, 0)
        snapshot.used = row.count
        snapshot.held = held(by: user, in: period, at: now)
        snapshot.limit = row.limit
        // A commit or release may have written the row after access had ended. The past usage is the same.
        snapshot.denialReason = nil
        snapshot.resetsAt = min(snapshot.resetsAt ?? now, now)
        snapshot.observedAt = now
        return snapshot
    }

    /// The user's subscription under the present definition of the plan, or the default of an unknown user.
    func subscriber(_ user: UserID, at now: Instant) -> Subscriber {
        if var subscriber = subscribers[user] {
            subscriber.subscription.plan = plans[subscriber.subscription.plan.name] ?? subscriber.subscription.plan
            return subscriber
        }
        let name = unknownUsersPolicy == .trial ? "trial" : "free"
        guard let plan = plans[name] else { preconditionFailure("init requires a plan named \(name)") }
        var subscription = ModelSubscription(plan: plan, startedAt: now)
        if unknownUsersPolicy == .trial {
            subscription.startedAt = trialStarts[user] ?? now
            subscription.expiresAt = trialEnds[user]
        }
        return Subscriber(subscription: subscription)
    }

    /// The cycle at `now`, or the latest one after it that was used; nil for a plan that never resets. After a change
    /// of the anchor day or the time zone, `now` may belong to an earlier period than the used row, and starting that
    /// period again would be a free reset. The dates of two zones differ by up to two days.
    func currentCycle(of user: UserID, _ plan: Plan, anchorDay: Int, at now: Instant) -> BillingCycle? {
        guard let cycle = BillingCycle(containing: now, plan: plan, anchorDay: anchorDay),
            let next = BillingCycle(containing: cycle.end, plan: plan, anchorDay: anchorDay)
        else { return nil }
        if plan.cycle == .daily, let last = BillingCycle(containing: next.end, plan: plan, anchorDay: anchorDay),
            !isUnused(last.period, of: user, at: now)
        {
            return last
        }
        return isUnused(next.period, of: user, at: now) ? cycle : next
    }
}
