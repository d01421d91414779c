import Postgres
import Usage

/// A running scan of the usage table for one report: a range of pages at a time, each in a transaction of its own.
///
/// One statement over the whole table would hold its snapshot for as long as it takes, and until then no old version of
/// a popular user's row could be pruned: messages would get slower with every message.
struct PagedTableScan {
    /// The pages of the first range: 16 MB of a table, some 80,000 rows, which usually take less than 100 milliseconds.
    static let rangePages: Int64 = 2_048
    /// The pages of the first range in a scan of all open periods: some 20,000 rows.
    static let rangePagesOfOpen: Int64 = 512
    /// The time after which a smaller range follows. A row that is not usable as it is, as all rows after an edit of
    /// the plans, may take a hundred times as long as others. If the smaller range takes as long, most of that is not
    /// for its pages: where Citus distributes the table, each range is planned anew.
    private static let slowRange = Duration.milliseconds(300)
    private static let rangePagesMinimum: Int64 = 16
    /// The largest page number that PostgreSQL has.
    private static let lastPage: Int64 = 4_294_967_294

    static let statements: [PreparedQuery] = [
        .readTableSize, .readReportPageRange, .readTopPageRange, .readPeriodsPageRange, .readSupersededPageRange,
    ]

    private let query: ReportQuery
    private let invalidValues: InvalidValueLog
    private var nextPage: Int64 = 0
    private(set) var rangePages: Int64
    /// The pages and the duration of the range before.
    private var previous: (pages: Int64, duration: Duration) = (0, .zero)
    /// The number of pages when the scan began, and the calendar month then; nil before the first range.
    private var extent: (pages: Int64, calendarMonth: BillingPeriod)?
    /// The report of the requested period, or of all open periods.
    private var report: PeriodReport
    private var top: TopUsers
    private var periods: [BillingPeriod: PeriodReport] = [:]
    /// The plans of each period, and of all open periods, by name.
    private var plans: [BillingPeriod: [String?: PlanReport]] = [:]

    init(_ query: ReportQuery, _ invalidValues: InvalidValueLog) {
        self.query = query
        self.invalidValues = invalidValues
        rangePages = query.rangePages
        report = PeriodReport(period: query.period)
        top = TopUsers(count: query.count, of: query.period)
    }

    /// Reads one range of pages.
    ///
    /// - Parameter deadline: see `ReconnectingSession.query`.
    /// - Returns: the outcome once all pages are read.
    mutating func advance(
        on session: ReconnectingSession<Void>,
        deadline: () -> ContinuousClock.Instant?
    ) throws(PostgresError) -> Outcome? {
        if extent == nil { extent = try readTableSize(on: session, deadline: deadline) }
        guard let (pages, calendarMonth) = extent else { return nil }
        // The last range has no end, because the table grows meanwhile. A table of one range is read in one snapshot.
        let isLast = nextPage + rangePages >= pages
        let end = isLast ? PagedTableScan.lastPage : nextPage + rangePages
        let started = ContinuousClock.now
        try readPageRange(nextPage..<end, on: session, deadline: deadline)
        adaptRange(to: ContinuousClock.now - started)
        nextPage = end
        guard isLast else { return nil }
        switch query {
        case .report: return .report(report)
        case .top, .users: return .periodUsages(top.sorted)
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

    /// - Parameter duration: the duration of the last range.
    mutating func adaptRange(to duration: Duration) {
        let isSmallerInVain = rangePages < previous.pages && duration > previous.duration * 3 / 4
        previous = (rangePages, duration)
        if duration > PagedTableScan.slowRange, !isSmallerInVain {
            rangePages = max(rangePages / 2, PagedTableScan.rangePagesMinimum)
        } else if isSmallerInVain || duration < PagedTableScan.slowRange / 4 {
            rangePages = min(rangePages * 2, query.rangePages)
        }
    }

    private func readTableSize(
        on session: ReconnectingSession<Void>,
        deadline: () -> ContinuousClock.Instant?
    ) throws(PostgresError) -> (pages: Int64, calendarMonth: BillingPeriod) {
        let result = try session.query(.readTableSize, deadline: deadline)
        return (try result.firstRow.int64("pages"), try result.firstRow.period("calendar_month"))
    }

    private mutating func readPageRange(
        _ pages: Range<Int64>,
        on session: ReconnectingSession<Void>,
        deadline: () -> ContinuousClock.Instant?
    ) throws(PostgresError) {
        var parameters = Parameters()
        parameters.append(int64: pages.lowerBound)
        parameters.append(int64: pages.upperBound)
        switch query {
        case .report(let period):
            parameters.append(text: period == .open ? nil : period.label)
            parameters.append(text: query.numberedLabels)
            let result = try session.query(.readReportPageRange, parameters, deadline: deadline)
            _ = try result.rows { row throws(PostgresError) in
                report.add(
                    users: Int(try row.int64("users")),
                    in: try row.tier("tier"),
                    messages: Int(try row.int64("messages"))
                )
            }
            guard query.numberedLabels != nil else { return }
            for row in try supersededRows(pages, of: period, on: session, deadline: deadline) {
                report.add(users: -row.users, in: row.tier, messages: 0)
            }
        case .top, .users:
            parameters.append(text: query.period == .open ? nil : query.period.label)
            parameters.append(int32: Int32(query.count))
            parameters.append(int32: Int32(top.usedMinimum))
            parameters.append(text: query.tier?.rawValue)
            parameters.append(text: query.plan)
            parameters.append(text: query.numberedLabels)
            let result = try session.query(.readTopPageRange, parameters, deadline: deadline)
            top.merge(try result.rows { row throws(PostgresError) in usage(row) }.compactMap(\.self))
        case .allPeriods:
            let result = try session.query(.readPeriodsPageRange, parameters, deadline: deadline)
            _ = try result.rows { row throws(PostgresError) in try addPeriod(row) }
            for row in try supersededRows(pages, of: nil, on: session, deadline: deadline) {
                periods[row.period, default: PeriodReport(period: row.period)]
                    .add(users: -row.users, in: row.tier, messages: 0)
                addPlan(row.plan, to: row.period, users: -row.users, in: row.tier, messages: 0)
            }
        }
    }

    /// The users who have a later row in the same month or week. The report counts them by that row.
    ///
    /// - Parameter period: the month or week; nil means all.
    private func supersededRows(
        _ pages: Range<Int64>,
        of period: BillingPeriod?,
        on session: ReconnectingSession<Void>,
        deadline: () -> ContinuousClock.Instant?
    ) throws(PostgresError) -> [(period: BillingPeriod, plan: String?, tier: Tier, users: Int)] {
        var parameters = Parameters()
        parameters.append(int64: pages.lowerBound)
        parameters.append(int64: pages.upperBound)
        parameters.append(text: period?.label)
        let result = try session.query(.readSupersededPageRange, parameters, deadline: deadline)
        return try result.rows { row throws(PostgresError) in
            (
                try row.period("billing_period"), try row.textOrNil("plan"), try row.tier("tier"),
                Int(try row.int64("users"))
            )
        }
    }

    private mutating func addPeriod(_ row: ResultRow) throws(PostgresError) {
        let (period, tier) = (try row.period("billing_period"), try row.tier("tier"))
        let (users, messages) = (Int(try row.int64("users")), Int(try row.int64("messages")))
        let plan = try row.textOrNil("plan")
        // A period with a number is reported by itself, and in its month or week.
        for period in Set([period, period.unnumbered]) {
            periods[period, default: PeriodReport(period: period)].add(users: users, in: tier, messages: messages)
            addPlan(plan, to: period, users: users, in: tier, messages: messages)
        }
        guard try row.bool("is_open") else { return }
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

    /// The usage in a row; nil if a value is out of range, so that the row does not fail the list of all others.
    private func usage(_ row: ResultRow) -> PeriodUsage? {
        do throws(PostgresError) {
            return PeriodUsage(
                user: try row.user("user_id"),
                period: try row.period("billing_period"),
                used: try row.count("message_count", of: .messageCount),
                limit: try row.countOrNil("limit", of: .limit),
                tier: try row.tier("tier")
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
    static let readSupersededPageRange = PreparedQuery(
        name: "read_superseded_page_range",
        sql: EmbeddedSQL.readSupersededPageRange
    )
}
