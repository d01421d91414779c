import Engine
import HeadroomServer
import Postgres
import Usage

/// Where the pages' figures come from. Everything about all users goes through the store's reader, which walks the table
/// in portions with pauses between them; everything about one user through the user's lane and by indexes.
struct DashboardFigures: Sendable {
    private struct TopKey: Hashable {
        var period: BillingPeriod
    }

    /// There is one such figure only.
    private struct Only: Hashable {}

    private static let topUsers = 10
    private static let days = 30
    private static let failedEvents = 10
    /// A figure about now is younger than this.
    private static let freshness = Duration.seconds(5)
    /// A period that is over changes by an operator's hand only.
    private static let pastFreshness = Duration.seconds(300)
    /// A page is not kept waiting for longer; it comes with what is known, and the reading goes on.
    private static let patience = Duration.milliseconds(1_500)

    private let parts: ServiceParts
    private let store: StoreGateway
    private let sessions: SessionPool
    private let requestTimeout: Duration
    private let periods: FigureCache<Only, AllPeriods>
    private let top: FigureCache<TopKey, [PeriodUsage]>
    private let activity: FigureCache<Only, [DayActivity]>
    private let records: FigureCache<Only, OverviewRecords>

    init(_ dependencies: HTTPServerDependencies) {
        parts = dependencies.parts
        let (store, sessions) = (dependencies.store, dependencies.pageSessions)
        let timeout = dependencies.configuration.requestTimeout
        self.store = store
        self.sessions = sessions
        requestTimeout = timeout
        periods = FigureCache(capacity: 1) { _ in
            await DashboardFigures.value(of: store.read(.allPeriods)) { outcome in
                if case .periods(let periods) = outcome { periods } else { nil }
            }
        }
        top = FigureCache(capacity: 64) { key in
            await DashboardFigures.value(of: store.read(.top(key.period, count: DashboardFigures.topUsers))) {
                outcome in
                if case .history(let users) = outcome { users } else { nil }
            }
        }
        activity = FigureCache(capacity: 1) { _ in
            let deadline = ContinuousClock.now + timeout
            return await DashboardFigures.work(in: sessions, by: deadline) { connection throws(PostgresError) in
                try DayActivity.read(days: DashboardFigures.days, on: connection, deadline: deadline)
            }
        }
        records = FigureCache(capacity: 1) { _ in
            let deadline = ContinuousClock.now + timeout
            return await DashboardFigures.work(in: sessions, by: deadline) { connection throws(PostgresError) in
                try OverviewRecords.read(limit: DashboardFigures.failedEvents, on: connection, deadline: deadline)
            }
        }
    }

    var live: LiveFigures { LiveFigures(info: parts.info.lines()) }

    /// Nobody can read anything now: whoever asked would only wait for that to be certain.
    private var databaseIsAway: Bool { parts.engine.snapshot.lanesConnected == 0 }

    /// - Parameter period: `BillingPeriod.open` on the first page.
    /// - Returns: nil when there is no such period.
    func overview(_ period: BillingPeriod) async -> OverviewFigures? {
        let isAway = databaseIsAway
        async let periods = figure(self.periods, Only(), DashboardFigures.freshness, isAway)
        async let records = figure(self.records, Only(), DashboardFigures.freshness, isAway)
        async let days = figure(activity, Only(), DashboardFigures.freshness, isAway)
        let isNamed = period != .open && period.month == nil
        // Before the top users are read: each name that somebody makes up would cost a walk over the table.
        if isNamed, !(await DashboardFigures.mayExist(period, periods.value, records.value)) { return nil }
        async let top = figure(self.top, TopKey(period: period), freshness(of: period), isAway)
        return await OverviewFigures(
            periods: periods,
            period: period,
            top: top,
            days: days,
            records: records,
            live: live
        )
    }

    /// A month may be without usage. Another period is a plan's that never resets, or one that somebody has a row in.
    static func mayExist(_ period: BillingPeriod, _ periods: AllPeriods?, _ records: OverviewRecords?) -> Bool {
        // Until both are read, the period may exist.
        guard period != .open, period.month == nil, let periods, let records else { return true }
        return periods.reports.contains { $0.period == period }
            || records.plans.contains { $0.name == period.label && $0.cycle != .monthly }
    }

    private func freshness(of period: BillingPeriod) async -> Duration {
        // A name is no month: a trial's period goes on for ever. And a month that nobody knows may be the current one.
        guard period.month != nil,
            let current = await periods.latest(Only(), trouble: .databaseIsAway).value?.current
        else { return DashboardFigures.freshness }
        return period.label < current.label ? DashboardFigures.pastFreshness : DashboardFigures.freshness
    }

    private func figure<Key, Value>(
        _ cache: FigureCache<Key, Value>,
        _ key: Key,
        _ freshness: Duration,
        _ isAway: Bool
    ) async -> Figure<Value> {
        if isAway { return await cache.latest(key, trouble: .databaseIsAway) }
        return await cache.figure(key, freshFor: freshness, patience: DashboardFigures.patience)
    }

    func user(_ user: UserID) async -> UserFigures {
        if databaseIsAway {
            return UserFigures(
                user: user,
                usage: .failure(.databaseIsAway),
                history: .failure(.databaseIsAway),
                records: .failure(.databaseIsAway)
            )
        }
        async let usage = store.ask(.usage, of: user)
        async let history = store.ask(.history(24), of: user)
        async let records = self.records(of: user)
        return await UserFigures(
            user: user,
            usage: DashboardFigures.value(of: usage) { if case .answer(let answer) = $0 { answer } else { nil } },
            history: DashboardFigures.value(of: history) {
                if case .history(let periods) = $0 { periods } else { nil }
            },
            records: records
        )
    }

    /// Where the user stands; nil while that cannot be read.
    func snapshot(of user: UserID) async -> UsageSnapshot? {
        guard !databaseIsAway, case .answer(let answer) = await store.ask(.usage, of: user) else { return nil }
        return answer.snapshot
    }

    private func records(of user: UserID) async -> Result<UserRecords, EngineError> {
        let deadline = ContinuousClock.now + requestTimeout
        return await DashboardFigures.work(in: sessions, by: deadline) { connection throws(PostgresError) in
            try UserRecords.read(of: user, limit: UserPresenter.listMaximum, on: connection, deadline: deadline)
        }
    }

    private static func value<Value>(
        of outcome: Outcome,
        _ value: (Outcome) -> Value?
    ) -> Result<Value, EngineError> {
        if case .failure(let error) = outcome { return .failure(error) }
        return value(outcome).map { .success($0) } ?? .failure(.unexpectedOutcome)
    }

    private static func work<Value: Sendable>(
        in sessions: SessionPool,
        by deadline: ContinuousClock.Instant,
        _ work: @escaping @Sendable (Connection) throws(PostgresError) -> Value
    ) async -> Result<Value, EngineError> {
        do throws(SessionPool.Failure) {
            return .success(try await sessions.perform(by: deadline, work))
        } catch {
            return .failure(EngineError(error))
        }
    }
}

extension EngineError {
    static let databaseIsAway = EngineError(.unavailable, "the database cannot be reached; try again")
    static let unexpectedOutcome = EngineError(.internal, "the store answered something else; please report it")

    fileprivate init(_ failure: SessionPool.Failure) {
        self =
            switch failure {
            case .overloaded: EngineError(.overloaded, "too many requests are waiting; try again")
            case .closed, .cancelled: EngineError(.unavailable, "this instance is shutting down; ask another one")
            case .tooLate: EngineError(.unavailable, "the database is too busy; try again")
            case .database(let error) where error.isTransient: .databaseIsAway
            case .database: EngineError(.internal, "the database refused a statement; the service's log says why")
            }
    }
}
