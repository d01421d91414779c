import Logging
import Postgres
import Usage

/// Sends a lane's statements so that each takes effect once, however often the connection breaks.
///
/// Each counting statement has a number. In its own transaction it advances the lane's receipt from the previous number
/// to its own, and counts only if it did. After a connection loss the same number is sent again. If the lost
/// transaction was committed, the statement does nothing, and the receipt has its counts; if it is still running on the
/// server, the second waits for the receipt's row lock; if it starts later, it does nothing. Reading the receipt
/// instead of sending again would be wrong: the lost transaction might commit afterwards.
struct ExactlyOnceSender {
    enum Reply<Value> {
        case value(Value)
        /// Every request was answered because its deadline passed.
        case allExpired
        /// The deadline of some requests passed before anything was written. Nothing was executed; the others are to be
        /// executed without them.
        case someExpired
        /// The database refused the transaction, which had no effect.
        case rejected(PostgresError)
    }

    /// What an attempt to execute a transaction needs.
    struct Attempt {
        let connection: Connection
        let receipt: ReceiptID
        let number: Int64
        /// Whether an earlier attempt may have been committed over a connection that was then lost.
        let isRepetition: Bool
        /// The answer to requests whose deadline passes before anything is written.
        var lateError: EngineError { isRepetition ? .unknown : .late }
    }

    enum AttemptResult<Value> {
        /// By this attempt, or by an earlier one. `isUnreplicated`: no standby has confirmed the commit.
        case committed(Value, isUnreplicated: Bool)
        /// The transaction was rolled back. Only of an attempt that is no repetition.
        case rolledBack(Value)
        case allExpired
        /// The transaction was rolled back.
        case someExpired
    }

    /// As `Reply`, of a statement that changes nothing.
    enum ReadReply {
        case result(QueryResult)
        case allExpired
        case rejected(PostgresError)
    }

    /// How often a statement that was rolled back is sent again. Usually another session was first, which happens once
    /// or twice. But a trigger of an application may raise the same errors for a user always.
    static let rollbacksMaximum = 20

    let laneConnection: LaneConnection
    let wake: WakePipe
    let metrics: LaneMetrics
    let logger: Logger

    /// Executes a transaction once. Requests whose deadline passes meanwhile are answered `unknown`; or, if nothing was
    /// written for certain, `late` or with `laneConnection.failure`.
    ///
    /// - Parameter attempt: executes the transaction, in which the receipt advances to the attempt's number.
    func execute<Value>(
        _ kind: StatementKind,
        _ groups: ArraySlice<Batch.UserRequests>,
        of batch: inout Batch,
        deliver: BatchExecutor.Deliver,
        attempt: (Attempt, inout Batch) throws(PostgresError) -> AttemptResult<Value>
    ) -> Reply<Value> {
        guard !batch.hasExpired(groups) else { return .someExpired }
        var number = laneConnection.nextNumber()
        var receipt = laneConnection.receipt
        var losses = 0
        var rollbacks = 0
        while true {
            guard let connection = awaitConnection(groups, of: &batch, wasSent: losses > 0, deliver: deliver) else {
                if losses > 0 {
                    laneConnection.abandon()
                } else if laneConnection.receipt == receipt {
                    laneConnection.takeBack(number)
                }
                return .allExpired
            }
            if laneConnection.receipt != receipt {
                // The database has lost the receipt: what became of an earlier attempt cannot be found out any more.
                guard losses == 0 else {
                    batch.fail(groups, .unknown, metrics, deliver: deliver)
                    return .allExpired
                }
                (receipt, number) = (laneConnection.receipt, laneConnection.nextNumber())
            }
            if losses == 0, batch.hasExpired(groups) {
                laneConnection.takeBack(number)
                return .someExpired
            }
            do throws(PostgresError) {
                let sentAt = ContinuousClock.now
                let current = Attempt(
                    connection: connection,
                    receipt: receipt,
                    number: number,
                    isRepetition: losses > 0
                )
                switch try attempt(current, &batch) {
                case .committed(let value, let isUnreplicated):
                    metrics.record(kind, sentAt: sentAt)
                    // After a loss it is unknown whether the lost commit reached the standby.
                    if isUnreplicated || losses > 0 {
                        guard try awaitReplication(connection, groups, of: &batch, deliver: deliver) else {
                            laneConnection.abandon()
                            return .allExpired
                        }
                    }
                    return .value(value)
                case .rolledBack(let value):
                    laneConnection.takeBack(number)
                    return .value(value)
                case .allExpired:
                    laneConnection.abandon()
                    return .allExpired
                case .someExpired:
                    laneConnection.takeBack(number)
                    return .someExpired
                }
            } catch {
                rollBack(connection)
                switch StatementEffect(of: error) {
                case .unknown:
                    losses += 1
                    laneConnection.drop(error)
                case .readOnlyServer:
                    laneConnection.drop(error)
                case .receiptLost:
                    laneConnection.loseReceipt()
                case .rolledBack where rollbacks < ExactlyOnceSender.rollbacksMaximum || losses > 0,
                    .refused where losses > 0:
                    rollbacks += 1
                    // The number is free for the next attempt. A refusal after a loss is most likely because the lost
                    // transaction still holds the receipt. Only the next attempts show what becomes of it, and an
                    // attempt at once would fail too.
                    if losses > 0 { waitForConnection(until: .now + .milliseconds(50)) }
                    logger.debug("statement rolled back, sent again", metadata: ["error": "\(error)"])
                    guard expire(groups, of: &batch, losses == 0 ? .late : .unknown, deliver: deliver) != nil
                    else {
                        if losses == 0 { laneConnection.takeBack(number) } else { laneConnection.abandon() }
                        return .allExpired
                    }
                case .rolledBack, .refused:
                    laneConnection.takeBack(number)
                    return .rejected(error)
                }
            }
        }
    }

    /// Ends a transaction that is still open after an error. If that fails, the server ends it with the session.
    private func rollBack(_ connection: Connection) {
        do throws(PostgresError) {
            try connection.rollBack(deadline: .now + .seconds(1))
        } catch {
            laneConnection.drop(error)
        }
    }

    /// Sends a counting statement, which begins and commits its own transaction: an attempt for `execute`.
    func count(
        _ query: PreparedQuery,
        _ parameters: borrowing Parameters,
        _ attempt: Attempt,
        _ groups: ArraySlice<Batch.UserRequests>,
        of batch: inout Batch,
        deliver: BatchExecutor.Deliver
    ) throws(PostgresError) -> AttemptResult<CountReply> {
        let connection = attempt.connection
        try connection.send(prepared: query.name, parameters)
        guard let result = try awaitResult(connection, groups, of: &batch, .unknown, deliver: deliver) else {
            return .allExpired
        }
        guard result.rowCount == 0, attempt.isRepetition else {
            return .committed(.result(result), isUnreplicated: result.isUnreplicated)
        }
        let statement = ReceiptStatement.read
        guard let receipt = try awaitResult(of: statement, connection, groups, of: &batch, deliver: deliver) else {
            return .allExpired
        }
        let counts = try ReceiptStatement.counts(receipt, number: attempt.number)
        return .committed(counts.map { .counted($0) } ?? .result(result), isUnreplicated: result.isUnreplicated)
    }

    enum CountReply {
        case result(QueryResult)
        /// Counted by a connection that was lost; from the receipt.
        case counted([CountedUser])
    }

    /// Executes a statement that changes nothing, again after each loss.
    ///
    /// - Parameter isCounted: the requests were counted before; those whose deadline passes are answered `unknown`.
    func read(
        _ query: PreparedQuery,
        _ groups: ArraySlice<Batch.UserRequests>,
        of batch: inout Batch,
        isCounted: Bool,
        deliver: BatchExecutor.Deliver,
        parameters: () -> Parameters
    ) -> ReadReply {
        let failure: EngineError = isCounted ? .unknown : .late
        while true {
            guard let connection = awaitConnection(groups, of: &batch, wasSent: isCounted, deliver: deliver) else {
                return .allExpired
            }
            do throws(PostgresError) {
                let sentAt = ContinuousClock.now
                try connection.send(prepared: query.name, parameters())
                guard let result = try awaitResult(connection, groups, of: &batch, failure, deliver: deliver)
                else {
                    laneConnection.drop(PostgresError(.timedOut, "a read took longer than its deadline"))
                    return .allExpired
                }
                metrics.record(.read, sentAt: sentAt)
                return .result(result)
            } catch {
                switch StatementEffect(of: error) {
                case .unknown, .readOnlyServer, .receiptLost: laneConnection.drop(error)
                case .rolledBack:
                    guard expire(groups, of: &batch, failure, deliver: deliver) != nil else { return .allExpired }
                case .refused: return .rejected(error)
                }
            }
        }
    }

    // MARK: Waiting

    /// The connection, as soon as there is one; nil when the deadline of every request passes first.
    private func awaitConnection(
        _ groups: ArraySlice<Batch.UserRequests>,
        of batch: inout Batch,
        wasSent: Bool,
        deliver: BatchExecutor.Deliver
    ) -> Connection? {
        while true {
            laneConnection.advance()
            if let connection = laneConnection.connection { return connection }
            let error = wasSent ? .unknown : laneConnection.failure
            guard let deadline = expire(groups, of: &batch, error, deliver: deliver) else { return nil }
            waitForConnection(until: deadline)
        }
    }

    /// Gives the lane's connection time to reconnect, until `deadline` at most.
    func waitForConnection(until deadline: ContinuousClock.Instant) {
        _ = wake.sleep(orUntilReadable: -1, until: min(deadline, laneConnection.retryAt ?? deadline))
    }

    /// The result of the statement under way; nil when the deadline of every request passes first.
    private func awaitResult(
        _ connection: Connection,
        _ groups: ArraySlice<Batch.UserRequests>,
        of batch: inout Batch,
        _ error: EngineError,
        deliver: BatchExecutor.Deliver
    ) throws(PostgresError) -> QueryResult? {
        try awaitResults(connection, groups, of: &batch, error, deliver: deliver)?.first
    }

    /// The results of the pipeline under way; nil when the deadline of every request passes first.
    ///
    /// - Parameter error: the answer to requests whose deadline passes.
    func awaitResults(
        _ connection: Connection,
        _ groups: ArraySlice<Batch.UserRequests>,
        of batch: inout Batch,
        _ error: EngineError,
        deliver: BatchExecutor.Deliver
    ) throws(PostgresError) -> [QueryResult]? {
        var deadline = batch.nextDeadline(groups)?.instant
        while let until = deadline {
            if let results = try connection.awaitResults(until: until) { return results }
            deadline = expire(groups, of: &batch, error, deliver: deliver)
        }
        return nil
    }

    /// Answers the requests whose deadline has passed; returns the next deadline, nil when all are answered.
    private func expire(
        _ groups: ArraySlice<Batch.UserRequests>,
        of batch: inout Batch,
        _ error: EngineError,
        deliver: BatchExecutor.Deliver
    ) -> ContinuousClock.Instant? {
        var completions: [Completion] = []
        batch.expire(groups, at: Deadline(.now), error, into: &completions)
        if !completions.isEmpty {
            metrics.countUnknownOutcomes(completions.count, after: error)
            deliver(completions)
        }
        return batch.nextDeadline(groups)?.instant
    }

    // MARK: Receipts

    /// The result of a statement about the lane's receipt, once the batch may have been committed; nil when every
    /// request has been answered meanwhile. An error here is no refusal of the batch, whose effect has to be found out
    /// again.
    private func awaitResult(
        of statement: PreparedQuery,
        _ connection: Connection,
        _ groups: ArraySlice<Batch.UserRequests>,
        of batch: inout Batch,
        deliver: BatchExecutor.Deliver
    ) throws(PostgresError) -> QueryResult? {
        do throws(PostgresError) {
            try connection.send(prepared: statement.name, ReceiptStatement.parameters(lane: laneConnection.receipt))
            return try awaitResult(connection, groups, of: &batch, .unknown, deliver: deliver)
        } catch {
            throw PostgresError(.connectionLost, error.message)
        }
    }

    /// A commit that succeeded with the warning that it was not replicated is durable once a later commit of the same
    /// database is, which waits for all before it. False when every request has been answered meanwhile.
    private func awaitReplication(
        _ connection: Connection,
        _ groups: ArraySlice<Batch.UserRequests>,
        of batch: inout Batch,
        deliver: BatchExecutor.Deliver
    ) throws(PostgresError) -> Bool {
        let touched = try awaitResult(of: ReceiptStatement.touch, connection, groups, of: &batch, deliver: deliver)
        guard let touched else { return false }
        try checkReplicated(touched)
        return true
    }

    /// As `awaitReplication`, for an unbatched request.
    func awaitReplication(_ connection: Connection, deadline: ContinuousClock.Instant) throws(PostgresError) {
        let touched: QueryResult
        do throws(PostgresError) {
            let parameters = ReceiptStatement.parameters(lane: laneConnection.receipt)
            touched = try connection.query(EmbeddedSQL.touchReceipt, parameters, deadline: deadline)
        } catch {
            throw PostgresError(.connectionLost, error.message)
        }
        try checkReplicated(touched)
    }

    private func checkReplicated(_ result: QueryResult) throws(PostgresError) {
        guard result.isUnreplicated else { return }
        logger.warning("commits are not replicated synchronously; nothing is answered before they are")
        throw PostgresError(.connectionLost, "the commit could not be replicated")
    }
}
