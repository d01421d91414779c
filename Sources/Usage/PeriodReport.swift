/// The totals of a billing period over all users. A month or week includes the periods with a number, such as
/// `2026-03.2`; a user with several of them counts once, by the last.
public struct PeriodReport: Sendable, Equatable {
    public var period: BillingPeriod
    /// Messages counted.
    public var messages: Int
    /// The number of users with a row in the period, by their tier in it. It is below 0 if rows changed while they were
    /// read.
    private var usersByTier: [Tier: Int]

    public init(period: BillingPeriod) {
        self.period = period
        messages = 0
        usersByTier = [:]
    }

    public var users: Int { Tier.allCases.reduce(0) { $0 + users(in: $1) } }

    public func users(in tier: Tier) -> Int { max(0, usersByTier[tier, default: 0]) }

    /// - Parameter users: a negative number subtracts users whom another row counts.
    public mutating func add(users: Int, in tier: Tier, messages: Int) {
        usersByTier[tier, default: 0] += users
        self.messages += messages
    }
}

/// The totals of one plan in a billing period.
public struct PlanReport: Sendable, Equatable {
    /// The plan's name; nil for rows without a plan, such as those that were inserted manually.
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
    /// The calendar month by the database's clock.
    public var current: BillingPeriod
    /// The totals of all periods that are open now.
    public var open: PeriodReport
    /// The totals of each period that has rows, in no order. The totals of a month or week include its periods with a
    /// number.
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
