/// The totals of a billing period over all users.
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

/// The totals of one plan in a billing period.
public struct PlanReport: Sendable, Equatable {
    /// Nil for rows without a plan, such as those that were inserted manually.
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

/// The totals of all billing periods.
public struct AllPeriods: Sendable, Equatable {
    /// The calendar month, by the database's clock.
    public var current: BillingPeriod
    /// The totals of all periods that are open now.
    public var open: PeriodReport
    /// The totals of each period that has rows, in no order.
    public var reports: [PeriodReport]
    /// The totals of each of these periods by plan; `BillingPeriod.open` has those of the open periods.
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

    /// - Returns: zeros for a period without rows.
    public func report(of period: BillingPeriod) -> PeriodReport {
        if period == .open { return open }
        return reports.first { $0.period == period } ?? PeriodReport(period: period)
    }
}
