import Postgres
import Usage

/// One reading of a billing period, or of all that are open, under way: a portion of the table's pages at a time, each in a transaction of its own.
///
/// One statement over the whole table would hold its snapshot for as long as it takes, and until then no version of a
/// popular user's row could be pruned: messages would get slower with every message.
struct PagedTableScan {
    /// 16 MB of a table: some 80,000 rows, and as many milliseconds at most.
    static let portionPages: Int64 = 2_048
    /// Some 20,000 rows. Whether a row's period is open may take an index scan each: 300 milliseconds for all of them at most.
    static let portionPagesOfOpen: Int64 = 512
    /// The largest page number that PostgreSQL has.
    private static let lastPage: Int64 = 4_294_967_294

    static let statements: [PreparedQuery] = [.readTableSize, .readReportPageRange, .readTopPageRange, .readPeriodsPageRange]

    private let reading: Reading
    private let invalidValues: InvalidValueLog
    private var nextPage: Int64 = 0
    /// How many there were in the beginning, and the calendar month then. Nil before the first portion.
    private var extent: (pages: Int64, calendarMonth: BillingPeriod)?
    /// Of the period that is read, or of all that are open.
    private var report: PeriodReport
    private var top: TopUsers
    private var periods: [BillingPeriod: PeriodReport] = [:]
    /// Of each period, and of all that are open, by the plan's name.
    private var plans: [BillingPeriod: [String?: PlanReport]] = [:]

    init(_ reading: Reading, _ invalidValues: InvalidValueLog) {
        self.reading = reading
        self.invalidValues = invalidValues
        report = PeriodReport(period: reading.period)
        top = TopUsers(count: reading.count)
    }

    /// Reads one portion.
    ///
    /// - Parameter deadline: see `ReconnectingSession.query`.
    /// - Returns: the outcome, when there is nothing left to read.
    mutating func advance(
        on session: ReconnectingSession<Void>,
        deadline: () -> ContinuousClock.Instant?
    ) throws(PostgresError) -> Outcome? {
        if extent == nil { extent = try readTableSize(on: session, deadline: deadline) }
        guard let (pages, calendarMonth) = extent else { return nil }
        // The last portion has no end, because the table grows meanwhile. With one portion all is of one instant.
        let isLast = nextPage + reading.portionPages >= pages
        let end = isLast ? PagedTableScan.lastPage : nextPage + reading.portionPages
        try readPortion(nextPage..<end, on: session, deadline: deadline)
        nextPage = end
        guard isLast else { return nil }
        switch reading {
        case .report: return .report(report)
        case .top: return .history(top.sorted)
        case .allPeriods:
            return .periods(
                AllPeriods(
                    current: calendarMonth,
                    open: report,
                    reports: Array(periods.values),
                    plans: plans.mapValues { Array($0.values) }
                )
            )
        }
    }

    private func readTableSize(
        on session: ReconnectingSession<Void>,
        deadline: () -> ContinuousClock.Instant?
    ) throws(PostgresError) -> (pages: Int64, calendarMonth: BillingPeriod) {
        let result = try session.query(.readTableSize, deadline: deadline)
        return (try result.int64(0, 0), BillingPeriod(storedLabel: result.text(0, 1)))
    }

    private mutating func readPortion(
        _ portion: Range<Int64>,
        on session: ReconnectingSession<Void>,
        deadline: () -> ContinuousClock.Instant?
    ) throws(PostgresError) {
        var parameters = Parameters()
        parameters.append(int64: portion.lowerBound)
        parameters.append(int64: portion.upperBound)
        switch reading {
        case .report(let period):
            parameters.append(text: period == .open ? nil : period.label)
            let result = try session.query(.readReportPageRange, parameters, deadline: deadline)
            for row in 0..<result.rowCount {
                report.add(
                    users: Int(try result.int64(row, 1)),
                    in: Tier(rawValue: result.text(row, 0)) ?? .silent,
                    messages: Int(try result.int64(row, 2))
                )
            }
        case .top(let period, let count):
            parameters.append(text: period == .open ? nil : period.label)
            parameters.append(int32: Int32(count))
            parameters.append(int32: Int32(top.fewestThatMatter))
            let result = try session.query(.readTopPageRange, parameters, deadline: deadline)
            top.merge((0..<result.rowCount).compactMap { usage(result, $0) })
        case .allPeriods:
            let result = try session.query(.readPeriodsPageRange, parameters, deadline: deadline)
            for row in 0..<result.rowCount { try addPeriod(result, row) }
        }
    }

    private mutating func addPeriod(_ result: QueryResult, _ row: Int) throws(PostgresError) {
        let period = BillingPeriod(storedLabel: result.text(row, 0))
        let tier = Tier(rawValue: result.text(row, 1)) ?? .silent
        let (users, messages) = (Int(try result.int64(row, 3)), Int(try result.int64(row, 4)))
        let plan = result.textOrNil(row, 5)
        periods[period, default: PeriodReport(period: period)].add(users: users, in: tier, messages: messages)
        addPlan(plan, to: period, users: users, in: tier, messages: messages)
        guard try result.bool(row, 2) else { return }
        report.add(users: users, in: tier, messages: messages)
        addPlan(plan, to: .open, users: users, in: tier, messages: messages)
    }

    private mutating func addPlan(
        _ plan: String?,
        to period: BillingPeriod,
        users: Int,
        in tier: Tier,
        messages: Int
    ) {
        plans[period, default: [:]][plan, default: PlanReport(plan: plan)]
            .add(users: users, in: tier, messages: messages)
    }

    /// Nil for a row with a value out of range, which does not fail the list of all others.
    private func usage(_ result: QueryResult, _ row: Int) -> PeriodUsage? {
        do throws(PostgresError) {
            let (high, low) = try result.uuid(row, 0)
            return PeriodUsage(
                user: UserID(high: high, low: low),
                period: BillingPeriod(storedLabel: result.text(row, 1)),
                used: try result.count(row, 2, of: .messageCount),
                limit: try result.countOrNil(row, 3, of: .limit),
                tier: Tier(rawValue: result.text(row, 4)) ?? .silent
            )
        } catch {
            invalidValues.record(error)
            return nil
        }
    }
}

extension PreparedQuery {
    static let readTableSize = PreparedQuery(name: "read_table_size", sql: EmbeddedSQL.readTableSize)
    static let readReportPageRange = PreparedQuery(name: "read_report_page_range", sql: EmbeddedSQL.readReportPageRange)
    static let readTopPageRange = PreparedQuery(name: "read_top_page_range", sql: EmbeddedSQL.readTopPageRange)
    static let readPeriodsPageRange = PreparedQuery(
        name: "read_periods_page_range",
        sql: EmbeddedSQL.readPeriodsPageRange
    )
}

extension Reading {
    fileprivate var period: BillingPeriod {
        switch self {
        case .report(let period), .top(let period, _): period
        case .allPeriods: .open
        }
    }

    fileprivate var count: Int {
        switch self {
        case .report, .allPeriods: 0
        case .top(_, let count): count
        }
    }

    fileprivate var portionPages: Int64 {
        period == .open ? PagedTableScan.portionPagesOfOpen : PagedTableScan.portionPages
    }
}
