import Postgres
import Usage

/// The slow path. Most of its users have no usable row, and their messages fit: one statement derives their rows and
/// counts them (`CountPath.countDerived`). The others are decided in one transaction of two round trips. The first
/// locks the users and reads what decides their requests, Swift decides each request in its order (`UserTransaction`),
/// and the second writes what has changed and commits.
struct SlowPath {
    static let countDerived = PreparedQuery(name: "derive_and_count", sql: EmbeddedSQL.deriveAndCount)

    /// The most users in a transaction of two round trips: their rows stay locked while Swift decides.
    private static let usersMaximum = 128

    private let sender: ExactlyOnceSender
    private let isolation: RowErrorIsolation
    private let countPath: CountPath
    private let readPath: ReadPath
    private let laneConnection: LaneConnection
    private let delivery: OutcomeDelivery
    private let metrics: LaneMetrics
    private let unknownUsersPolicy: UnknownUsersPolicy

    init(
        sender: ExactlyOnceSender,
        isolation: RowErrorIsolation,
        countPath: CountPath,
        readPath: ReadPath,
        configuration: EngineConfiguration
    ) {
        self.sender = sender
        self.isolation = isolation
        self.countPath = countPath
        self.readPath = readPath
        laneConnection = sender.laneConnection
        delivery = sender.delivery
        metrics = sender.metrics
        unknownUsersPolicy = configuration.unknownUsersPolicy
    }

    /// Decides and answers the requests of all users.
    ///
    /// - Returns: the requests for a new batch, and the locked ones. There is no next path.
    func decide(_ part: BatchPart, _ users: inout UserCache) -> UnansweredUsers {
        var unanswered = countDerived(part.part(part.groups.filter(\.onlyCounts)), &users)
        let left = (unanswered.forNextPath + part.groups.filter { !$0.onlyCounts }).sorted { $0.user < $1.user }
        unanswered.forNextPath = []
        for portion in SlowPath.portions(of: left[...]) { unanswered += decideTogether(part.part(portion), &users) }
        return unanswered
    }

    private static func portions(of groups: ArraySlice<Batch.UserRequests>) -> [ArraySlice<Batch.UserRequests>] {
        stride(from: groups.startIndex, to: groups.endIndex, by: usersMaximum).map {
            groups[$0..<min($0 + usersMaximum, groups.endIndex)]
        }
    }

    /// Counts the users whose messages fit, and leaves the others. A statement counts only users of one kind, such as
    /// new ones, so the others are sent again while this answers some.
    private func countDerived(_ part: BatchPart, _ users: inout UserCache) -> UnansweredUsers {
        var unanswered = UnansweredUsers()
        var left = part.groups
        var sent = Int.max
        while !left.isEmpty, left.count < sent {
            sent = left.count
            var counted = countPath.countDerived(part.part(left), &users)
            left = counted.forNextPath[...]
            counted.forNextPath = []
            unanswered += counted
        }
        unanswered.forNextPath = Array(left)
        return unanswered
    }

    /// Executes the users in one transaction, or in two if some of them are new and others are not.
    private func decideTogether(_ part: BatchPart, _ users: inout UserCache) -> UnansweredUsers {
        let statement = LockUsersStatement(part, unknownUsersPolicy)
        let reply = sender.executeOnce(.slowPath, in: part.bucket, part) { attempt throws(PostgresError) in
            try transact(statement, part, &attempt)
        }
        switch reply {
        case .value(.results(let results)):
            answerDecided(results, part, &users)
            return UnansweredUsers()
        case .value(.hasNewUsers(let new)):
            let known = part.part(part.groups.filter { !new.contains($0.user) })
            return decideTogether(known, &users)
                + decideTogether(part.part(part.groups.filter { new.contains($0.user) }), &users)
        case .allExpired:
            return UnansweredUsers()
        case .someExpired:
            return UnansweredUsers(forNewBatch: part.unexpired)
        case .rejected(let error):
            return isolation.isolate(part, error) { decideTogether($0, &users) }
        }
    }

    private enum Execution {
        /// The result of each request, in the order of the groups. Nil if an earlier attempt was committed, and its
        /// stored results cannot be read.
        case results([SlowPathResult]?)
        /// Nothing was executed. These users have no subscriber row yet, and are executed apart: a session that waits
        /// for another one to create a subscriber must not hold locks of other users
        /// (docs/decisions/0003-lock-order.md).
        case hasNewUsers(Set<UserID>)
    }

    /// Makes one attempt.
    private func transact(
        _ statement: LockUsersStatement,
        _ part: BatchPart,
        _ attempt: inout ExactlyOnceSender.Attempt
    ) throws(PostgresError) -> ExactlyOnceSender.AttemptResult<Execution> {
        let (groups, connection) = (part.groups, attempt.connection)
        attempt.canCommit = false
        try statement.send(over: connection, lane: attempt.receipt, number: attempt.number)
        guard let read = try sender.awaitResults(connection, part, attempt.lateError) else { return .allExpired }
        let deadline = part.nextDeadline?.instant ?? .now + .seconds(1)
        if let answers = try LockUsersStatement.receiptAnswers(read) {
            try attempt.requireRepetition()
            try connection.rollBack(deadline: deadline)
            return .committed(.results(results(in: answers, part)), isUnreplicated: false)
        }
        laneConnection.refreshCatalog(ifOlderThan: try LockUsersStatement.planRevision(read))
        laneConnection.noteWords(LockUsersStatement.wordsRevision(read))
        let lockedUsers = try statement.users(read, laneConnection.catalog)
        let new = statement.newUsers(lockedUsers)
        if !attempt.isRepetition, !new.isEmpty, new.count < groups.count {
            try connection.rollBack(deadline: deadline)
            return .rolledBack(.hasNewUsers(new))
        }
        var users = try userTransactions(statement, read, lockedUsers, groups, connection, deadline: deadline)
        let wanted = zip(users, groups).flatMap { user, group in
            user.partKeys(of: part.batch.requests[group.range]).map { (user: group.user, key: $0) }
        }
        if !wanted.isEmpty {
            try connection.send(
                prepared: ReadPartsStatement.query.name,
                ReadPartsStatement.parameters(wanted, in: attempt.bucket, areWritten: true)
            )
            guard let parts = try sender.awaitResult(connection, part, attempt.lateError) else { return .allExpired }
            let stored = try ReadPartsStatement.parts(parts, of: wanted)
            for index in users.indices { users[index].parts = stored[users[index].user] ?? [:] }
        }
        if !attempt.isRepetition, part.someExpired {
            // A request that was answered "nothing was counted" must not be counted.
            try connection.rollBack(deadline: part.nextDeadline?.instant ?? .now + .seconds(1))
            return .someExpired
        }
        var results: [SlowPathResult] = []
        results.reserveCapacity(users.count)
        let requests = part.batch.requests
        for (index, group) in groups.enumerated() {
            for request in requests[group.range] {
                results.append(users[index].decide(request.operation, in: request.parts))
            }
        }
        attempt.canCommit = true
        try WriteUsersStatement(users: users).send(
            over: connection,
            in: attempt.bucket,
            lane: attempt.receipt,
            number: attempt.number,
            answers: ReceiptAnswers.text(results)
        )
        guard let committed = try sender.awaitResults(connection, part, .unknown)?.first else { return .allExpired }
        return .committed(.results(results), isUnreplicated: committed.isUnreplicated)
    }

    /// Makes the users of the transaction, as they were read, with the past periods of their keys.
    private func userTransactions(
        _ statement: LockUsersStatement,
        _ read: [QueryResult],
        _ lockedUsers: [LockedUser],
        _ groups: ArraySlice<Batch.UserRequests>,
        _ connection: DatabaseConnection,
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
            // Before these rows were locked, another instance may have settled a hold in the last moment of its period.
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

    private func results(in answers: String, _ part: BatchPart) -> [SlowPathResult]? {
        let users = part.groups.flatMap { part.batch.requests[$0.range].map(\.user) }
        return ReceiptAnswers.results(answers, of: users) { name in
            do throws(PostgresError) {
                return try laneConnection.catalog.plan(named: name)
            } catch {
                return nil
            }
        }
    }

    private func answerDecided(_ results: [SlowPathResult]?, _ part: BatchPart, _ users: inout UserCache) {
        guard let results else {
            delivery.fail(part, .unknown)
            return
        }
        users.planRevision = laneConnection.catalog.revision
        let (requests, batch) = (part.groups.flatMap(\.range), part.batch)
        var completions: [Completion] = []
        completions.reserveCapacity(requests.count)
        var messages = 0
        for (index, result) in zip(requests, results) {
            let request = batch.requests[index]
            batch.complete(index, result.outcome, into: &completions)
            messages += result.messagesCounted
            guard let answer = result.answer else { continue }
            if case .blocked(let reason) = answer.status, request.operation.countsOrHolds { metrics.addBlocked(reason) }
            // A commit may count in a past period, whose snapshot must not be cached.
            if !answer.isRepeated, !request.operation.isCommit { users.learn(request.user, answer.snapshot) }
        }
        metrics.add(messages, to: .messages)
        readPath.deliverWithDetails(completions, of: part, &users)
    }
}

extension Batch.UserRequests {
    /// Whether the requests count messages without a key and without parts; some may also read.
    fileprivate var onlyCounts: Bool { consumes > 0 && keyed == nil && !hasParts }
}
