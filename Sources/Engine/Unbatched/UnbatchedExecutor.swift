import Postgres
import Usage

/// Executes unbatched requests: operators' changes, and reads of past periods.
struct UnbatchedExecutor {
    private let laneConnection: LaneConnection
    private let sender: ExactlyOnceSender
    private let unknownUsersPolicy: UnknownUsersPolicy
    private let errors: DatabaseErrors

    init(sender: ExactlyOnceSender, errors: DatabaseErrors, unknownUsersPolicy: UnknownUsersPolicy) {
        self.sender = sender
        self.errors = errors
        self.unknownUsersPolicy = unknownUsersPolicy
        laneConnection = sender.laneConnection
    }

    func execute(_ request: UnbatchedRequest) -> Completion {
        let user = request.user
        let deadline = request.deadline.instant
        let outcome =
            switch request.operation {
            case .usageInPeriod(let period):
                read(until: deadline) { connection throws(PostgresError) in
                    try usage(of: user, in: period, on: connection, deadline: deadline)
                }
            case .history(let count):
                read(until: deadline) { connection throws(PostgresError) in
                    .periodUsages(try history(of: user, count, on: connection, deadline: deadline))
                }
            case .change(let change, let author):
                execute(
                    ChangeStatement(user: user, change: change, author: author, unknownUsersPolicy: unknownUsersPolicy),
                    until: deadline
                )
            }
        return Completion(returnAddress: request.returnAddress, outcome: outcome)
    }

    /// Runs statements that change nothing, again after each loss.
    private func read(
        until deadline: ContinuousClock.Instant,
        _ read: (Connection) throws(PostgresError) -> Outcome
    ) -> Outcome {
        while let connection = awaitConnection(until: deadline) {
            do throws(PostgresError) {
                return try read(connection)
            } catch {
                switch StatementEffect(of: error) {
                case .unknown, .readOnlyServer, .receiptLost: laneConnection.drop(error)
                case .rolledBack: continue
                case .refused: return .failure(errors.engineError(for: error))
                }
            }
        }
        return .failure(withoutAnswer)
    }

    // MARK: Changes

    /// Makes the change once, as `ExactlyOnceSender` counts a batch once.
    private func execute(_ statement: ChangeStatement, until deadline: ContinuousClock.Instant) -> Outcome {
        var number = laneConnection.nextNumber()
        var receipt = laneConnection.receipt
        var losses = 0
        var rollbacks = 0
        var isMade = false
        while let connection = awaitConnection(until: deadline) {
            if laneConnection.receipt != receipt {
                // The database has lost the receipt: what became of an earlier attempt cannot be found out any more.
                guard losses == 0 else { return unknown }
                (receipt, number) = (laneConnection.receipt, laneConnection.nextNumber())
            }
            do throws(PostgresError) {
                let (isReplay, commit) = try statement.execute(
                    lane: receipt,
                    number: number,
                    on: connection,
                    deadline: deadline
                )
                if commit.isUnreplicated || losses > 0 {
                    try sender.awaitReplication(connection, deadline: deadline)
                }
                isMade = true
                return try answer(statement, isReplay: isReplay, on: connection, deadline: deadline)
            } catch {
                switch StatementEffect(of: error) {
                case .unknown:
                    losses += 1
                    laneConnection.drop(error)
                case .readOnlyServer, .receiptLost:
                    laneConnection.drop(error)
                case .rolledBack where rollbacks < ExactlyOnceSender.rollbacksMaximum || losses > 0:
                    rollbacks += 1
                    rollBack(connection)
                case .rolledBack, .refused:
                    rollBack(connection)
                    // The change is committed under its number; what was refused is the read after it.
                    if isMade { return .failure(errors.engineErrorAfterEffect(for: error)) }
                    guard losses > 0 else {
                        laneConnection.takeBack(number)
                        return .failure(errors.engineError(for: error, refusing: statement.change))
                    }
                    // Most likely, the lost transaction still holds the receipt, and an attempt at once would fail too.
                    sender.waitForConnection(until: min(deadline, .now + .milliseconds(50)))
                }
            }
        }
        guard losses > 0 else {
            if laneConnection.receipt == receipt { laneConnection.takeBack(number) }
            return .failure(withoutAnswer)
        }
        laneConnection.abandon()
        return unknown
    }

    /// The answer after the deadline, if nothing was changed.
    private var withoutAnswer: EngineError { laneConnection.connection == nil ? laneConnection.failure : .late }

    private var unknown: Outcome {
        sender.metrics.countUnknownOutcomes(1, after: .unknown)
        return .failure(.unknown)
    }

    /// The connection, as soon as there is one; nil after the deadline.
    private func awaitConnection(until deadline: ContinuousClock.Instant) -> Connection? {
        while ContinuousClock.now < deadline {
            laneConnection.advance()
            if let connection = laneConnection.connection { return connection }
            sender.waitForConnection(until: deadline)
        }
        return nil
    }

    private func rollBack(_ connection: Connection) {
        guard connection.isUsable else { return }
        do throws(PostgresError) {
            try connection.execute("rollback", deadline: .now + .seconds(1))
        } catch {
            laneConnection.drop(error)
        }
    }

    /// - Parameter isReplay: the change was made before, under its key, and not now.
    private func answer(
        _ statement: ChangeStatement,
        isReplay: Bool,
        on connection: Connection,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> Outcome {
        if case .forget = statement.change { return .done }
        let now = try snapshot(of: statement.user, on: connection, deadline: deadline)
        guard case .resetUsage(let period?) = statement.change, now.period != period else {
            return .answer(Answer(user: statement.user, status: .ok, snapshot: now, isReplay: isReplay))
        }
        let past = try pastUsage(of: statement.user, in: period, on: connection, deadline: deadline)
        return past.map { .answer(Answer(user: statement.user, status: .ok, snapshot: $0)) } ?? .failure(.noSuchPeriod)
    }

    // MARK: Reads

    private func snapshot(
        of user: UserID,
        on connection: Connection,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> UsageSnapshot {
        // No period is expected: the row is looked up by the user's present entitlement.
        let parameters = ReadBatchStatement.parameters(
            count: 1,
            unknownUsersPolicy,
            user: { _ in user },
            periodLabel: { _ in "" }
        )
        let result = try connection.query(EmbeddedSQL.readBatch, parameters, deadline: deadline)
        guard result.rowCount == 1 else { throw PostgresError(.connectionLost, "a usage snapshot was not found") }
        let snapshots = try DetailedSnapshotDecoder(result)
        refreshCatalog(snapshots.planRevision)
        return try snapshots.snapshot(0, laneConnection.catalog)
    }

    /// From the row of the period, which another period may have succeeded; nil where there is no row.
    private func pastUsage(
        of user: UserID,
        in period: BillingPeriod,
        on connection: Connection,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> UsageSnapshot? {
        var parameters = Parameters()
        parameters.append(uuid: (user.high, user.low))
        parameters.append(text: period.label)
        let result = try connection.query(EmbeddedSQL.readPeriod, parameters, deadline: deadline)
        guard result.rowCount == 1 else { return nil }
        let snapshots = try UsageSnapshotDecoder(result)
        refreshCatalog(snapshots.planRevision(0))
        return try snapshots.snapshot(0, laneConnection.catalog)
    }

    private func usage(
        of user: UserID,
        in period: BillingPeriod,
        on connection: Connection,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> Outcome {
        guard let past = try pastUsage(of: user, in: period, on: connection, deadline: deadline) else {
            return .failure(.noSuchPeriod)
        }
        let now = try snapshot(of: user, on: connection, deadline: deadline)
        return .answer((now.period == period ? now : past).usage(of: user))
    }

    private func history(
        of user: UserID,
        _ periods: Int,
        on connection: Connection,
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

    private func refreshCatalog(_ revision: Int32?) {
        if let revision { laneConnection.refreshCatalog(ifOlderThan: revision, deadline: .now + .milliseconds(500)) }
    }
}
