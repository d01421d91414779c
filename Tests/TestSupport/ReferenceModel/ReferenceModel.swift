import Usage

/// `CountingModel` for many users, with the types of the service: tests run the same requests on it and on the service.
public struct ReferenceModel: Sendable {
    public typealias Failure = CountingModel.Failure

    private let unknownUsersPolicy: UnknownUsersPolicy
    public private(set) var plans: [String: Plan]
    private var models: [UserID: CountingModel] = [:]

    /// - Parameter plans: must include "trial" and "free", the plans of unknown users.
    public init(plans: [Plan] = Plan.initial, unknownUsersPolicy: UnknownUsersPolicy = .trial) {
        self.plans = Dictionary(plans.map { ($0.name, $0) }, uniquingKeysWith: { $1 })
        self.unknownUsersPolicy = unknownUsersPolicy
    }

    /// The user's model as it is at an instant.
    subscript(user: UserID, at now: Instant) -> CountingModel {
        get {
            var model = models[user] ?? CountingModel()
            model.now = now.number
            model.plans = plans.mapValues(PlanRules.init)
            model.unknownUsers = unknownUsersPolicy.rawValue
            return model
        }
        set { models[user] = newValue }
    }

    /// What the service says in this place.
    func answer(_ user: UserID, _ reply: CountingModel.Reply, isDetailed: Bool = false) -> Answer {
        let (period, window, outcome) = (reply.allowances[0], reply.window, reply.outcome)
        var snapshot = UsageSnapshot(
            plan: plans[reply.plan.name]!,
            state: SubscriptionState(rawValue: reply.state)!,
            period: BillingPeriod(storedLabel: reply.period),
            used: period.used,
            held: period.held,
            limit: period.limit,
            window: window.map {
                UsageWindow(
                    limit: $0.limit!,
                    openedAt: $0.opened.map(Instant.init),
                    endsAt: $0.resets.map(Instant.init)
                )
            },
            windowUsed: window?.used ?? 0,
            windowHeld: window?.held ?? 0,
            denialReason: reply.access.map { DenialReason(rawValue: $0)! },
            startedAt: Instant(period.opened!),
            resetsAt: period.resets.map(Instant.init),
            expiresAt: reply.expires.map(Instant.init),
            previousPlan: reply.previousPlan,
            renews: reply.renews,
            observedAt: Instant(reply.now)
        )
        snapshot.parts = parts(reply)
        if period.extra > 0 {
            snapshot.set(Balances(messages: period.extra, expiresAt: period.extraEnds.map(Instant.init)))
        }
        let statuses: [String: Answer.Status] = ["allowed": .allowed, "held": .held, "ok": .ok]
        return Answer(
            user: user,
            status: statuses[outcome.status] ?? .blocked(DenialReason(rawValue: outcome.reason!)!),
            snapshot: snapshot,
            crossed: outcome.crossed.map { Tier.allCases[$0] },
            isCrossing: outcome.isCrossing,
            retryAfterSeconds: outcome.retryAfter.map(Int64.init),
            released: outcome.released,
            requested: outcome.requested,
            isShadow: outcome.isShadow,
            isRepeated: outcome.isRepeated,
            isDetailed: isDetailed
        )
    }
}

// MARK: Requests
extension ReferenceModel {
    public mutating func consume(
        _ user: UserID,
        messages: Int = 1,
        parts: MessageParts? = nil,
        at now: Instant
    ) -> Answer {
        answer(user, self[user, at: now].take(messages, CountingModel.Parts(parts)))
    }

    public mutating func consume(
        _ user: UserID,
        messages: Int = 1,
        parts: MessageParts? = nil,
        key: MessageKey,
        at now: Instant
    ) throws(Failure) -> Answer {
        answer(user, try self[user, at: now].take(messages, CountingModel.Parts(parts), key: key.text))
    }

    public mutating func reserve(
        _ user: UserID,
        messages: Int = 1,
        parts: MessageParts? = nil,
        key: MessageKey,
        ttlSeconds: Int = 120,
        at now: Instant
    ) throws(Failure) -> Answer {
        let parts = CountingModel.Parts(parts)
        return answer(user, try self[user, at: now].take(messages, parts, key: key.text, seconds: ttlSeconds))
    }

    public mutating func commit(
        _ user: UserID,
        messages: Int? = nil,
        key: MessageKey,
        at now: Instant
    ) throws(Failure) -> Answer {
        answer(user, try self[user, at: now].commit(messages, key: key.text))
    }

    public mutating func release(_ user: UserID, key: MessageKey, at now: Instant) throws(Failure) -> Answer {
        answer(user, try self[user, at: now].release(key: key.text))
    }

    public func check(_ user: UserID, messages: Int = 1, parts: MessageParts? = nil, at now: Instant) -> Answer {
        answer(user, self[user, at: now].usage(CountingModel.Parts(parts)).decision(messages))
    }

    public func usage(_ user: UserID, parts: MessageParts? = nil, at now: Instant) -> Answer {
        answer(user, self[user, at: now].usage(CountingModel.Parts(parts)), isDetailed: true)
    }

    public func usage(
        _ user: UserID,
        period: BillingPeriod,
        parts: MessageParts? = nil,
        at now: Instant
    ) -> Answer? {
        let reply = self[user, at: now].usage(CountingModel.Parts(parts), in: period.label)
        return reply.map { answer(user, $0, isDetailed: true) }
    }

    public func history(_ user: UserID, months: Int = 12, at now: Instant) -> [PeriodUsage] {
        self[user, at: now].history().prefix(months).map {
            PeriodUsage(
                user: user,
                period: BillingPeriod(storedLabel: $0.period),
                used: $0.allowances[0].used,
                limit: $0.allowances[0].limit,
                tier: Tier.allCases[$0.tier]
            )
        }
    }
}

// MARK: Operators
extension ReferenceModel {
    public mutating func setPlan(_ change: PlanChange, at now: Instant) throws(Failure) -> Answer {
        let subscription = Subscription(
            plan: change.plan,
            started: change.startedAt?.number,
            paidUntil: change.expiresAt?.number,
            graceUntil: change.graceUntil?.number,
            anchorDay: change.anchorDay
        )
        return answer(change.user, try self[change.user, at: now].setPlan(subscription, state: change.state?.rawValue))
    }

    public mutating func grant(_ user: UserID, _ grant: Grant, at now: Instant) throws(Failure) -> Answer {
        let ends: Int? =
            switch grant.end {
            case .withPeriod: nil
            case .at(let end): end.number
            case .never: .max
            }
        return answer(user, try self[user, at: now].grant(grant.messages, key: grant.key.text, ends: ends))
    }

    public mutating func resetUsage(
        _ user: UserID,
        period: BillingPeriod? = nil,
        parts: MessageParts? = nil,
        at now: Instant
    ) -> Answer? {
        let parts = parts.map { CountingModel.Parts($0) }
        return self[user, at: now].reset(period?.label, parts).map { answer(user, $0) }
    }

    public mutating func closeWindow(_ user: UserID, parts: MessageParts? = nil, at now: Instant) -> Answer? {
        self[user, at: now].closeWindow(parts.map { CountingModel.Parts($0) }).map { answer(user, $0) }
    }

    public mutating func forget(_ user: UserID) { self[user, at: at("2026-01-01")].forget() }

    public mutating func setCount(_ user: UserID, period: BillingPeriod, count: Int, at now: Instant) {
        self[user, at: now].setCount(count, in: period.label)
    }

    public mutating func deleteRow(_ user: UserID, period: BillingPeriod) { models[user]?.deleteRow(period.label) }

    public mutating func deleteWindows(of user: UserID) {
        models[user]?.window = nil
        models[user]?.windows = [:]
    }

    public mutating func setLimit(_ user: UserID, period: BillingPeriod, limit: Int?) {
        models[user]?.rows[period.label]?.usage.allowances[0].limit = limit
    }

    public mutating func setPlanDefinition(_ plan: Plan) { plans[plan.name] = plan }
}

extension Instant {
    init(_ microseconds: Int) { self.init(microsecondsSince1970: Int64(microseconds)) }
    var number: Int { Int(microsecondsSince1970) }
}

extension PlanRules {
    init(_ plan: Plan) {
        let (name, days): (String, Int) =
            switch plan.cycle {
            case .monthly: ("monthly", 0)
            case .weekly: ("weekly", 0)
            case .daily: ("daily", 0)
            case .trial(let days): ("trial", days)
            case .lifetime: ("lifetime", 0)
            }
        self.init(
            name: plan.name,
            cycle: name,
            days: days,
            zone: plan.timeZone,
            allowance: plan.allowance,
            window: plan.window.map { ($0.messages, $0.seconds) },
            isEnforced: plan.isEnforced,
            percents: [plan.gentlePercent, plan.prominentPercent],
            limits: plan.limits.map { limit in
                PartLimit(
                    kind: limit.kind.rawValue,
                    name: limit.name,
                    allowance: limit.allowance,
                    window: limit.window.map { ($0.messages, $0.seconds) },
                    weight: limit.weight,
                    fallback: limit.fallback?.text
                )
            }
        )
    }
}

/// A period by the model's calendar.
public struct BillingCycle: Hashable, Sendable {
    public let period: BillingPeriod
    public let start: Instant
    public let end: Instant

    /// The one that contains `instant`; nil for a plan that never resets.
    public init?(containing instant: Instant, plan: Plan, anchorDay: Int = 1) {
        guard let cycle = PlanRules(plan).cycle(at: instant.number, anchorDay) else { return nil }
        period = BillingPeriod(storedLabel: cycle.label)
        (start, end) = (Instant(cycle.start), Instant(cycle.end))
    }

    /// The month that contains `instant`.
    public init(containing instant: Instant, anchorDay: Int) {
        self.init(containing: instant, plan: .paid, anchorDay: anchorDay)!
    }
}
