import Logging
import Postgres
import Usage

/// Carries a lane's batches: decides which statement asks for which users, and turns what the database says into
/// answers. `ExactlyOnce` sends the statements.
///
/// A user goes one of three ways:
/// - **counted** by the hot statement, which touches one row per user and joins nothing;
/// - **read**, where nothing is to be counted, or where the user was seen to have nothing left;
/// - **performed** on the slow path, where one of the others found no row that could be used as it stood, and for holds
///   and repeated keys.
struct BatchExecutor {
    typealias Deliver = ([Completion]) -> Void

    /// The most users in one statement of the slow path.
    private static let slowPathUsersMaximum = 128

    let link: LaneConnection
    let trips: ExactlyOnce
    let configuration: EngineConfiguration
    let metrics: LaneMetrics
    let invalidValues: InvalidValueLog
    let logger: Logger
    private var users: UserCache

    init(
        link: LaneConnection,
        wake: WakePipe,
        configuration: EngineConfiguration,
        metrics: LaneMetrics,
        invalidValues: InvalidValueLog,
        logger: Logger
    ) {
        self.link = link
        self.configuration = configuration
        self.metrics = metrics
        self.invalidValues = invalidValues
        self.logger = logger
        trips = ExactlyOnce(link: link, wake: wake, metrics: metrics, logger: logger)
        users = UserCache(
            calendarMonth: BillingPeriod(year: 1970, month: 1),
            capacity: UserCache.capacityOfAllLanes / configuration.lanes
        )
    }

    /// Answers every request of a batch. Groups that are done are delivered before slower ones are looked at.
    mutating func carry(_ batch: Batch, deliver: Deliver) {
        if let month = link.takeObservedMonth() { users.observe(month) }
        var batch = batch
        var toCount: [Batch.Group] = []
        var toRead: [Batch.Group] = []
        var toPerform: [Batch.Group] = []
        for group in batch.groups {
            if group.needsSlowPath {
                toPerform.append(group)
            } else if group.consumes == 0 {
                toRead.append(group)
            } else if !users.isExhausted(group.user) {
                toCount.append(group)
            } else if group.keyed != nil {
                // Its key may be known: then it was allowed once, and is told so again.
                toPerform.append(group)
            } else {
                toRead.append(group)
            }
        }
        if !toCount.isEmpty {
            toPerform += count(toCount[...], of: &batch, deliver: deliver)
        }
        if !toRead.isEmpty {
            toPerform += read(toRead[...], of: &batch, deliver: deliver)
        }
        // Each of these users costs the database ten times what a counted one does; in smaller loads nobody waits for
        // hundreds of others.
        toPerform.sort { $0.user < $1.user }
        var rest = toPerform[...]
        while !rest.isEmpty {
            perform(rest.prefix(BatchExecutor.slowPathUsersMaximum), of: &batch, deliver: deliver)
            rest = rest.dropFirst(BatchExecutor.slowPathUsersMaximum)
        }
    }

    // MARK: The fast path

    /// Returns the groups that could not be counted this way.
    private mutating func count(
        _ groups: ArraySlice<Batch.Group>,
        of batch: inout Batch,
        deliver: Deliver
    ) -> [Batch.Group] {
        let known = groups.map { users.known($0.user) }
        let month = users.calendarMonth
        let hasKeys = groups.contains { $0.keyed != nil }
        let trip = trips.run(.count, groups, of: &batch, deliver: deliver) {
            connection,
            lane,
            number throws(PostgresError) in
            var parameters = Parameters(counting: groups, known, month, lane: lane, number: number)
            guard hasKeys else {
                return try connection.send(prepared: PreparedStatement.countBatch.rawValue, parameters)
            }
            parameters.appendKeys(of: groups)
            try connection.send(prepared: PreparedStatement.countKeyedBatch.rawValue, parameters)
        }
        switch trip {
        case .done(let result):
            return settle(counted: result, groups, known, month, of: batch, deliver: deliver)
        case .repeated(let counts):
            let periods = known.map { $0?.entitlement.period ?? month }
            return settleRepeated(counts, groups, periods, of: &batch, deliver: deliver)
        case .gone:
            return []
        case .thinned:
            carry(Batch(batch.unanswered(groups)), deliver: deliver)
            return []
        case .rejected(let error):
            return isolate(groups, error, of: &batch, deliver: deliver) { carrier, half, batch in
                carrier.count(half, of: &batch, deliver: deliver)
            }
        }
    }

    /// - Parameters:
    ///   - known: what was known of each group's user when the batch was sent.
    ///   - month: where users who were not known were expected then.
    private mutating func settle(
        counted result: QueryResult,
        _ groups: ArraySlice<Batch.Group>,
        _ known: [UserCache.Known?],
        _ month: BillingPeriod,
        of batch: Batch,
        deliver: Deliver
    ) -> [Batch.Group] {
        guard let rows = CountedRows(result) else { return Array(groups) }
        let first = groups.startIndex
        var entitlement = known.map { $0?.entitlement }
        var held: [Int: Int] = [:]
        var completions: [Completion] = []
        var messages = 0
        var unanswerable: Set<UserID> = []
        let missing: [Batch.Group]
        do throws(PostgresError) {
            for row in rows.news {
                let ordinal = try row.ordinal(below: groups.count)
                let group = groups[first + ordinal]
                do throws(PostgresError) {
                    entitlement[ordinal] = try learnTerms(
                        row,
                        of: group.user,
                        known[ordinal]?.entitlement.period ?? month
                    )
                    let holds = try row.held()
                    if holds > 0 { held[ordinal] = holds }
                } catch {
                    // Counted, and not to be counted again.
                    invalidValues.record(error)
                    unanswerable.insert(group.user)
                    entitlement[ordinal] = nil
                    messages += group.messages
                    batch.fail(CollectionOfOne(group), .invalidValueAfterwards(error), into: &completions)
                }
            }
            missing = try batch.settle(rows, groups, entitlement, held: held, into: &completions) { group, after in
                users.learnExhaustion(group.user, after)
                messages += group.messages
            }
        } catch {
            deliver(completions)
            failUncertain(groups.filter { !unanswerable.contains($0.user) }[...], error, of: batch, deliver: deliver)
            return []
        }
        metrics.add(messages, to: .messages)
        users.observe(rows.observedAt)
        if groups.contains(where: \.asksForUsage) {
            deliverWithRenewals(completions, of: batch, deliver: deliver)
        } else {
            deliver(completions)
        }
        return unanswerable.isEmpty ? missing : missing.filter { !unanswerable.contains($0.user) }
    }

    /// The entitlement in a row that came because they were not known.
    private mutating func learnTerms(
        _ row: UsageSnapshotRow,
        of user: UserID,
        _ period: BillingPeriod
    ) throws(PostgresError) -> Entitlement {
        refreshCatalog(row.planRevision)
        let entitlement = try row.entitlement(link.catalog, period: period)
        // With plans of another revision than the row's, these entitlement serve this answer alone.
        if let version = try row.termsVersion(), link.catalog.revision == row.planRevision {
            users.learn(user, entitlement, version: version)
        }
        return entitlement
    }

    // MARK: Reading

    /// Returns the groups in which something is to be counted after all.
    private mutating func read(
        _ groups: ArraySlice<Batch.Group>,
        of batch: inout Batch,
        deliver: Deliver
    ) -> [Batch.Group] {
        readStandings(groups, of: &batch, orFail: .unavailable, deliver: deliver) {
            carrier,
            group,
            row,
            snapshot,
            batch,
            completions throws(PostgresError) in
            guard batch.isRefusedThroughout(group, at: snapshot) else { return false }
            // The slow path writes the limit that refuses into the row: an operator's UPDATE of it would be undone by
            // the next message otherwise, and a client that reads the table would show the limit of before.
            let isStale = try row.isStale()
            guard group.consumes == 0 || !isStale else { return false }
            let after = batch.settle(group, from: snapshot, into: &completions)
            carrier.metrics.add(group.consumes, to: .blocked)
            carrier.users.learn(group.user, after)
            return true
        }
    }

    typealias Settle = (
        _ carrier: inout BatchExecutor, _ group: Batch.Group, _ row: UsageSnapshotRow, _ snapshot: UsageSnapshot,
        _ batch: Batch,
        _ completions: inout [Completion]
    ) throws(PostgresError) -> Bool

    /// Reads and settles; returns the groups for which `settle` said false.
    @discardableResult
    mutating func readStandings(
        _ groups: ArraySlice<Batch.Group>,
        of batch: inout Batch,
        orFail failure: EngineError,
        deliver: Deliver,
        settle: Settle
    ) -> [Batch.Group] {
        let first = groups.startIndex
        let trip = trips.read(groups, of: &batch, orFail: failure, deliver: deliver) {
            connection throws(PostgresError) in
            var parameters = Parameters(capacity: 128 + groups.count * 32)
            parameters.appendUUIDs(count: groups.count) {
                let user = groups[first + $0].user
                return (user.high, user.low)
            }
            parameters.appendTexts(count: groups.count) { users.period(of: groups[first + $0].user).label }
            parameters.append(text: configuration.unknownUsers.rawValue)
            try connection.send(prepared: PreparedStatement.readBatch.rawValue, parameters)
        }
        switch trip {
        case .done(let result):
            if result.rowCount > 0 { refreshCatalog(UsageSnapshotRow(result, row: 0).planRevision) }
            var completions: [Completion] = []
            var unsettled: [Batch.Group] = []
            for index in 0..<result.rowCount {
                let row = UsageSnapshotRow(result, row: index)
                let group = groups[first + row.ordinal]
                do throws(PostgresError) {
                    let snapshot = try row.standingWithRenewal(link.catalog)
                    if try !settle(&self, group, row, snapshot, batch, &completions) { unsettled.append(group) }
                } catch {
                    invalidValues.record(error)
                    // "unknown" is for requests that were counted before this.
                    let isCounted = failure == .unknown
                    let error: EngineError = isCounted ? .invalidValueAfterwards(error) : .invalidValue(error)
                    batch.fail(CollectionOfOne(group), error, into: &completions)
                }
            }
            deliver(completions)
            return unsettled
        case .repeated, .gone, .thinned:
            return []
        case .rejected where failure == .unknown:
            fail(groups, failure, of: batch, deliver: deliver)
            return []
        case .rejected(let error):
            return isolate(groups, error, of: &batch, deliver: deliver) { carrier, half, batch in
                carrier.readStandings(half, of: &batch, orFail: failure, deliver: deliver, settle: settle)
            }
        }
    }

    // MARK: The slow path

    private mutating func perform(_ groups: ArraySlice<Batch.Group>, of batch: inout Batch, deliver: Deliver) {
        let requests = groups.flatMap(\.range)
        let arguments = requests.map { PerformArguments(batch.requests[$0].operation) }
        var firsts: [Int32] = []
        var next: Int32 = 1
        for group in groups {
            firsts.append(next)
            next += Int32(group.range.count)
        }
        let start = groups.startIndex
        let trip = trips.run(.perform, groups, of: &batch, deliver: deliver) {
            connection,
            lane,
            number throws(PostgresError) in
            var parameters = Parameters(capacity: 256 + groups.count * 32 + arguments.count * 48)
            parameters.append(uuid: lane.uuid)
            parameters.append(int64: number)
            parameters.appendUUIDs(count: groups.count) {
                let user = groups[start + $0].user
                return (user.high, user.low)
            }
            parameters.appendInt32s(count: firsts.count) { firsts[$0] }
            parameters.appendTexts(count: arguments.count) { arguments[$0].verb }
            parameters.appendInt32s(count: arguments.count) { arguments[$0].messages }
            parameters.appendTexts(count: arguments.count) { arguments[$0].key?.text }
            parameters.appendInt32s(count: arguments.count) { arguments[$0].ttlSeconds }
            parameters.append(text: configuration.unknownUsers.rawValue)
            try connection.send(prepared: PreparedStatement.performBatch.rawValue, parameters)
        }
        switch trip {
        case .done(let result):
            if result.rowCount > 0 { refreshCatalog(UsageSnapshotRow(result, row: 0).planRevision) }
            guard result.rowCount == requests.count else {
                let error = PostgresError.replacedFunction("headroom.perform_batch returned no row for a request")
                failUncertain(groups, error, of: batch, deliver: deliver)
                return
            }
            settle(performed: result, requests, of: batch, deliver: deliver)
        case .gone:
            break
        case .thinned:
            carry(Batch(batch.unanswered(groups)), deliver: deliver)
        case .repeated:
            // perform_batch repeats its own rows; only a counting batch is told from its receipt.
            assertionFailure("a batch on the slow path without rows")
            fail(groups, .unknown, of: batch, deliver: deliver)
        case .rejected(let error):
            _ = isolate(groups, error, of: &batch, deliver: deliver) { carrier, half, batch in
                carrier.perform(half, of: &batch, deliver: deliver)
                return []
            }
        }
    }

    private mutating func settle(
        performed result: QueryResult,
        _ requests: [Int],
        of batch: Batch,
        deliver: Deliver
    ) {
        var completions: [Completion] = []
        var (messages, blocked) = (0, 0)
        for index in 0..<result.rowCount {
            let row = UsageSnapshotRow(result, row: index)
            let request = requests[row.ordinal]
            do throws(PostgresError) {
                let performed = try row.performed(link.catalog)
                batch.settle(request, performed, into: &completions)
                messages += performed.messagesCounted
                if performed.verdict == .blocked, batch.requests[request].operation.asksForMessages { blocked += 1 }
                if !performed.isReplay { users.learn(batch.requests[request].user, performed.snapshot) }
            } catch {
                invalidValues.record(error)
                batch.fail(request, .invalidValueAfterwards(error), into: &completions)
            }
        }
        metrics.add(messages, to: .messages)
        metrics.add(blocked, to: .blocked)
        deliverWithRenewals(completions, of: batch, deliver: deliver)
    }

    func refreshCatalog(_ revision: Int32?) {
        guard let revision else { return }
        // Answers that are committed wait for it.
        link.refreshCatalog(ifOlderThan: revision, deadline: .now + .milliseconds(500))
    }
}

/// A request in the entitlement of `headroom.perform`.
private struct PerformArguments {
    var verb: String
    var messages: Int32 = 0
    var key: MessageKey?
    var ttlSeconds: Int32 = 0

    init(_ operation: EngineOperation) {
        switch operation {
        case .consume(let messages, let key):
            (verb, self.messages, self.key) = ("consume", Int32(messages), key)
        case .reserve(let messages, let key, let ttlSeconds):
            (verb, self.messages, self.key, self.ttlSeconds) = ("reserve", Int32(messages), key, Int32(ttlSeconds))
        case .commit(let key):
            (verb, self.key) = ("commit", key)
        case .release(let key):
            (verb, self.key) = ("release", key)
        case .check(let messages):
            (verb, self.messages) = ("check", Int32(messages))
        case .usage, .usageInPeriod, .history, .setPlan, .grant, .resetUsage, .forget, .attributed:
            verb = "usage"
        }
    }
}
