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

/// What every billing period comes to.
public struct AllPeriods: Sendable, Equatable {
    /// The calendar month, by the database's clock.
    public var current: BillingPeriod
    /// Of all periods that are open now, whatever their label.
    public var open: PeriodReport
    /// Of each period in which anybody has a row, in no order.
    public var reports: [PeriodReport]

    public init(current: BillingPeriod, open: PeriodReport, reports: [PeriodReport]) {
        self.current = current
        self.open = open
        self.reports = reports
    }

    /// - Returns: zeros where nobody has a row.
    public func report(of period: BillingPeriod) -> PeriodReport {
        if period == .open { return open }
        return reports.first { $0.period == period } ?? PeriodReport(period: period)
    }
}
