import Postgres
import Usage

/// One reading of a billing period under way: a portion of the table's pages at a time, each in a transaction of its own.
///
/// One statement over the whole table would hold its snapshot for as long as it takes, and until then no version of a
/// popular user's row could be pruned: messages would get slower with every message.
struct TableReading {
    /// 16 MB of a table: some 80,000 rows, and as many milliseconds at most.
    static let portionPages: Int64 = 2_048
    /// The largest page number that PostgreSQL has.
    private static let lastPage: Int64 = 4_294_967_294

    static let statements: [PreparedQuery] = [.readExtent, .readReportPortion, .readTopPortion, .readPeriodsPortion]

    private let reading: Reading
    private var nextPage: Int64 = 0
    /// How many there were in the beginning.
    private var pages: Int64 = 0
    private var report: PeriodReport?
    private var top: TopUsers
    private var periods: [BillingPeriod: PeriodReport] = [:]

    init(_ reading: Reading) {
        self.reading = reading
        top = TopUsers(count: reading.count)
    }

    /// Reads one portion.
    ///
    /// - Parameter deadline: see `SessionLink.query`.
    /// - Returns: the outcome, when there is nothing left to read.
    mutating func advance(
        on link: SessionLink,
        deadline: () -> ContinuousClock.Instant?
    ) throws(PostgresError) -> Outcome? {
        if report == nil {
            let extent = try link.query(.readExtent, deadline: deadline)
            pages = extent.int64(0, 0)
            report = PeriodReport(period: reading.period ?? BillingPeriod(storedLabel: extent.text(0, 1)))
        }
        // The last portion has no end, because the table grows meanwhile. With one portion all is of one instant.
        let isLast = nextPage + TableReading.portionPages >= pages
        let end = isLast ? TableReading.lastPage : nextPage + TableReading.portionPages
        try readPortion(nextPage..<end, on: link, deadline: deadline)
        nextPage = end
        return isLast ? outcome : nil
    }

    private var outcome: Outcome? {
        guard let report else { return nil }
        switch reading {
        case .report: return .report(report)
        case .top: return .history(top.sorted)
        case .allPeriods: return .periods(AllPeriods(current: report.period, reports: Array(periods.values)))
        }
    }

    private mutating func readPortion(
        _ portion: Range<Int64>,
        on link: SessionLink,
        deadline: () -> ContinuousClock.Instant?
    ) throws(PostgresError) {
        guard var report else { return }
        var parameters = Parameters()
        parameters.append(int64: portion.lowerBound)
        parameters.append(int64: portion.upperBound)
        switch reading {
        case .report:
            parameters.append(text: report.period.label)
            let result = try link.query(.readReportPortion, parameters, deadline: deadline)
            for row in 0..<result.rowCount {
                report.add(
                    users: Int(result.int64(row, 1)),
                    in: Tier(rawValue: result.text(row, 0)) ?? .silent,
                    messages: Int(result.int64(row, 2))
                )
            }
            self.report = report
        case .top(_, let count):
            parameters.append(text: report.period.label)
            parameters.append(int32: Int32(count))
            parameters.append(int32: Int32(top.fewestThatMatter))
            let result = try link.query(.readTopPortion, parameters, deadline: deadline)
            top.merge((0..<result.rowCount).map { TableReading.usage(result, $0, in: report.period) })
        case .allPeriods:
            let result = try link.query(.readPeriodsPortion, parameters, deadline: deadline)
            for row in 0..<result.rowCount {
                let period = BillingPeriod(storedLabel: result.text(row, 0))
                periods[period, default: PeriodReport(period: period)].add(
                    users: Int(result.int64(row, 2)),
                    in: Tier(rawValue: result.text(row, 1)) ?? .silent,
                    messages: Int(result.int64(row, 3))
                )
            }
        }
    }

    private static func usage(_ result: QueryResult, _ row: Int, in period: BillingPeriod) -> PeriodUsage {
        let (high, low) = result.uuid(row, 0)
        return PeriodUsage(
            user: UserID(high: high, low: low),
            period: period,
            used: Int(result.int32(row, 1)),
            limit: result.isNull(row, 2) ? nil : Int(result.int32(row, 2)),
            tier: Tier(rawValue: result.text(row, 3)) ?? .silent
        )
    }
}

extension PreparedQuery {
    static let readExtent = PreparedQuery(name: "read_extent", sql: EmbeddedSQL.readExtent)
    static let readReportPortion = PreparedQuery(name: "read_report_portion", sql: EmbeddedSQL.readReportPortion)
    static let readTopPortion = PreparedQuery(name: "read_top_portion", sql: EmbeddedSQL.readTopPortion)
    static let readPeriodsPortion = PreparedQuery(name: "read_periods_portion", sql: EmbeddedSQL.readPeriodsPortion)
}

extension Reading {
    fileprivate var count: Int {
        switch self {
        case .report, .allPeriods: 0
        case .top(_, let count): count
        }
    }
}
