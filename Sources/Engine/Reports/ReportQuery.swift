import Usage

/// A report about all users of a billing period, or of every open period (`BillingPeriod.open`). The report of a month
/// or week without a number, `2026-03`, is also about the periods with one, `2026-03.2`.
public enum ReportQuery: Hashable, Sendable {
    /// The report of users, messages and tiers.
    case report(BillingPeriod)
    /// The `count` users with the most messages.
    case top(BillingPeriod, count: Int)
    /// The `count` users with the most messages in a tier and on a plan; nil means all tiers or plans.
    case users(BillingPeriod, tier: Tier?, plan: String?, count: Int)
    /// The report of every period, in one scan of the table.
    case allPeriods
}

extension ReportQuery {
    var period: BillingPeriod {
        switch self {
        case .report(let period), .top(let period, _), .users(let period, _, _, _): period
        case .allPeriods: .open
        }
    }

    /// The beginning of the labels of later periods in the month or week; nil for other periods, which have none.
    var numberedLabels: String? {
        guard period.number == 1, period.month != nil || period.week != nil else { return nil }
        return period.label + "."
    }

    var count: Int {
        switch self {
        case .report, .allPeriods: 0
        case .top(_, let count), .users(_, _, _, let count): count
        }
    }

    var tier: Tier? {
        if case .users(_, let tier, _, _) = self { tier } else { nil }
    }

    var plan: String? {
        if case .users(_, _, let plan, _) = self { plan } else { nil }
    }

    var rangePages: Int64 {
        period == .open ? PagedTableScan.rangePagesOfOpen : PagedTableScan.rangePages
    }
}

public struct ReportRequest: Sendable, Equatable {
    public var query: ReportQuery
    public var returnAddress: ReturnAddress
    public var deadline: ContinuousClock.Instant

    public init(query: ReportQuery, returnAddress: ReturnAddress, deadline: ContinuousClock.Instant) {
        self.query = query
        self.returnAddress = returnAddress
        self.deadline = deadline
    }
}

extension EngineError {
    package static let reportTimedOut = EngineError(
        .unavailable,
        "the report was not complete in time; try again, or raise report-timeout-ms"
    )
    static let reportsUnavailable = EngineError(.unavailable, "the database cannot be reached; try again")
    static let tooManyReports = EngineError(.overloaded, "too many reports are waiting; try again")
    static let reportInterrupted = EngineError(
        .unavailable,
        "this instance is shutting down before the report is complete; ask another one"
    )
}
