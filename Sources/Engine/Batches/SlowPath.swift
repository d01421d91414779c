import Postgres
import Usage

/// The slow path: one transaction in two round trips. The first locks the users and reads what decides their requests,
/// Swift decides each request in its order (`UserTransaction`), and the second writes what has changed and commits.
extension BatchExecutor {
    /// The most users in one transaction. Each costs the database several times what a counted one does, and is locked
    /// meanwhile.
    private static let slowPathUsersMaximum = 128

    /// Answers all groups.
    mutating func perform(_ groups: ArraySlice<Batch.UserRequests>, of batch: inout Batch, deliver: Deliver) {
        var rest = groups
        while !rest.isEmpty {
            performTogether(rest.prefix(BatchExecutor.slowPathUsersMaximum), of: &batch, deliver: deliver)
            rest = rest.dropFirst(BatchExecutor.slowPathUsersMaximum)
        }
    }

    private mutating func performTogether(
        _ groups: ArraySlice<Batch.UserRequests>,
        of batch: inout Batch,
        deliver: Deliver
    ) {
        let statement = LockUsersStatement(groups, of: batch, unknownUsersPolicy)
        let reply = sender.execute(.perform, groups, of: &batch, deliver: deliver) {
            attempt,
            batch throws(PostgresError) in
            try perform(statement, attempt, groups, of: &batch, deliver: deliver)
        }
        switch reply {
        case .value(.results(let results)):
            answer(results, groups, of: batch, deliver: deliver)
        case .value(.hasNewUsers(let new)):
            performTogether(groups.filter { !new.contains($0.user) }[...], of: &batch, deliver: deliver)
            performTogether(groups.filter { new.contains($0.user) }[...], of: &batch, deliver: deliver)
        case .allExpired:
            break
        case .someExpired:
            execute(Batch(batch.unexpired(groups)), deliver: deliver)
        case .rejected(let error):
            _ = isolate(groups, error, of: &batch, deliver: deliver) { executor, part, batch in
                executor.performTogether(part, of: &batch, deliver: deliver)
                return []
            }
        }
    }

    private enum Execution {
        /// Of each request, in the order of the groups; nil if an earlier attempt was committed, and what it has stored
        /// cannot be read.
        case results([SlowPathResult]?)
        /// Nothing was executed: these users have no subscriber yet, and are to be executed apart. A session that waits
        /// for another one to create a subscriber must not hold locks of other users
        /// (docs/decisions/0003-lock-order.md).
        case hasNewUsers(Set<UserID>)
    }

    /// One attempt.
    private func perform(
        _ statement: LockUsersStatement,
        _ attempt: ExactlyOnceSender.Attempt,
        _ groups: ArraySlice<Batch.UserRequests>,
        of batch: inout Batch,
        deliver: Deliver
    ) throws(PostgresError) -> ExactlyOnceSender.AttemptResult<Execution> {
        let connection = attempt.connection
        try statement.send(over: connection, lane: attempt.receipt, number: attempt.number)
        let read = try sender.awaitResults(connection, groups, of: &batch, attempt.lateError, deliver: deliver)
        guard let read else { return .allExpired }
        let deadline = batch.nextDeadline(groups)?.instant ?? .now + .seconds(1)
        if let answers = try LockUsersStatement.receiptAnswers(read) {
            try connection.rollBack(deadline: deadline)
            return .committed(.results(results(in: answers, groups, batch)), isUnreplicated: false)
        }
        if !attempt.isRepetition, batch.hasExpired(groups) {
            // A request that was answered "nothing was counted" must not be counted.
            try connection.rollBack(deadline: deadline)
            return .someExpired
        }
        refreshCatalog(try LockUsersStatement.planRevision(read))
        let lockedUsers = try statement.users(read, laneConnection.catalog)
        let new = statement.newUsers(lockedUsers)
        if !attempt.isRepetition, !new.isEmpty, new.count < groups.count {
            try connection.rollBack(deadline: deadline)
            return .rolledBack(.hasNewUsers(new))
        }
        var users = try transactions(statement, read, lockedUsers, groups, connection, deadline: deadline)
        var results: [SlowPathResult] = []
        results.reserveCapacity(users.count)
        for (index, group) in groups.enumerated() {
            for request in batch.requests[group.range] {
                results.append(users[index].decide(request.operation))
            }
        }
        try WriteUsersStatement(users: users).send(
            over: connection,
            lane: attempt.receipt,
            number: attempt.number,
            answers: ReceiptAnswers.text(results)
        )
        let written = try sender.awaitResults(connection, groups, of: &batch, .unknown, deliver: deliver)
        guard let committed = written?.first else { return .allExpired }
        return .committed(.results(results), isUnreplicated: committed.isUnreplicated)
    }

    /// The users as they were read, with the past periods of their keys.
    private func transactions(
        _ statement: LockUsersStatement,
        _ read: [QueryResult],
        _ lockedUsers: [LockedUser],
        _ groups: ArraySlice<Batch.UserRequests>,
        _ connection: Connection,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> [UserTransaction] {
        var keys = try statement.usedKeys(read)
        var pastUsage: [UserID: [BillingPeriod: PastUsage]] = [:]
        var hasPastPeriods = false
        for (group, locked) in zip(groups, lockedUsers) {
            let periods = Set((keys[group.user] ?? [:]).values.map(\.period)).subtracting([locked.snapshot.period])
            for period in periods.sorted(by: { $0.label < $1.label }) {
                hasPastPeriods = true
                pastUsage[group.user, default: [:]][period] = try LockUsersStatement.pastUsage(
                    of: group.user,
                    in: period,
                    over: connection,
                    laneConnection.catalog,
                    deadline: deadline
                )
            }
        }
        if hasPastPeriods {
            // Another instance may have settled a hold in its period's last moment, before these rows were locked.
            keys = try statement.usedKeysAgain(over: connection, deadline: deadline)
        }
        return zip(groups, lockedUsers).map { group, locked in
            UserTransaction(
                group.user,
                locked,
                keys: keys[group.user] ?? [:],
                pastUsage: pastUsage[group.user] ?? [:]
            )
        }
    }

    private func results(
        in answers: String,
        _ groups: ArraySlice<Batch.UserRequests>,
        _ batch: Batch
    ) -> [SlowPathResult]? {
        ReceiptAnswers.results(answers, of: groups.flatMap { batch.requests[$0.range].map(\.user) }) { name in
            do throws(PostgresError) {
                return try laneConnection.catalog.plan(named: name)
            } catch {
                return nil
            }
        }
    }

    private mutating func answer(
        _ results: [SlowPathResult]?,
        _ groups: ArraySlice<Batch.UserRequests>,
        of batch: Batch,
        deliver: Deliver
    ) {
        let requests = groups.flatMap(\.range)
        guard let results, results.count == requests.count else {
            batch.fail(groups, .unknown, metrics, deliver: deliver)
            return
        }
        var completions: [Completion] = []
        completions.reserveCapacity(requests.count)
        var (messages, blocked) = (0, 0)
        for (index, result) in zip(requests, results) {
            let request = batch.requests[index]
            batch.complete(index, result.outcome, into: &completions)
            messages += result.messagesCounted
            guard let answer = result.answer else { continue }
            if case .blocked = answer.status, request.operation.countsOrHolds { blocked += 1 }
            // A commit may be about a past period.
            if !answer.isReplay, !request.operation.isCommit { users.learn(request.user, answer.snapshot) }
        }
        metrics.add(messages, to: .messages)
        metrics.add(blocked, to: .blocked)
        deliverWithDetails(completions, of: batch, deliver: deliver)
    }
}
