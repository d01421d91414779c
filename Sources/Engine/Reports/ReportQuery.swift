import Usage

/// A report about all users of a billing period, or of every open period (`BillingPeriod.open`).
public enum ReportQuery: Hashable, Sendable {
    /// Users, messages and tiers.
    case report(BillingPeriod)
    /// The `count` users with the most messages.
    case top(BillingPeriod, count: Int)
    /// The `count` users with the most messages in a tier and on a plan; nil is all of them.
    case users(BillingPeriod, tier: Tier?, plan: String?, count: Int)
    /// The report of every period, in one scan of the table.
    case allPeriods
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
