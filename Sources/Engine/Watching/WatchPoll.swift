import Postgres
import Usage

/// The statements that find out what changed, a portion of the watched users at a time, so that who comes new is read
/// between two of them.
struct WatchPoll {
    enum Step {
        /// Something was read; more may be there.
        case progress([Publication])
        /// Nothing to do before.
        case rest(until: ContinuousClock.Instant)
    }

    private let session: ReconnectingSession<Void>
    private let configuration: EngineConfiguration
    private let invalidValues: InvalidValueLog
    private var catalog = PlanCatalog.empty
    /// The transactions that were visible when the last round began; nil when nothing is known.
    private var snapshot: String?
    private var planRevision: Int32?
    /// Who is still to be asked about in this round.
    private var remaining: ArraySlice<(user: UserID, fingerprint: String)> = []
    private var isInRound = false
    private var nextRoundAt = ContinuousClock.now
    /// Time spent on the database since the last rest.
    private var worked = Duration.zero
    /// However many are watched, changes are told within about twice this.
    private static let longestRest = Duration.seconds(1)

    static let statements: [PreparedQuery] = [.pollClock, .pollWatchedUsers, .readWatchedUsers, .readPlans]

    init(session: ReconnectingSession<Void>, configuration: EngineConfiguration, invalidValues: InvalidValueLog) {
        self.session = session
        self.configuration = configuration
        self.invalidValues = invalidValues
    }

    /// The connection is lost, or nobody watches: the next round asks about everybody.
    mutating func forget() {
        snapshot = nil
        remaining = []
        isInRound = false
    }

    mutating func step(_ list: inout WatchList) throws(PostgresError) -> Step {
        let started = ContinuousClock.now
        defer { worked += ContinuousClock.now - started }
        if list.hasUnread { return .progress(try read(&list)) }
        if !remaining.isEmpty {
            try askNext(&list)
            return .progress([])
        }
        if isInRound {
            let rest = min(worked * Watcher.restPerWork, WatchPoll.longestRest)
            nextRoundAt = started + max(configuration.changesPoll, rest)
            isInRound = false
            worked = .zero
        }
        guard started >= nextRoundAt else { return .rest(until: nextRoundAt) }
        try beginRound(&list)
        return .progress([])
    }

    /// A statement of ours is short, so its deadline is that of any request: who came after it began has a later one.
    private func deadline() -> () -> ContinuousClock.Instant? {
        let deadline = ContinuousClock.now + configuration.requestTimeout
        return { deadline }
    }

    private mutating func beginRound(_ list: inout WatchList) throws(PostgresError) {
        let clock = try session.query(.pollClock, deadline: deadline())
        let now = Instant(microsecondsSince1970: try clock.timestamp(0, 0))
        let seen = clock.text(0, 2)
        // Null where somebody has deleted the only row.
        let revision = clock.isNull(0, 1) ? nil : try clock.int32(0, 1)
        if planRevision != revision {
            if planRevision != nil { list.markAllUnread() }
            planRevision = revision
        } else {
            list.markUnread(list.due(at: now))
        }
        if snapshot != seen { remaining = list.fingerprints[...] }
        snapshot = seen
        isInRound = true
    }

    private mutating func askNext(_ list: inout WatchList) throws(PostgresError) {
        let asked = remaining.prefix(Watcher.portion)
        let first = asked.startIndex
        var parameters = Parameters()
        parameters.appendUUIDs(count: asked.count) { (asked[first + $0].user.high, asked[first + $0].user.low) }
        parameters.appendTexts(count: asked.count) { asked[first + $0].fingerprint }
        let changed = try session.query(.pollWatchedUsers, parameters, deadline: deadline())
        list.markUnread((0..<changed.rowCount).map { asked[first + changed.ordinal($0, 0)].user })
        remaining = remaining.dropFirst(asked.count)
    }

    private mutating func read(_ list: inout WatchList) throws(PostgresError) -> [Publication] {
        let taken = list.takeUnread(atMost: Watcher.portion)
        guard !taken.isEmpty else { return [] }
        do throws(PostgresError) {
            return try read(taken[...], &list)
        } catch {
            list.putBack(taken)
            throw error
        }
    }

    /// One bad row must not fail its neighbours: when the statement is refused for a row's sake, halves are tried.
    private mutating func read(
        _ taken: ArraySlice<(user: UserID, period: String)>,
        _ list: inout WatchList
    ) throws(PostgresError) -> [Publication] {
        let first = taken.startIndex
        var parameters = Parameters()
        parameters.appendUUIDs(count: taken.count) { (taken[first + $0].user.high, taken[first + $0].user.low) }
        parameters.appendTexts(count: taken.count) { taken[first + $0].period }
        parameters.append(text: configuration.unknownUsers.rawValue)
        let result: QueryResult
        do throws(PostgresError) {
            result = try session.query(.readWatchedUsers, parameters, deadline: deadline())
        } catch let error where error.isAboutOneRow && taken.count > 1 {
            let middle = first + taken.count / 2
            return try read(taken[..<middle], &list) + read(taken[middle...], &list)
        } catch let error where error.isAboutOneRow {
            fail(taken[first].user, error, &list)
            return []
        }
        if result.rowCount > 0, let revision = UsageSnapshotRow(result, row: 0).planRevision,
            catalog.revision != revision
        {
            catalog = PlanCatalog(try session.query(.readPlans, deadline: deadline()))
        }
        var publications: [Publication] = []
        for index in 0..<result.rowCount {
            let row = UsageSnapshotRow(result, row: index)
            let user = taken[first + row.ordinal].user
            do throws(PostgresError) {
                let snapshot = try row.standingWithRenewal(catalog)
                let reading = WatchList.Reading(
                    snapshot: snapshot,
                    fingerprint: result.text(index, 17),
                    changesAt: try WatchPoll.changesAt(result, index, snapshot)
                )
                publications += list.learn(user, reading)
            } catch {
                fail(user, error, &list)
            }
        }
        return publications
    }

    private func fail(_ user: UserID, _ error: PostgresError, _ list: inout WatchList) {
        invalidValues.record(error)
        list.fail(user, error.isAboutInvalidValue ? .invalidValue(error) : .unreadableRow)
    }

    private static func changesAt(
        _ result: QueryResult,
        _ row: Int,
        _ snapshot: UsageSnapshot
    ) throws(PostgresError) -> Instant? {
        let said = result.isNull(row, 14) ? nil : Instant(microsecondsSince1970: try result.timestamp(row, 14))
        // What time has changed already is in the snapshot: looking again at once would find the same.
        return [said, snapshot.nextTrialDayAt].compactMap(\.self).filter { $0 > snapshot.observedAt }.min()
    }
}

extension PreparedQuery {
    static let pollClock = PreparedQuery(name: "poll_clock", sql: EmbeddedSQL.pollClock)
    static let pollWatchedUsers = PreparedQuery(name: "poll_watched_users", sql: EmbeddedSQL.pollWatchedUsers)
    static let readWatchedUsers = PreparedQuery(name: "read_watched_users", sql: EmbeddedSQL.readWatchedUsers)
    static let readPlans = PreparedQuery(name: "read_plans", sql: EmbeddedSQL.readPlans)
}
