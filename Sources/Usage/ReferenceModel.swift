/// The whole service in memory, one request at a time, with the clock passed in: what the SQL must agree with.
///
/// Tests run the same scenarios over this and over PostgreSQL. It is written to be read, not to be fast.
public struct ReferenceModel: Sendable {
    /// A row of `message_usage`.
    struct Row: Sendable {
        var count: Int
        /// Nil is unlimited. An operator may have set it.
        var limit: Int?
        /// The plan's allowance when `limit` was last taken from it. While the plan still says so, `limit` is left
        /// alone: that is how an operator's plain UPDATE lasts, and how a changed plan is noticed.
        var planLimit: Int?
        /// Messages granted in this period beyond the allowance; they outlast a change of plan.
        var granted = 0
        /// Messages that were counted here and are not any more: given back, or reset.
        var released = 0
        /// The user's snapshot when the row was last written: what a period that is over is told from.
        var written: UsageSnapshot
        /// When a message was last counted or held, or the count reset.
        var updatedAt: Instant
        /// Names this incarnation of the row: new with the row and with each reset, so that a message is never given
        /// back to a count that it was not in.
        var generation: Int

        /// When the period ended or ends; a row that has no such date stands where it was last used.
        var endsAt: Instant { written.resetsAt ?? written.expiresAt ?? updatedAt }
    }

    /// A row of `headroom.subscriptions`.
    struct Subscriber: Sendable {
        var subscription: Subscription
        var anchorDay = 1
        /// The monthly plan that was replaced last.
        var previousPlan: String?
    }

    public let unknownUsers: UnknownUsers
    var plans: [String: Plan]
    var subscribers: [UserID: Subscriber] = [:]
    /// Kept whatever becomes of the subscription, and of the user: a trial cannot be started again.
    var trialStarts: [UserID: Instant] = [:]
    /// Of forgotten users: when the trial ended or ends, where that is not its start and the plan's days.
    var trialEnds: [UserID: Instant] = [:]
    /// Of forgotten users who did not come back: what they used of trials.
    var spentTrials: [UserID: [BillingPeriod: Int]] = [:]
    var grants: [UserID: [MessageKey: Int]] = [:]
    var rows: [UserID: [BillingPeriod: Row]] = [:]
    var keys: [UserID: [MessageKey: KnownKey]] = [:]
    private var lastGeneration = 0

    /// - Parameter plans: must hold "trial" and "free", the plans of unknown users.
    public init(plans: [Plan] = Plan.initial, unknownUsers: UnknownUsers = .trial) {
        self.plans = Dictionary(plans.map { ($0.name, $0) }, uniquingKeysWith: { _, last in last })
        self.unknownUsers = unknownUsers
        precondition(self.plans["trial"] != nil && self.plans["free"] != nil, "plans lack \"trial\" or \"free\"")
    }
}

extension ReferenceModel {
    /// `CONSUME`: counts all of `messages` or none.
    public mutating func consume(_ user: UserID, messages: Int = 1, at now: Instant) -> Answer {
        var snapshot = snapshot(of: user, at: now)
        let answer = snapshot.consume(messages, of: user)
        // Without access nothing is written, as nothing is for a user who is merely asked about.
        guard snapshot.denialReason == nil else { return answer }
        let isCounted = answer.status == .allowed
        guard isCounted || rows[user]?[snapshot.period] != nil else { return answer }
        // A refused message writes the limit too, or an operator who then raises it would raise the old plan's.
        write(snapshot, of: user, isUsed: isCounted, at: now)
        return answer
    }

    /// `CHECK`: what `consume` would say; writes nothing.
    public func check(_ user: UserID, messages: Int = 1, at now: Instant) -> Answer {
        snapshot(of: user, at: now).check(messages, of: user)
    }

    /// `USAGE` of the current period.
    public func usage(_ user: UserID, at now: Instant) -> Answer {
        snapshot(of: user, at: now).usage(of: user)
    }

    /// `USAGE` of a named period; nil when the user has no row of it, even where it is the current one.
    public func usage(_ user: UserID, period: BillingPeriod, at now: Instant) -> Answer? {
        snapshot(of: user, in: period, at: now)?.usage(of: user)
    }

    /// `HISTORY`: at most `months` rows, the one that ended or ends last first.
    public func history(_ user: UserID, months: Int = 12, at now: Instant) -> [PeriodUsage] {
        let newestFirst = (rows[user] ?? [:]).sorted { one, other in
            (one.value.endsAt, one.key.label) > (other.value.endsAt, other.key.label)
        }
        return newestFirst.prefix(months).map { period, row in
            let plan = plans[row.written.plan.name] ?? row.written.plan
            let held = held(by: user, in: period, at: now)
            let tier = Tier(used: row.count + held, limit: row.limit, plan: plan)
            return PeriodUsage(user: user, period: period, used: row.count, limit: row.limit, tier: tier)
        }
    }
}

extension ReferenceModel {
    /// Writes the row of the current period; the first one of an unknown user starts the trial.
    ///
    /// - Parameter isUsed: a message was counted, held or given back.
    mutating func write(_ snapshot: UsageSnapshot, of user: UserID, isUsed: Bool, at now: Instant) {
        if isUsed, subscribers[user] == nil {
            bringBack(user, at: now)
            if unknownUsers == .trial {
                subscribers[user] = subscriber(user, at: now)
                trialStarts[user] = snapshot.startedAt
            }
        }
        let row = rows[user]?[snapshot.period]
        rows[user, default: [:]][snapshot.period] = Row(
            count: snapshot.used,
            limit: snapshot.limit,
            planLimit: allowance(of: user, under: snapshot.plan),
            granted: row?.granted ?? 0,
            released: row?.released ?? 0,
            written: snapshot,
            updatedAt: isUsed ? now : row?.updatedAt ?? now,
            generation: row?.generation ?? nextGeneration()
        )
    }

    mutating func nextGeneration() -> Int {
        lastGeneration += 1
        return lastGeneration
    }

    /// The user's snapshot in the current period, whether or not it has a row yet.
    func snapshot(of user: UserID, at now: Instant) -> UsageSnapshot {
        let subscriber = subscriber(user, at: now)
        let subscription = subscriber.subscription
        let plan = subscription.plan
        let denialReason = subscription.denialReason(at: now)
        let cycle = plan.cycle == .monthly ? currentCycle(of: user, anchorDay: subscriber.anchorDay, at: now) : nil
        let period = cycle?.period ?? BillingPeriod(planNamed: plan.name)
        let row = rows[user]?[period]
        let allowance = allowance(of: user, under: plan)
        let keepsLimit = row.map { $0.planLimit == allowance } ?? false
        let granted = row?.granted ?? 0
        var snapshot = UsageSnapshot(
            plan: plan,
            state: subscription.state(at: now),
            period: period,
            used: min((row?.count ?? 0) + (spentTrials[user]?[period] ?? 0), UsageSnapshot.countMaximum),
            held: held(by: user, in: period, at: now),
            limit: keepsLimit ? row?.limit : allowance.map { min($0 + granted, UsageSnapshot.countMaximum) },
            denialReason: denialReason,
            startedAt: cycle?.start ?? subscription.startedAt ?? now,
            resetsAt: cycle?.end,
            expiresAt: subscription.accessEndsAt,
            // What a paywall highlights is the plan that was lost.
            previousPlan: denialReason != nil && plan.cycle == .monthly ? plan.name : subscriber.previousPlan,
            observedAt: now
        )
        if subscribers[user] == nil, unknownUsers == .deny { snapshot.denialReason = .noSubscription }
        return snapshot
    }

    /// What a plan gives the user in a period.
    func allowance(of user: UserID, under plan: Plan) -> Int? {
        subscribers[user] == nil && unknownUsers == .deny ? 0 : plan.allowance
    }

    /// The user's snapshot in a period that has a row, nil when it has none. One that is not the current period is
    /// past, however it became so: nothing can be sent in it any more, and it is told as it was last written.
    func snapshot(of user: UserID, in period: BillingPeriod, at now: Instant) -> UsageSnapshot? {
        guard let row = rows[user]?[period] else { return nil }
        let current = snapshot(of: user, at: now)
        if current.period == period { return current }
        var snapshot = row.written
        snapshot.plan = plans[snapshot.plan.name] ?? snapshot.plan
        snapshot.used = row.count
        snapshot.held = held(by: user, in: period, at: now)
        snapshot.limit = row.limit
        // A commit or release writes the row of a user who has lapsed; what was is no less for it.
        snapshot.denialReason = nil
        snapshot.resetsAt = min(snapshot.resetsAt ?? now, now)
        snapshot.observedAt = now
        return snapshot
    }

    /// The user's data under the plan as it is now; for an unknown user, the defaults.
    func subscriber(_ user: UserID, at now: Instant) -> Subscriber {
        if var known = subscribers[user] {
            known.subscription.plan = plans[known.subscription.plan.name] ?? known.subscription.plan
            return known
        }
        let name = unknownUsers == .trial ? "trial" : "free"
        guard let plan = plans[name] else { preconditionFailure("init made sure of \(name)") }
        guard unknownUsers == .trial else { return Subscriber(subscription: Subscription(plan: plan, startedAt: now)) }
        let startedAt = trialStarts[user] ?? now
        return Subscriber(subscription: Subscription(plan: plan, startedAt: startedAt, expiresAt: trialEnds[user]))
    }

    /// Never goes back: after an anchor change the month that holds `now` may be one earlier than that of a row the
    /// user has already used, and to begin it again would be a free reset.
    func currentCycle(of user: UserID, anchorDay: Int, at now: Instant) -> BillingCycle {
        let cycle = BillingCycle(containing: now, anchorDay: anchorDay)
        let latest = (rows[user] ?? [:]).keys.filter { $0.month != nil && !isUnused($0, of: user, at: now) }
            .max { $0.label < $1.label }
        guard let latest, latest.label > cycle.period.label, let (year, month) = latest.month else { return cycle }
        return BillingCycle(year: year, month: month, anchorDay: anchorDay)
    }
}
