import Postgres
import Usage

/// The fast path: counts with one statement that touches one row per user and joins nothing.
final class CountPath {
    private let sender: ExactlyOnceSender
    private let isolation: RowErrorIsolation
    private let readPath: ReadPath
    private let laneConnection: LaneConnection
    private let delivery: OutcomeDelivery
    private let metrics: LaneMetrics
    private let invalidValues: InvalidValueLog

    init(sender: ExactlyOnceSender, isolation: RowErrorIsolation, readPath: ReadPath) {
        self.sender = sender
        self.isolation = isolation
        self.readPath = readPath
        laneConnection = sender.laneConnection
        delivery = sender.delivery
        metrics = sender.metrics
        invalidValues = isolation.errors.invalidValues
    }

    /// Answers the users that can be counted, and leaves the others to the slow path.
    func count(_ part: BatchPart, _ users: inout UserCache) -> UnansweredUsers {
        users.planRevision = laneConnection.catalog.revision
        let cached = part.groups.map { users.entry(of: $0.user) }
        let hasOutdated = cached.contains { entry in entry.map { users.isOutdated($0) } ?? false }
        guard hasOutdated || part.groups.contains(where: \.hasParts) else { return count(part, cached: cached, &users) }
        let requests = part.batch.requests
        var present: [(group: Batch.UserRequests, entry: UserCache.Entry?)] = []
        var charges: [PartCharge] = []
        var left = UnansweredUsers()
        for (var group, entry) in zip(part.groups, cached) {
            if let entry, !users.isOutdated(entry) {
                if group.hasParts {
                    group.charge(to: entry.entitlement.plan, requests, as: present.count, into: &charges)
                }
                present.append((group, entry))
            } else if entry != nil || group.hasParts {
                // The limits of parts follow from the user's plan, which is not known.
                left.forNextPath.append(group)
            } else {
                present.append((group, nil))
            }
        }
        guard !present.isEmpty else { return left }
        return left + count(part.part(present.map(\.group)), cached: present.map(\.entry), charges: charges, &users)
    }

    /// Answers users without keys whose rows the database has to derive first, and leaves those to the slow path whose
    /// requests have to be decided one by one.
    func countDerived(_ part: BatchPart, _ users: inout UserCache) -> UnansweredUsers {
        count(part, cached: Array(repeating: nil, count: part.groups.count), derives: true, &users)
    }

    private func count(
        _ part: BatchPart,
        cached: [UserCache.Entry?],
        charges: [PartCharge] = [],
        derives: Bool = false,
        _ users: inout UserCache
    ) -> UnansweredUsers {
        let statement = CountBatchStatement(
            part.groups,
            cached: cached,
            charges: charges,
            requests: part.batch.requests,
            planRevision: users.planRevision,
            usual: usualPeriods(users)
        )
        let query = derives ? SlowPath.countDerived : statement.query
        let reply = sender.executeOnce(derives ? .slowPath : .count, in: part.bucket, part) {
            attempt throws(PostgresError) in
            try send(statement, query, part, attempt)
        }
        switch reply {
        case .value(.result(let result)):
            return UnansweredUsers(forNextPath: answerCounted(result, statement, part, &users))
        case .value(.counted(let counted)):
            return UnansweredUsers(forNextPath: answerFromReceipt(counted, statement, part, &users))
        case .allExpired:
            return UnansweredUsers()
        case .someExpired:
            return UnansweredUsers(forNewBatch: part.unexpired)
        case .rejected(let error):
            return isolation.isolate(part, error) { derives ? countDerived($0, &users) : count($0, &users) }
        }
    }

    /// The billing periods in which the row of an uncached user is looked for.
    private func usualPeriods(_ users: UserCache) -> [BillingPeriod] {
        laneConnection.catalog.usualPeriods(on: users.today)
    }

    private enum Reply {
        case result(QueryResult)
        /// A lost connection has counted. The counts come from the receipt.
        case counted([CountedUser])
    }

    /// Makes one attempt. The statement begins and commits its own transaction.
    private func send(
        _ statement: CountBatchStatement,
        _ query: PreparedQuery,
        _ part: BatchPart,
        _ attempt: ExactlyOnceSender.Attempt
    ) throws(PostgresError) -> ExactlyOnceSender.AttemptResult<Reply> {
        let connection = attempt.connection
        let parameters = statement.parameters(
            in: attempt.bucket,
            part.bucketsRevision,
            lane: attempt.receipt,
            number: attempt.number
        )
        try connection.send(prepared: query.name, parameters)
        do throws(PostgresError) {
            guard let result = try sender.awaitResult(connection, part, .unknown) else { return .allExpired }
            return .committed(.result(result), isUnreplicated: result.isUnreplicated)
        } catch {
            guard error.kind == .server(StatementFailure.countedBefore) else { throw error }
            try attempt.requireRepetition()
        }
        guard
            let receipt = try sender.awaitResult(
                of: ReceiptStatement.read,
                connection,
                attempt.bucket,
                part,
                .unknown
            )
        else {
            return .allExpired
        }
        // The sender confirms the lost commit.
        return .committed(.counted(try ReceiptStatement.counts(receipt, number: attempt.number)), isUnreplicated: false)
    }

    // MARK: Answers

    /// Answers with the result of the statement.
    ///
    /// - Returns: the users that were not counted.
    private func answerCounted(
        _ result: QueryResult,
        _ statement: CountBatchStatement,
        _ part: BatchPart,
        _ users: inout UserCache
    ) -> [Batch.UserRequests] {
        let (groups, batch) = (part.groups, part.batch)
        var completions: [Completion] = []
        var messages = 0
        var unreadable: Set<UserID> = []
        let uncounted: [Batch.UserRequests]
        do throws(PostgresError) {
            let counted = try CountBatchStatement.Result(result)
            laneConnection.noteWords(counted.wordsRevision)
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
                        entitlements[index] = try learnEntitlement(rows, row, of: group.user, period, &users)
                        holds[index] = try rows.holds(row)
                    } catch {
                        // The user's requests are counted, so the next path must not count them again.
                        invalidValues.record(error)
                        unreadable.insert(group.user)
                        entitlements[index] = nil
                        messages += group.messages
                        batch.fail(CollectionOfOne(group), .invalidValueAfterwards(error), into: &completions)
                    }
                }
            }
            let parts = try counted.parts(chargedTo: statement.charges, groups: groups.count)
            uncounted = try batch.answer(groups, counted, entitlements, holds, parts, into: &completions) {
                users.learnExhaustion($0, $1)
                messages += $2
            }
            users.observe(counted.observedAt)
        } catch {
            // The batch is counted, but the result does not show which users were. A client that sends a message again
            // with its key gets the message's own answer.
            invalidValues.record(error, as: "what a batch has counted cannot be read")
            delivery.deliver(consume completions)
            delivery.fail(part.part(groups.filter { !unreadable.contains($0.user) }), .unknown)
            return []
        }
        metrics.add(messages, to: .messages)
        if groups.contains(where: \.hasUsage) {
            readPath.deliverWithDetails(completions, of: part, &users)
        } else {
            delivery.deliver(consume completions)
        }
        return unreadable.isEmpty ? uncounted : uncounted.filter { !unreadable.contains($0.user) }
    }

    /// Decodes the entitlement in a row, which the statement returns for an uncached user, and caches it.
    private func learnEntitlement(
        _ rows: CountBatchStatement.UserRows,
        _ row: Int,
        of user: UserID,
        _ period: BillingPeriod,
        _ users: inout UserCache
    ) throws(PostgresError) -> Entitlement {
        let planRevision = rows.entitlements.planRevision(row)
        laneConnection.refreshCatalog(ifOlderThan: planRevision)
        users.planRevision = laneConnection.catalog.revision
        let entitlement = try rows.entitlements.entitlement(row, laneConnection.catalog, period)
        // An entitlement with plans of another revision than the row's is not cached: it serves this answer only.
        if let version = try rows.version(row), laneConnection.catalog.revision == planRevision {
            users.learn(user, entitlement, version: version)
        }
        return entitlement
    }

    // MARK: Answers after a lost reply

    /// Answers a part that was counted, but whose reply was lost with the connection. The receipt has the count of each
    /// user, and the row of a key the `held` and `limit` of its first use. Everything else is read now.
    ///
    /// - Returns: the users that were not counted.
    private func answerFromReceipt(
        _ counts: [CountedUser],
        _ statement: CountBatchStatement,
        _ part: BatchPart,
        _ users: inout UserCache
    ) -> [Batch.UserRequests] {
        let groups = part.groups
        var counted: [Batch.UserRequests] = []
        var rows: [UserID: (period: BillingPeriod, counted: CountedUser)] = [:]
        let charges = Dictionary(grouping: statement.charges) { groups[groups.startIndex + $0.group].user }
        for user in counts.sorted(by: { $0.index < $1.index }) {
            // An index is out of range only if the receipt was edited by hand.
            guard groups.indices.contains(groups.startIndex + user.index),
                let period = try? statement.periods.period(user.periodOrdinal)
            else { continue }
            let group = groups[groups.startIndex + user.index]
            counted.append(group)
            rows[group.user] = (period, user)
        }
        let uncounted = groups.filter { rows[$0.user] == nil }
        metrics.add(counted.reduce(0) { $0 + $1.messages }, to: .messages)
        guard let keys = readPath.readKeys(part.part(counted)) else {
            delivery.fail(part.part(counted), .unknown)
            return uncounted
        }
        let commits = counted.lazy.filter { $0.keyed?.verb == .commit }
        metrics.add(commits.reduce(0) { $0 + (keys[$1.user]?.countedMessages ?? 0) }, to: .messages)
        // The groups are counted, so the answer after a failed read must not be "nothing was counted".
        readPath.readSnapshots(part.part(counted), afterEffect: true, &users) {
            group,
            read,
            batch,
            _,
            completions in
            guard let (period, counted) = rows[group.user] else { return true }
            let key = keys[group.user]
            var snapshot = read.snapshot.snapshot(before: group, counted, in: period, key)
            var parts = read.parts
            for charge in charges[group.user] ?? [] { parts?.takeBack(charge, key?.parts) }
            batch.answer(group, from: &snapshot, keyMessages: key?.messages ?? 0, parts: parts, into: &completions)
            return true
        }
        return uncounted
    }
}

extension UsageSnapshot {
    /// Takes the held messages and the limit from the answer of a key.
    fileprivate mutating func show(_ allowances: Allowances) {
        (held, limit) = (allowances.period.held, allowances.period.limit)
        windowHeld = allowances[.window]?.held ?? 0
    }

    /// Raises limits so that `messages` fit. They were allowed when they were counted, even if an operator has changed
    /// the plan since.
    private mutating func allow(_ messages: Int) {
        denialReason = nil
        guard plan.isEnforced else { return }
        let (periodTaken, windowTaken) = (allowances.period.taken, allowances[.window]?.taken ?? 0)
        if let limit, limit < periodTaken + messages { self.limit = periodTaken + messages }
        if let window, window.limit < windowTaken + messages { self.window?.limit = windowTaken + messages }
    }

    /// Computes the snapshot before a user's requests from this one, which was read after they were counted.
    ///
    /// - Parameters:
    ///   - counted: the user's counts after the requests, in `period`.
    ///   - key: the first use of the group's key; nil if there is none.
    fileprivate func snapshot(
        before group: Batch.UserRequests,
        _ counted: CountedUser,
        in period: BillingPeriod,
        _ key: UsedKey?
    ) -> UsageSnapshot {
        var before = self
        before.used = counted.count - group.messages
        if let windowCount = counted.windowCount { before.windowUsed = windowCount - group.messages }
        if self.period != period {
            // The billing period has changed since. The old period ended where the current one starts.
            before.period = period
            before.held = 0
            before.resetsAt = resetsAt == nil ? observedAt : startedAt
        }
        if let key, let keyed = group.keyed {
            switch keyed.verb {
            case .consume, .reserve: before.show(key.first)
            case .commit: if let commit = key.commit { before.show(commit.allowances) }
            case .release: break
            }
            before.takeBack(keyed, key.messages)
        }
        before.allow(group.messages)
        return before
    }
}
