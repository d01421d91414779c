import Logging
import Postgres
import Usage

/// Executes a lane's batches: chooses the statement for each user, and makes answers of the results.
/// `ExactlyOnceSender` sends the statements.
///
/// A user takes one of three paths:
/// - the **fast path** counts with one statement that touches one row per user and joins nothing (this file);
/// - the **read path** is for users with nothing to count, or with nothing left when last seen (`ReadPath`);
/// - the **slow path** is for users that the other two found no usable row of, for holds and for repeated keys
///   (`SlowPath`).
struct BatchExecutor {
    typealias Deliver = ([Completion]) -> Void

    let laneConnection: LaneConnection
    let sender: ExactlyOnceSender
    let unknownUsersPolicy: UnknownUsersPolicy
    let manageURL: String?
    let metrics: LaneMetrics
    let errors: DatabaseErrors
    let invalidValues: InvalidValueLog
    let logger: Logger
    var users: UserCache

    init(sender: ExactlyOnceSender, errors: DatabaseErrors, configuration: EngineConfiguration) {
        self.sender = sender
        self.errors = errors
        laneConnection = sender.laneConnection
        metrics = sender.metrics
        logger = sender.logger
        invalidValues = errors.invalidValues
        unknownUsersPolicy = configuration.unknownUsersPolicy
        manageURL = configuration.manageURL
        users = UserCache(
            calendarMonth: BillingPeriod(year: 1970, month: 1),
            capacity: UserCache.capacityOfAllLanes / configuration.lanes
        )
    }

    /// Answers every request of a batch. Each path delivers its answers before the next, slower one begins.
    mutating func execute(_ batch: Batch, deliver: Deliver) {
        if let month = laneConnection.takeObservedMonth() { users.observe(month) }
        var batch = batch
        var toCount: [Batch.UserRequests] = []
        var toRead: [Batch.UserRequests] = []
        var toPerform: [Batch.UserRequests] = []
        for group in batch.groups {
            if group.needsSlowPath {
                toPerform.append(group)
            } else if !group.changesUsage {
                toRead.append(group)
            } else if !users.isExhausted(group.user) || group.onlySettlesHolds {
                toCount.append(group)
            } else if group.keyed != nil {
                // The key may have been used while messages were left: then the answer is that of its first use.
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
        if !toPerform.isEmpty {
            toPerform.sort { $0.user < $1.user }
            perform(toPerform[...], of: &batch, deliver: deliver)
        }
    }

    // MARK: The fast path

    /// Where the row of a user that is not cached is looked for. A month may have begun in the previous calendar month.
    private var usualPeriods: [BillingPeriod] {
        [users.calendarMonth] + (users.calendarMonth.previousMonth.map { [$0] } ?? [])
            + laneConnection.catalog.endlessPeriods
    }

    /// Returns the groups that could not be counted.
    private mutating func count(
        _ groups: ArraySlice<Batch.UserRequests>,
        of batch: inout Batch,
        deliver: Deliver
    ) -> [Batch.UserRequests] {
        let cached = groups.map { users.entry(of: $0.user) }
        let statement = CountBatchStatement(groups, cached: cached, usual: usualPeriods)
        let reply = sender.execute(.count, groups, of: &batch, deliver: deliver) {
            attempt,
            batch throws(PostgresError) in
            try sender.count(
                statement.query,
                statement.parameters(lane: attempt.receipt, number: attempt.number),
                attempt,
                groups,
                of: &batch,
                deliver: deliver
            )
        }
        switch reply {
        case .value(.result(let result)):
            return answer(result, statement, of: batch, deliver: deliver)
        case .value(.counted(let users)):
            return answerCounted(users, statement, of: &batch, deliver: deliver)
        case .allExpired:
            return []
        case .someExpired:
            execute(Batch(batch.unexpired(groups)), deliver: deliver)
            return []
        case .rejected(let error):
            return isolate(groups, error, of: &batch, deliver: deliver) { executor, part, batch in
                executor.count(part, of: &batch, deliver: deliver)
            }
        }
    }

    private mutating func answer(
        _ result: QueryResult,
        _ statement: CountBatchStatement,
        of batch: Batch,
        deliver: Deliver
    ) -> [Batch.UserRequests] {
        let groups = statement.groups
        var completions: [Completion] = []
        var messages = 0
        var unreadable: Set<UserID> = []
        let uncounted: [Batch.UserRequests]
        do throws(PostgresError) {
            guard let counted = try CountBatchStatement.Result(result) else { return Array(groups) }
            var entitlements = statement.cached.map { $0?.entitlement }
            var holds: [Int: CountBatchStatement.Holds] = [:]
            if let rows = try counted.userRows() {
                var periodOrdinals = Array(repeating: 0, count: groups.count)
                try counted.forEachCount {
                    if periodOrdinals.indices.contains($0.index) { periodOrdinals[$0.index] = $0.periodOrdinal }
                }
                for row in rows.indices {
                    let index = try rows.index(row, below: groups.count)
                    let group = groups[groups.startIndex + index]
                    let period = try statement.periods.period(periodOrdinals[index])
                    do throws(PostgresError) {
                        entitlements[index] = try learn(rows, row, of: group.user, period)
                        holds[index] = try rows.holds(row)
                    } catch {
                        // Counted, and not to be counted again.
                        invalidValues.record(error)
                        unreadable.insert(group.user)
                        entitlements[index] = nil
                        messages += group.messages
                        batch.fail(CollectionOfOne(group), .invalidValueAfterwards(error), into: &completions)
                    }
                }
            }
            uncounted = try batch.answer(groups, counted, entitlements, holds, into: &completions) {
                users.learnExhaustion($0, $1)
                messages += $2
            }
            users.observe(counted.observedAt)
        } catch {
            deliver(completions)
            failUncertain(groups.filter { !unreadable.contains($0.user) }[...], error, of: batch, deliver: deliver)
            return []
        }
        metrics.add(messages, to: .messages)
        if groups.contains(where: \.hasUsage) {
            deliverWithDetails(completions, of: batch, deliver: deliver)
        } else {
            deliver(completions)
        }
        return unreadable.isEmpty ? uncounted : uncounted.filter { !unreadable.contains($0.user) }
    }

    /// The entitlement in a row that was returned because it was not cached.
    private mutating func learn(
        _ rows: CountBatchStatement.UserRows,
        _ row: Int,
        of user: UserID,
        _ period: BillingPeriod
    ) throws(PostgresError) -> Entitlement {
        let planRevision = rows.entitlements.planRevision(row)
        refreshCatalog(planRevision)
        let entitlement = try rows.entitlements.entitlement(row, laneConnection.catalog, period)
        // With plans of another revision than the row's, it serves this answer only.
        if let version = try rows.version(row), laneConnection.catalog.revision == planRevision {
            users.learn(user, entitlement, version: version)
        }
        return entitlement
    }

    func refreshCatalog(_ revision: Int32?) {
        guard let revision else { return }
        // Answers of committed messages wait for it.
        laneConnection.refreshCatalog(ifOlderThan: revision, deadline: .now + .milliseconds(500))
    }
}

extension Batch {
    func fail(
        _ groups: some Sequence<UserRequests>,
        _ error: EngineError,
        _ metrics: LaneMetrics,
        deliver: BatchExecutor.Deliver
    ) {
        var completions: [Completion] = []
        fail(groups, error, into: &completions)
        metrics.countUnknownOutcomes(completions.count, after: error)
        deliver(completions)
    }
}
