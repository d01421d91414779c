/// What a billing period comes to over all users.
public struct PeriodReport: Sendable, Equatable {
    public var period: BillingPeriod
    /// Messages counted.
    public var messages: Int
    /// Users with a row in the period, by their tier in it.
    public private(set) var usersByTier: [Tier: Int]

    public init(period: BillingPeriod) {
        self.period = period
        messages = 0
        usersByTier = [:]
    }

    public var users: Int { usersByTier.values.reduce(0, +) }

    public func users(in tier: Tier) -> Int { usersByTier[tier, default: 0] }

    public mutating func add(users: Int, in tier: Tier, messages: Int) {
        usersByTier[tier, default: 0] += users
        self.messages += messages
    }
}

/// What the users of one plan come to in a billing period.
public struct PlanReport: Sendable, Equatable {
    /// Nil for rows that name no plan, as those that were inserted by hand.
    public var plan: String?
    public var users: Int
    /// Messages counted.
    public var messages: Int
    /// Users in the tier blocked.
    public var blocked: Int

    public init(plan: String?, users: Int = 0, messages: Int = 0, blocked: Int = 0) {
        self.plan = plan
        self.users = users
        self.messages = messages
        self.blocked = blocked
    }

    public mutating func add(users: Int, in tier: Tier, messages: Int) {
        self.users += users
        self.messages += messages
        if tier == .blocked { blocked += users }
    }
}

/// What every billing period comes to.
public struct AllPeriods: Sendable, Equatable {
    /// The calendar month, by the database's clock.
    public var current: BillingPeriod
    /// Of all periods that are open now, whatever their label.
    public var open: PeriodReport
    /// Of each period in which anybody has a row, in no order.
    public var reports: [PeriodReport]
    /// Of each of these periods by plan, and of those that are open now under `BillingPeriod.open`.
    public var plans: [BillingPeriod: [PlanReport]]

    public init(
        current: BillingPeriod,
        open: PeriodReport,
        reports: [PeriodReport],
        plans: [BillingPeriod: [PlanReport]] = [:]
    ) {
        self.current = current
        self.open = open
        self.reports = reports
        self.plans = plans
    }

    /// - Returns: zeros where nobody has a row.
    public func report(of period: BillingPeriod) -> PeriodReport {
        if period == .open { return open }
        return reports.first { $0.period == period } ?? PeriodReport(period: period)
    }
}
