import Logging
import Postgres
import Usage

/// Polls the database for changes, a batch of users at a time, so that users of new subscriptions are read between two
/// batches.
struct ChangePoll {
    enum Step {
        /// Something was read, and there may be more.
        case progress([Publication])
        /// There is nothing to do before this instant.
        case rest(until: ContinuousClock.Instant)
    }

    private let session: ReconnectingSession<Void>
    private let configuration: EngineConfiguration
    private let words: CurrentWords
    private let invalidValues: InvalidValueLog
    private let logger: Logger
    private var catalog = PlanCatalog.empty
    /// The transactions that were visible when the last round began (`pg_current_snapshot`); nil before the first
    /// round.
    private var snapshot: String?
    private var planRevision: Int?
    /// The users that this round has not compared yet.
    private var remaining: ArraySlice<(user: UserID, fingerprint: String)> = []
    private var isInRound = false
    /// The number of users in the next statement. It is halved after one that took too long, and grows after fast ones.
    private var size = ChangePublisher.batchMaximum
    /// The publications of users that were read before an error.
    private var unpublished: [Publication] = []
    private var nextRoundAt = ContinuousClock.now
    /// The time spent on statements since the last rest.
    private var worked = Duration.zero
    /// The longest rest. Changes are published within about twice this time, whatever the number of users.
    private static let longestRest = Duration.seconds(1)

    static let statements: [PreparedQuery] = [
        .pollClock, .pollSubscribedUsers, .readSubscribedUsers, .pollDistributedUsers, .readDistributedUsers,
        .readPlans,
    ]

    init(
        session: ReconnectingSession<Void>,
        configuration: EngineConfiguration,
        words: CurrentWords,
        invalidValues: InvalidValueLog,
        logger: Logger
    ) {
        self.session = session
        self.configuration = configuration
        self.words = words
        self.invalidValues = invalidValues
        self.logger = logger
    }

    /// Lets the next round compare all users, because the connection is lost, or there are no subscribers.
    mutating func reset() {
        snapshot = nil
        remaining = []
        isInRound = false
    }

    private var isDistributed: Bool { configuration.database.isDistributed }

    mutating func step(_ list: inout ChangeSubscriberList) throws(PostgresError) -> Step {
        let started = ContinuousClock.now
        defer { worked += ContinuousClock.now - started }
        if list.hasStale {
            try read(&list)
            defer { unpublished = [] }
            return .progress(unpublished)
        }
        if !remaining.isEmpty {
            try compareNext(&list)
            return .progress([])
        }
        if isInRound {
            let rest = min(worked * ChangePublisher.restPerWork, ChangePoll.longestRest)
            nextRoundAt = started + max(configuration.changesPoll, rest)
            isInRound = false
            worked = .zero
        }
        guard started >= nextRoundAt else { return .rest(until: nextRoundAt) }
        try beginRound(&list)
        return .progress([])
    }

    /// The deadline of a statement: that of a request which arrives now, because these statements are as short.
    private func deadline() -> () -> ContinuousClock.Instant? {
        let deadline = ContinuousClock.now + configuration.requestTimeout
        return { deadline }
    }

    private mutating func beginRound(_ list: inout ChangeSubscriberList) throws(PostgresError) {
        let clock = try session.query(.pollClock, deadline: deadline()).firstRow
        let now = try clock.instant("observed_at")
        let visible = try clock.text("snapshot")
        // The revision is null if an operator has deleted the only row.
        let revision = try clock.int32OrNil("plan_revision")
        refreshWords(seen: try clock.int32OrNil("words_revision"))
        if planRevision != revision {
            if planRevision != nil { list.markAllStale() }
            planRevision = revision
        } else {
            list.markStale(list.due(at: now))
        }
        // In a distributed database the snapshot is the coordinator's, and other servers write the rows.
        if snapshot != visible || isDistributed { remaining = list.fingerprints[...] }
        snapshot = visible
        isInRound = true
    }

    /// Reads the words if necessary. Messages of subscriptions are written with words of this round, or newer ones.
    private func refreshWords(seen revision: Int?) {
        guard let seen = revision.map({ Int32(clamping: $0) }), words.isOutdated(seen),
            let connection = session.connection
        else { return }
        do throws(PostgresError) {
            try words.refresh(seen: seen, over: connection, timeout: configuration.requestTimeout, logger)
        } catch {
            logger.warning("words could not be read; messages have the last ones", metadata: ["error": "\(error)"])
        }
    }

    private mutating func compareNext(_ list: inout ChangeSubscriberList) throws(PostgresError) {
        let started = ContinuousClock.now
        let batch = remaining.prefix(size)
        let first = batch.startIndex
        var parameters = Parameters()
        parameters.appendUUIDs(count: batch.count) { (batch[first + $0].user.high, batch[first + $0].user.low) }
        parameters.appendTexts(count: batch.count) { batch[first + $0].fingerprint }
        let query = isDistributed ? PreparedQuery.pollDistributedUsers : .pollSubscribedUsers
        let changed: QueryResult
        do throws(PostgresError) {
            changed = try session.query(query, parameters, deadline: deadline())
        } catch {
            return try shrink(batch.count, after: error)
        }
        grow(after: batch.count, since: started)
        list.markStale((0..<changed.rowCount).map { batch[first + changed.ordinal($0, 0)].user })
        remaining = remaining.dropFirst(batch.count)
    }

    /// Halves the size after a statement of this many users has failed, if it took too long.
    ///
    /// - Throws: the error, unless the next statement may follow over the same connection.
    private mutating func shrink(_ count: Int, after error: PostgresError) throws(PostgresError) {
        guard error.isAboutTime else { throw error }
        size = max(1, count / 2)
        guard count > 1, session.connection?.isUsable == true else { throw error }
    }

    /// Doubles the size after a statement that was so short that one with twice as many users does not take too long.
    private mutating func grow(after count: Int, since started: ContinuousClock.Instant) {
        guard count >= size, ContinuousClock.now - started < configuration.requestTimeout / 4 else { return }
        size = min(size * 2, ChangePublisher.batchMaximum)
    }

    private mutating func read(_ list: inout ChangeSubscriberList) throws(PostgresError) {
        let started = ContinuousClock.now
        let taken = list.takeStale(atMost: size)
        guard !taken.isEmpty else { return }
        do throws(PostgresError) {
            try read(taken[...], &list)
            grow(after: taken.count, since: started)
        } catch {
            if taken.count == 1, error.kind == .server(.queryCanceled) {
                // The other users go on. If this one has subscribers, the next round finds the change again.
                return list.fail(taken[0].user, .late)
            }
            list.putBack(taken)
            try shrink(taken.count, after: error)
        }
    }

    /// If the statement fails because of one row, tries halves, so that the other rows are read.
    private mutating func read(
        _ taken: ArraySlice<(user: UserID, period: String)>,
        _ list: inout ChangeSubscriberList
    ) throws(PostgresError) {
        let first = taken.startIndex
        var parameters = Parameters()
        parameters.appendUUIDs(count: taken.count) { (taken[first + $0].user.high, taken[first + $0].user.low) }
        parameters.appendTexts(count: taken.count) { taken[first + $0].period }
        parameters.append(text: configuration.unknownUsersPolicy.rawValue)
        let result: QueryResult
        do throws(PostgresError) {
            let query = isDistributed ? PreparedQuery.readDistributedUsers : .readSubscribedUsers
            result = try session.query(query, parameters, deadline: deadline())
        } catch let error where error.isAboutOneRow && taken.count > 1 {
            let middle = first + taken.count / 2
            try read(taken[..<middle], &list)
            return try read(taken[middle...], &list)
        } catch let error where error.isAboutOneRow {
            return fail(taken[first].user, error, &list)
        }
        let snapshots = try DetailedSnapshotDecoder(result)
        if let revision = snapshots.planRevision, catalog.revision != revision {
            catalog = try PlanCatalog(session.query(.readPlans, deadline: deadline()))
        }
        let (fingerprint, changesAt) = (try result.column("fingerprint"), try result.column("changes_at"))
        for index in 0..<result.rowCount {
            let user = taken[first + snapshots.index(index)].user
            do throws(PostgresError) {
                let snapshot = try snapshots.snapshot(index, catalog)
                let observation = ChangeSubscriberList.Observation(
                    snapshot: snapshot,
                    fingerprint: result.text(index, fingerprint),
                    changesAt: try ChangePoll.nextChange(after: snapshot, result, index, changesAt)
                )
                unpublished += list.update(user, observation)
            } catch {
                fail(user, error, &list)
            }
        }
    }

    private func fail(_ user: UserID, _ error: PostgresError, _ list: inout ChangeSubscriberList) {
        invalidValues.record(error)
        list.fail(user, error.isAboutInvalidValue ? .invalidValue(error) : .unreadableRow)
    }

    private static func nextChange(
        after snapshot: UsageSnapshot,
        _ result: QueryResult,
        _ row: Int,
        _ column: Int
    ) throws(PostgresError) -> Instant? {
        let stored =
            result.isNull(row, column) ? nil : Instant(microsecondsSince1970: try result.timestamp(row, column))
        // Earlier changes are in the snapshot already.
        return [stored, snapshot.nextTrialDayAt].compactMap(\.self).filter { $0 > snapshot.observedAt }.min()
    }
}

extension PostgresError {
    fileprivate var isAboutTime: Bool { kind == .timedOut || kind == .server(.queryCanceled) }
}

extension PreparedQuery {
    static let pollClock = PreparedQuery(name: "poll_clock", sql: EmbeddedSQL.pollClock)
    static let pollSubscribedUsers = PreparedQuery(name: "poll_subscribed_users", sql: EmbeddedSQL.pollSubscribedUsers)
    static let readSubscribedUsers = PreparedQuery(name: "read_subscribed_users", sql: EmbeddedSQL.readSubscribedUsers)
    static let pollDistributedUsers = PreparedQuery(
        name: "poll_distributed_users",
        sql: EmbeddedSQL.pollDistributedUsers
    )
    static let readDistributedUsers = PreparedQuery(
        name: "read_distributed_users",
        sql: EmbeddedSQL.readDistributedUsers
    )
    static let readPlans = PreparedQuery(name: "read_plans", sql: EmbeddedSQL.readPlans)
}
