import Engine
import Postgres
import ServiceCore
import Usage

/// Loads the pages' figures. Figures about all users come from the engine's report reader, which scans the table in
/// page ranges with pauses between them; figures about one user come from the user's lane and from indexed queries.
struct DashboardFigures: Sendable {
    /// The key of a cache with one figure.
    private struct SingleKey: Hashable {}

    private static let topUsers = 10
    private static let days = 30
    private static let failedEvents = 10
    private static let freshness = Duration.seconds(5)
    /// Of a past period, which changes only when an operator edits it.
    private static let pastFreshness = Duration.seconds(300)
    /// Of a list of users, so that its pages are those of one scan while somebody reads them.
    private static let listFreshness = Duration.seconds(60)
    /// How long a page waits for a figure. After that it is sent with the figures that are there, and the load
    /// continues.
    private static let waitTimeout = Duration.milliseconds(1_500)

    private let service: ServiceDependencies
    private let engine: EngineClient
    /// The words of sentences on pages.
    let words: CurrentWords
    private let sessions: SessionPool
    private let requestTimeout: Duration
    private let periods: FigureCache<SingleKey, AllPeriods>
    private let top: FigureCache<BillingPeriod, [PeriodUsage]>
    private let activity: FigureCache<SingleKey, [DailyActivity]>
    private let billing: FigureCache<SingleKey, BillingOverview>
    private let lists: FigureCache<UserListQuery, [PeriodUsage]>

    init(_ dependencies: HTTPServerDependencies) {
        service = dependencies.service
        let (engine, sessions) = (dependencies.engine, dependencies.pageSessions)
        let timeout = dependencies.configuration.settings.requestTimeout
        self.engine = engine
        words = service.engine.words
        self.sessions = sessions
        requestTimeout = timeout
        periods = FigureCache(capacity: 1) { _ in
            await DashboardFigures.result(of: engine.report(.allPeriods)) { outcome in
                if case .periods(let periods) = outcome { periods } else { nil }
            }
        }
        top = FigureCache(capacity: 64) { period in
            await DashboardFigures.result(of: engine.report(.top(period, count: DashboardFigures.topUsers))) {
                outcome in
                if case .periodUsages(let users) = outcome { users } else { nil }
            }
        }
        activity = FigureCache(capacity: 1) { _ in
            let deadline = ContinuousClock.now + timeout
            return await DashboardFigures.query(in: sessions, by: deadline) { connection throws(PostgresError) in
                try DailyActivity.read(days: DashboardFigures.days, on: connection, deadline: deadline)
            }
        }
        billing = FigureCache(capacity: 1) { _ in
            let deadline = ContinuousClock.now + timeout
            return await DashboardFigures.query(in: sessions, by: deadline) { connection throws(PostgresError) in
                try BillingOverview.read(limit: DashboardFigures.failedEvents, on: connection, deadline: deadline)
            }
        }
        lists = FigureCache(capacity: DashboardFigures.listsMaximum) { list in
            let query = ReportQuery.users(
                list.period,
                tier: list.tier,
                plan: list.plan,
                count: UserListQuery.usersMaximum
            )
            return await DashboardFigures.result(of: engine.report(query)) { outcome in
                if case .periodUsages(let users) = outcome { users } else { nil }
            }
        }
    }

    /// Lists of users in the cache: some thousand rows each at most.
    private static let listsMaximum = 16

    var live: LiveFigures { LiveFigures(info: service.info.lines()) }

    /// Nothing is loaded then: each caller would only wait for a timeout.
    private var isDatabaseAway: Bool { service.engine.snapshot.lanesConnected == 0 }

    /// - Parameter period: `BillingPeriod.open` by default.
    /// - Returns: nil if there is no such period.
    func overview(_ period: BillingPeriod) async -> OverviewFigures? {
        let isAway = isDatabaseAway
        async let periods = figure(self.periods, SingleKey(), DashboardFigures.freshness, isAway)
        async let billing = figure(self.billing, SingleKey(), DashboardFigures.freshness, isAway)
        async let days = figure(activity, SingleKey(), DashboardFigures.freshness, isAway)
        // Checked before the top users are loaded, because each made-up name would cost a scan of the table.
        if !DashboardFigures.alwaysExists(period),
            !(await DashboardFigures.mayExist(period, periods.value, billing.value))
        {
            return nil
        }
        async let top = figure(self.top, period, freshness(of: period), isAway)
        return await OverviewFigures(
            periods: periods,
            period: period,
            top: top,
            days: days,
            billing: billing,
            live: live
        )
    }

    /// - Returns: nil if there is no such period or plan.
    func users(_ query: UserListQuery) async -> UserListFigures? {
        let isAway = isDatabaseAway
        async let periods = figure(self.periods, SingleKey(), DashboardFigures.freshness, isAway)
        async let billing = figure(self.billing, SingleKey(), DashboardFigures.freshness, isAway)
        // Checked before the users are loaded, because each made-up name would cost a scan of the table.
        guard await DashboardFigures.mayExist(query.period, periods.value, billing.value),
            await DashboardFigures.mayExist(query.plan, periods.value, billing.value)
        else { return nil }
        let users = await figure(lists, query, DashboardFigures.listFreshness, isAway)
        return await UserListFigures(query: query, users: users, periods: periods, billing: billing)
    }

    /// Whether a list can show the plan: a configured one, or one with usage rows.
    static func mayExist(_ plan: String?, _ periods: AllPeriods?, _ billing: BillingOverview?) -> Bool {
        guard let plan, let periods, let billing else { return true }
        return billing.plans.contains { $0.name == plan }
            || periods.plans.values.contains { $0.contains { $0.plan == plan } }
    }

    /// Whether a page can show the period though it may have no usage rows.
    private static func alwaysExists(_ period: BillingPeriod) -> Bool {
        period == .open || period.month != nil && period.number == 1
    }

    /// Whether a page can show the period: any month, the period of a plan that never resets, or one with usage rows.
    static func mayExist(_ period: BillingPeriod, _ periods: AllPeriods?, _ billing: BillingOverview?) -> Bool {
        // Until both are loaded, any period may exist.
        guard !alwaysExists(period), let periods, let billing else { return true }
        return periods.reports.contains { $0.period == period }
            || billing.plans.contains { $0.name == period.label && !$0.cycle.isPeriodic }
    }

    private func freshness(of period: BillingPeriod) async -> Duration {
        // The calendar month says nothing about a period without a month, such as a trial's, which never ends.
        guard period.month != nil,
            let current = await periods.cached(SingleKey(), error: .databaseIsAway).value?.current
        else { return DashboardFigures.freshness }
        return period.label < current.label ? DashboardFigures.pastFreshness : DashboardFigures.freshness
    }

    private func figure<Key, Value>(
        _ cache: FigureCache<Key, Value>,
        _ key: Key,
        _ freshness: Duration,
        _ isAway: Bool
    ) async -> Figure<Value> {
        if isAway { return await cache.cached(key, error: .databaseIsAway) }
        return await cache.figure(key, freshFor: freshness, timeout: DashboardFigures.waitTimeout)
    }

    func user(_ user: UserID) async -> UserFigures {
        if isDatabaseAway {
            return UserFigures(
                user: user,
                usage: .failure(.databaseIsAway),
                history: .failure(.databaseIsAway),
                records: .failure(.databaseIsAway),
                allowances: .failure(.databaseIsAway)
            )
        }
        async let usage = engine.perform(.usage, for: user)
        async let history = engine.perform(.history(24), for: user)
        async let records = self.records(of: user)
        async let allowances = engine.perform(.allowances(nil), for: user)
        return await UserFigures(
            user: user,
            usage: DashboardFigures.result(of: usage) { if case .answer(let answer) = $0 { answer } else { nil } },
            history: DashboardFigures.result(of: history) {
                if case .periodUsages(let periods) = $0 { periods } else { nil }
            },
            records: records,
            allowances: DashboardFigures.result(of: allowances) {
                if case .allowances(_, let allowances) = $0 { allowances } else { nil }
            }
        )
    }

    /// - Returns: nil if it cannot be loaded.
    func snapshot(of user: UserID, in parts: MessageParts?) async -> UsageSnapshot? {
        guard !isDatabaseAway, case .answer(let answer) = await engine.perform(.usage.inParts(parts), for: user) else {
            return nil
        }
        return answer.snapshot
    }

    /// - Returns: nil if they cannot be loaded.
    func plans() async -> [Plan]? {
        await figure(billing, SingleKey(), DashboardFigures.freshness, isDatabaseAway).value?.plans
    }

    func event(_ name: BillingEventLog.Name) async -> Result<BillingEventDetails?, EngineError> {
        let deadline = ContinuousClock.now + requestTimeout
        return await DashboardFigures.query(in: sessions, by: deadline) { connection throws(PostgresError) in
            try BillingEventDetails.read(name, on: connection, deadline: deadline)
        }
    }

    private func records(of user: UserID) async -> Result<UserDetails, EngineError> {
        let deadline = ContinuousClock.now + requestTimeout
        return await DashboardFigures.query(in: sessions, by: deadline) { connection throws(PostgresError) in
            try UserDetails.read(of: user, limit: UserPresenter.listMaximum, on: connection, deadline: deadline)
        }
    }

    private static func result<Value>(
        of outcome: Outcome,
        _ value: (Outcome) -> Value?
    ) -> Result<Value, EngineError> {
        if case .failure(let error) = outcome { return .failure(error) }
        return value(outcome).map { .success($0) } ?? .failure(.unexpectedOutcome)
    }

    /// Reads the words anew: this instance may have answered nothing since they were edited.
    ///
    /// - Returns: false if they cannot be read; they stay as they are.
    func readWords() async -> Bool {
        guard !isDatabaseAway else { return false }
        let deadline = ContinuousClock.now + requestTimeout
        let (words, timeout, logger) = (words, requestTimeout, service.logger)
        let result = await DashboardFigures.query(in: sessions, by: deadline) { connection throws(PostgresError) in
            try words.refresh(over: connection, timeout: timeout, logger)
        }
        if case .success = result { return true }
        return false
    }

    private static func query<Value: Sendable>(
        in sessions: SessionPool,
        by deadline: ContinuousClock.Instant,
        _ query: @escaping @Sendable (DatabaseConnection) throws(PostgresError) -> Value
    ) async -> Result<Value, EngineError> {
        do throws(SessionPool.Failure) {
            return .success(try await sessions.perform(by: deadline, query))
        } catch {
            return .failure(EngineError(error))
        }
    }
}

extension EngineError {
    static let databaseIsAway = EngineError(.unavailable, "the database cannot be reached; try again")
    static let unexpectedOutcome = EngineError(.internal, "the engine answered with another kind; please report it")

    /// The same text for a page and for a `Problem`.
    init(_ failure: SessionPool.Failure) {
        self =
            switch failure {
            case .overloaded: EngineError(.overloaded, "too many requests are waiting; try again")
            case .closed, .cancelled: EngineError(.unavailable, "this instance is shutting down; ask another one")
            case .tooLate: EngineError(.unavailable, "the database is too busy; try again")
            case .database(let error) where error.isTransient: .databaseIsAway
            case .database(let error) where error.isAboutRequest:
                EngineError(.badArgument, "the database refuses a value of the request; check what it was given")
            case .database: EngineError(.internal, "the database refused a statement; the service's log says why")
            }
    }
}
