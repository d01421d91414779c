import Postgres
import Usage

/// Executes unbatched requests: operators' changes, and reads of past periods.
struct UnbatchedExecutor {
    private let laneConnection: LaneConnection
    private let sender: ExactlyOnceSender
    private let unknownUsersPolicy: UnknownUsersPolicy
    private let errors: DatabaseErrors
    private let locks: RowLocks
    private let forgettings = Forgettings()
    private let wake: WakePipe

    init(
        sender: ExactlyOnceSender,
        errors: DatabaseErrors,
        locks: RowLocks,
        unknownUsersPolicy: UnknownUsersPolicy,
        wake: WakePipe
    ) {
        self.sender = sender
        self.wake = wake
        self.errors = errors
        self.locks = locks
        self.unknownUsersPolicy = unknownUsersPolicy
        laneConnection = sender.laneConnection
    }

    /// Executes the request and answers it.
    ///
    /// - Returns: nil; or, if the request had no effect and must be executed later, the answer if its deadline passes
    ///   before that.
    func execute(_ request: UnbatchedRequest) -> EngineError? {
        let pending = PendingUnbatchedRequest(request)
        let user = request.user
        let deadline = request.deadline.instant
        switch request.operation {
        case .usageInPeriod(let period, let parts):
            read(for: pending, deadline: deadline) { connection throws(PostgresError) in
                try usage(of: user, in: period, parts, on: connection, deadline: deadline)
            }
        case .allowances(let period):
            read(for: pending, deadline: deadline) { connection throws(PostgresError) in
                try allowances(of: user, in: period, on: connection, deadline: deadline)
            }
        case .history(let count):
            read(for: pending, deadline: deadline) { connection throws(PostgresError) in
                .periodUsages(try history(of: user, count, on: connection, deadline: deadline))
            }
        case .change(let change, let author):
            let statement = ChangeStatement(
                user: user,
                change: change,
                author: author,
                unknownUsersPolicy: unknownUsersPolicy
            )
            return make(statement, for: pending, deadline: deadline)
        }
        return nil
    }

    /// The users whose request had to wait and can be executed now.
    func readyUsers() -> [UserID] { forgettings.finishedUsers() }

    private func deliver(_ outcome: Outcome, to pending: PendingUnbatchedRequest) {
        sender.delivery.deliver([pending.completion(outcome)])
    }

    private func bucket(of pending: PendingUnbatchedRequest) -> Bucket {
        laneConnection.buckets.bucket(of: pending.request.user)
    }

    private func read(
        for pending: PendingUnbatchedRequest,
        deadline: ContinuousClock.Instant,
        _ read: (DatabaseConnection) throws(PostgresError) -> Outcome
    ) {
        let reply = sender.read(pending, in: bucket(of: pending), afterEffect: false) {
            connection throws(PostgresError) in
            try readWhileNobodyMoves(on: connection, deadline: deadline) { () throws(PostgresError) in
                try read(connection)
            }
        }
        switch reply {
        case .value(let outcome): deliver(outcome, to: pending)
        case .allExpired, .effectLost: break
        case .rejected(let error): deliver(.failure(errors.engineError(for: error)), to: pending)
        }
    }

    // MARK: Changes

    /// Makes the change once, and then reads its answer.
    private func make(
        _ statement: ChangeStatement,
        for pending: PendingUnbatchedRequest,
        deadline: ContinuousClock.Instant
    ) -> EngineError? {
        // The function that makes the change finds the user's rows itself. The bucket is only the receipt's.
        let bucket = bucket(of: pending)
        // A FORGET also changes tables of customers, which a distributed database has on the coordinator alone.
        if case .forget = statement.change, let options = laneConnection.coordinatorOptions {
            return forget(for: pending, by: statement.author, over: options)
        }
        let made = sender.executeOnce(nil, in: bucket, pending) { attempt throws(PostgresError) in
            let (isRepeated, commit) = try statement.execute(attempt, deadline: deadline)
            return .committed(isRepeated, isUnreplicated: commit.isUnreplicated)
        }
        switch made {
        case .value(let isRepeated):
            answerChange(statement, isRepeated: isRepeated, for: pending, bucket, deadline: deadline)
        case .allExpired, .someExpired:
            break
        case .rejected(let error):
            if isLocked(pending.request.user, error) { return .busy }
            deliver(.failure(errors.engineError(for: error, refusing: statement.change)), to: pending)
        }
        return nil
    }

    /// Starts a FORGET on the coordinator, or delivers its outcome.
    ///
    /// - Returns: the answer if its deadline passes first; nil once it is answered.
    private func forget(
        for pending: PendingUnbatchedRequest,
        by author: ChangeAuthor?,
        over options: ConnectionOptions
    ) -> EngineError? {
        let request = pending.request
        guard let forgetting = forgettings[request.returnAddress] else {
            forgettings.start(
                Forgetting(request.user, by: author, over: options, until: request.deadline.instant, wake),
                for: request
            )
            return .unknown
        }
        guard let outcome = forgetting.outcome else { return .unknown }
        forgettings.remove(request.returnAddress)
        switch outcome {
        case .made: deliver(.done, to: pending)
        case .failed(let error): sender.delivery.fail(pending, error)
        case .refused(let error):
            deliver(.failure(errors.engineError(for: error, refusing: .forget)), to: pending)
        }
        return nil
    }

    /// Whether a change was refused because another session has locked the user's rows.
    private func isLocked(_ user: UserID, _ error: PostgresError) -> Bool {
        guard error.kind == .server(.lockNotAvailable) else { return false }
        sender.metrics.add(1, to: .lockTimeouts)
        return laneConnection.waitsBriefly || locks.locked(among: [user])?.contains(user) == true
    }

    private func answerChange(
        _ statement: ChangeStatement,
        isRepeated: Bool,
        for pending: PendingUnbatchedRequest,
        _ bucket: Bucket,
        deadline: ContinuousClock.Instant
    ) {
        let reply = sender.read(pending, in: bucket, afterEffect: true) { connection throws(PostgresError) in
            try readWhileNobodyMoves(on: connection, deadline: deadline) { () throws(PostgresError) in
                try outcome(of: statement, isRepeated: isRepeated, on: connection, deadline: deadline)
            }
        }
        switch reply {
        case .value(let outcome): deliver(outcome, to: pending)
        case .allExpired: break
        case .effectLost: sender.delivery.fail(pending, .unknown)
        // The change is committed under its number; the database has refused the read after it.
        case .rejected(let error): sender.delivery.fail(pending, errors.engineErrorAfterEffect(for: error))
        }
    }

    /// - Parameter isRepeated: whether the change was made before, under its key, and not now.
    private func outcome(
        of statement: ChangeStatement,
        isRepeated: Bool,
        on connection: DatabaseConnection,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> Outcome {
        let user = statement.user
        if case .forget = statement.change { return .done }
        var shown = try snapshot(of: user, on: connection, deadline: deadline)
        if case .resetUsage(let period?, _) = statement.change, shown.period != period {
            guard let past = try pastUsage(of: user, in: period, on: connection, deadline: deadline) else {
                return .failure(.noSuchPeriod)
            }
            shown = past
        }
        shown = try charging(statement.change.parts, shown, of: user, on: connection, deadline: deadline)
        return .answer(Answer(user: user, status: .ok, snapshot: shown, isRepeated: isRepeated))
    }

    // MARK: Reads

    /// Reads again if users have moved to other buckets meanwhile, as `ReadPath` does.
    private func readWhileNobodyMoves<Value>(
        on connection: DatabaseConnection,
        deadline: ContinuousClock.Instant,
        _ read: () throws(PostgresError) -> Value
    ) throws(PostgresError) -> Value {
        while true {
            let map = laneConnection.buckets
            let value = try read()
            // A map with one bucket is settled, too, until a division begins.
            if map.isSettled, !map.isSingle { return value }
            guard try connection.currentBuckets(deadline: deadline).revision != map.revision else { return value }
            try refreshBuckets(map, connection)
        }
    }

    private func refreshBuckets(_ map: BucketMap, _ connection: DatabaseConnection) throws(PostgresError) {
        laneConnection.refreshBuckets(seen: map.revision)
        guard connection.isUsable else { throw PostgresError(.connectionLost, "the map of buckets was not read") }
    }

    private func snapshot(
        of user: UserID,
        on connection: DatabaseConnection,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> UsageSnapshot {
        let map = laneConnection.buckets
        // No period is expected: the row is looked up by the user's present entitlement.
        let parameters = ReadBatchStatement.parameters(
            in: map.bucket(of: user),
            count: 1,
            unknownUsersPolicy,
            hasDetails: true,
            user: { _ in user },
            periodLabel: { _ in "" }
        )
        let result = try connection.query(EmbeddedSQL.readBatch, parameters, deadline: deadline)
        guard result.rowCount == 1 else { throw PostgresError(.connectionLost, "a usage snapshot was not found") }
        guard try result.bucketsRevision() == map.revision else {
            // The statement may have looked for the user in another bucket.
            try refreshBuckets(map, connection)
            return try snapshot(of: user, on: connection, deadline: deadline)
        }
        let snapshots = try DetailedSnapshotDecoder(result)
        laneConnection.refreshCatalog(ifOlderThan: snapshots.planRevision)
        laneConnection.noteWords(result.wordsRevision)
        return try snapshots.snapshot(0, laneConnection.catalog)
    }

    /// Reads the row of the period, which another period may have succeeded; nil if there is no row.
    private func pastUsage(
        of user: UserID,
        in period: BillingPeriod,
        on connection: DatabaseConnection,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> UsageSnapshot? {
        var parameters = Parameters()
        parameters.append(uuid: (user.high, user.low))
        parameters.append(text: period.label)
        let result = try connection.query(EmbeddedSQL.readPeriod, parameters, deadline: deadline)
        guard result.rowCount == 1 else { return nil }
        let snapshots = try UsageSnapshotDecoder(result)
        laneConnection.refreshCatalog(ifOlderThan: snapshots.planRevision(0))
        laneConnection.noteWords(result.wordsRevision)
        return try snapshots.snapshot(0, laneConnection.catalog)
    }

    private func usage(
        of user: UserID,
        in period: BillingPeriod,
        _ parts: MessageParts?,
        on connection: DatabaseConnection,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> Outcome {
        guard let past = try pastUsage(of: user, in: period, on: connection, deadline: deadline) else {
            return .failure(.noSuchPeriod)
        }
        let now = try snapshot(of: user, on: connection, deadline: deadline)
        let shown = now.period == period ? now : past
        return .answer(
            try charging(parts, shown, of: user, on: connection, deadline: deadline).usage(of: user)
        )
    }

    /// Adds the usage of parts to a snapshot.
    private func charging(
        _ parts: MessageParts?,
        _ snapshot: UsageSnapshot,
        of user: UserID,
        on connection: DatabaseConnection,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> UsageSnapshot {
        guard let parts else { return snapshot }
        let wanted = PartID.all(of: parts, snapshot.plan).map {
            (user: user, key: PartKey(period: snapshot.period, id: $0))
        }
        let parameters = ReadPartsStatement.parameters(wanted, in: laneConnection.buckets.bucket(of: user))
        let result = try connection.query(EmbeddedSQL.readParts, parameters, deadline: deadline)
        let stored = try ReadPartsStatement.parts(result, of: wanted)[user] ?? [:]
        var (shown, counters) = (snapshot, Optional(UserParts(stored, in: snapshot.period)))
        return shown.charging(parts, &counters) { $0 }
    }

    private func allowances(
        of user: UserID,
        in period: BillingPeriod?,
        on connection: DatabaseConnection,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> Outcome {
        let now = try snapshot(of: user, on: connection, deadline: deadline)
        var parameters = Parameters()
        parameters.append(int16: laneConnection.buckets.bucket(of: user))
        parameters.append(uuid: (user.high, user.low))
        parameters.append(text: (period ?? now.period).label)
        let result = try connection.query(EmbeddedSQL.readAllowances, parameters, deadline: deadline)
        return .allowances(
            period ?? now.period,
            try result.rows { row throws(PostgresError) in try ReportedAllowance(row) }
        )
    }

    private func history(
        of user: UserID,
        _ periods: Int,
        on connection: DatabaseConnection,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> [PeriodUsage] {
        var parameters = Parameters()
        parameters.append(uuid: (user.high, user.low))
        parameters.append(int32: Int32(periods))
        let result = try connection.query(EmbeddedSQL.readHistory, parameters, deadline: deadline)
        return try result.rows { row throws(PostgresError) in
            PeriodUsage(
                user: user,
                period: try row.period("billing_period"),
                used: try row.count("message_count", of: .messageCount),
                limit: try row.countOrNil("limit", of: .limit),
                tier: try row.tier("tier")
            )
        }
    }
}

extension OperatorChange {
    /// The parts that the change is about; nil for one about the user.
    fileprivate var parts: MessageParts? {
        switch self {
        case .resetUsage(_, let parts), .closeWindow(let parts): parts
        case .setPlan, .grant, .forget: nil
        }
    }
}

extension ReportedAllowance {
    /// Decodes a row of `read_allowances.sql`.
    fileprivate init(_ row: ResultRow) throws(PostgresError) {
        func source(_ name: String) -> StoredColumn { StoredColumn(PartCounter.table, name) }
        self.init(
            kind: PlanLimit.Kind(rawValue: try row.text("kind")) ?? .model,
            name: try row.text("name"),
            label: try row.textOrNil("label"),
            used: try row.count("used", of: source("used")),
            held: try row.count("held", of: source("held")),
            limit: try row.countOrNil("limit", of: source("limit")),
            tier: try row.tier("tier"),
            windowLimit: try row.countOrNil("window_limit", of: source("window_limit")),
            windowUsed: try row.countOrNil("window_used", of: source("window_used")),
            windowHeld: try row.countOrNil("window_held", of: source("window_held")),
            windowResetsAt: try row.instantOrNil("window_resets_at", of: PartCounter.table),
            weight: try row.int32("weight"),
            fallback: try row.textOrNil("fallback")
        )
    }
}
