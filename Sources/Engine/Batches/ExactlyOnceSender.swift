import Logging
import Postgres
import Usage

/// Sends a lane's statements so that each takes effect once, however often the connection breaks.
///
/// Each counting statement has a number. In its own transaction it advances the lane's receipt in its bucket from the
/// previous number to its own, and counts only if it did. After a lost connection, the same number is sent again. If
/// the lost transaction was committed, the statement fails, and the receipt has its counts; if it is still running on
/// the server, the second waits for its row locks; if it starts later, it fails. Reading the receipt instead of sending
/// again would be wrong: the lost transaction might commit afterwards.
final class ExactlyOnceSender {
    enum Reply<Value> {
        case value(Value)
        /// Every request was answered, because its deadline passed or its outcome cannot be found out.
        case allExpired
        /// The deadline of some requests passed before anything was written. Nothing was executed. The caller executes
        /// the others without them.
        case someExpired
        /// The database refused the transaction, which had no effect.
        case rejected(PostgresError)
    }

    /// One attempt to execute a transaction, and what it needs.
    struct Attempt {
        let connection: DatabaseConnection
        let bucket: Bucket
        let receipt: ReceiptID
        let number: Int64
        /// Whether an earlier attempt may have been committed over a connection that was then lost.
        let isRepetition: Bool
        /// Whether what was sent so far may be committed. It is false while a transaction has only locked and read: if
        /// its connection is lost then, it is certainly rolled back.
        var canCommit = true
        /// The answer to requests whose deadline passes before anything is written.
        var lateError: EngineError { isRepetition ? .unknown : .late }

        /// Checks that an earlier attempt can have used the number. Call it when the receipt shows that one did.
        ///
        /// - Throws: `receiptUnknown` if there was no earlier attempt. The answers of the receipt belong to other
        ///   requests then.
        func requireRepetition() throws(PostgresError) {
            guard !isRepetition else { return }
            throw PostgresError(.server(StatementFailure.receiptUnknown), "the lane's receipt is of another batch")
        }
    }

    enum AttemptResult<Value> {
        /// This attempt or an earlier one was committed. `isUnreplicated`: no standby has confirmed the commit.
        case committed(Value, isUnreplicated: Bool)
        /// The transaction was rolled back. An attempt that repeats another must not return this.
        case rolledBack(Value)
        case allExpired
        /// The deadline of some requests passed, and the transaction was rolled back.
        case someExpired
    }

    /// The reply to statements that change nothing; otherwise as `Reply`.
    enum ReadReply<Value> {
        case value(Value)
        case allExpired
        /// The requests took effect before, but the database has lost the lane's receipt, and maybe their effect.
        case effectLost
        case rejected(PostgresError)
    }

    let laneConnection: LaneConnection
    let delivery: OutcomeDelivery
    let logger: Logger
    private let sleep: (ContinuousClock.Instant) -> Void

    /// - Parameter sleep: sleeps until the lane is woken, at most until this instant.
    init(
        laneConnection: LaneConnection,
        delivery: OutcomeDelivery,
        logger: Logger,
        sleep: @escaping (ContinuousClock.Instant) -> Void
    ) {
        self.laneConnection = laneConnection
        self.delivery = delivery
        self.logger = logger
        self.sleep = sleep
    }

    var metrics: LaneMetrics { delivery.metrics }

    /// Executes a transaction once. A request whose deadline passes meanwhile is answered `unknown`. If certainly
    /// nothing was written, it is answered `late`, or with `laneConnection.failure` while there is no connection.
    ///
    /// - Parameters:
    ///   - kind: the kind of statement whose duration is measured; nil for none.
    ///   - bucket: the bucket of the receipt.
    ///   - attempt: executes the transaction, in which the receipt advances to the attempt's number. It changes nothing
    ///     of the attempt but `canCommit`.
    func executeOnce<Value>(
        _ kind: StatementKind?,
        in bucket: Bucket,
        _ requests: some Expirable,
        attempt: (inout Attempt) throws(PostgresError) -> AttemptResult<Value>
    ) -> Reply<Value> {
        guard !requests.someExpired else { return .someExpired }
        var receipt: ReceiptID?
        var number: Int64 = 0
        var retries = StatementRetries(isChange: true)
        // Whether an attempt whose connection was lost may be committed. From then on no request may be answered
        // "nothing was counted", and none is left out.
        var mayBeCommitted = false
        while true {
            guard let connection = awaitConnection(requests, bucket, wasSent: mayBeCommitted) else {
                if retries.hasLost {
                    // The receipt is abandoned even if nothing was committed: the lost session may still hold its lock,
                    // and a new session gets ready only with that lock.
                    laneConnection.abandon(in: bucket)
                } else if let receipt, laneConnection.receipt(in: bucket) == receipt {
                    laneConnection.takeBack(number, in: bucket)
                }
                return .allExpired
            }
            guard let open = laneConnection.receipt(in: bucket) else { continue }
            if open != receipt {
                // The database has lost the receipt, so the outcome of an earlier attempt cannot be found out.
                guard !mayBeCommitted else {
                    delivery.fail(requests, .unknown)
                    return .allExpired
                }
                (receipt, number) = (open, laneConnection.nextNumber(in: bucket))
            }
            if !mayBeCommitted, requests.someExpired {
                laneConnection.takeBack(number, in: bucket)
                return .someExpired
            }
            var current = Attempt(
                connection: connection,
                bucket: bucket,
                receipt: open,
                number: number,
                isRepetition: mayBeCommitted
            )
            do throws(PostgresError) {
                let sentAt = ContinuousClock.now
                switch try attempt(&current) {
                case .committed(let value, let isUnreplicated):
                    if let kind { record(kind, sentAt: sentAt) }
                    // After a loss, nobody knows whether the lost commit reached the standby.
                    if isUnreplicated || mayBeCommitted {
                        guard try awaitReplication(connection, bucket, requests, .unknown) else {
                            laneConnection.abandon(in: bucket)
                            return .allExpired
                        }
                    } else {
                        laneConnection.confirmPrimary(sentAt: sentAt)
                    }
                    return .value(value)
                case .rolledBack(let value):
                    let isConfirmed = try confirmPrimary(connection, bucket, requests, current.lateError)
                    laneConnection.takeBack(number, in: bucket)
                    guard isConfirmed else {
                        laneConnection.drop(PostgresError(.timedOut, "a commit took longer than the deadline"))
                        return .allExpired
                    }
                    return .value(value)
                case .allExpired:
                    laneConnection.abandon(in: bucket)
                    return .allExpired
                case .someExpired:
                    laneConnection.takeBack(number, in: bucket)
                    return .someExpired
                }
            } catch {
                rollBack(connection)
                switch retries.step(after: error) {
                case .sendAgainAfterLoss:
                    mayBeCommitted = mayBeCommitted || current.canCommit
                    laneConnection.drop(error)
                case .reconnect:
                    laneConnection.drop(error)
                case .replaceReceipt:
                    laneConnection.loseReceipt(in: bucket)
                case .sendAgain:
                    // The next attempt uses the same number.
                    if retries.hasLost { pause(.milliseconds(50), requests) }
                    logger.debug("statement rolled back, sent again", metadata: ["error": "\(error)"])
                    guard delivery.expire(requests, current.lateError) != nil else {
                        if mayBeCommitted {
                            laneConnection.abandon(in: bucket)
                        } else {
                            laneConnection.takeBack(number, in: bucket)
                        }
                        return .allExpired
                    }
                case .reject:
                    laneConnection.takeBack(number, in: bucket)
                    return .rejected(error)
                }
            }
        }
    }

    /// Measures a statement whose reply arrives now.
    private func record(_ kind: StatementKind, sentAt: ContinuousClock.Instant) {
        metrics.record(kind, sentAt: sentAt)
        delivery.trace?.executed(kind, sentAt: sentAt)
    }

    /// Ends a transaction that is still open after an error. If that fails, the server ends it with the session.
    private func rollBack(_ connection: DatabaseConnection) {
        do throws(PostgresError) {
            try connection.rollBack(deadline: .now + .seconds(1))
        } catch {
            laneConnection.drop(error)
        }
    }

    // MARK: Reading

    /// Executes statements that change nothing, again after each loss.
    ///
    /// - Parameters:
    ///   - bucket: a bucket in which the lane has a receipt; if the requests took effect, the bucket in which they did.
    ///   - afterEffect: the requests took effect before, so they are answered `unknown` if their deadline passes.
    ///   - attempt: executes the statements; returns nil if the deadline of every request passes first.
    func read<Value>(
        _ requests: some Expirable,
        in bucket: Bucket,
        afterEffect: Bool,
        attempt: (DatabaseConnection) throws(PostgresError) -> Value?
    ) -> ReadReply<Value> {
        let receipt = laneConnection.receipt(in: bucket)
        var retries = StatementRetries(isChange: false)
        while true {
            guard let connection = awaitConnection(requests, bucket, wasSent: afterEffect) else { return .allExpired }
            if afterEffect, laneConnection.receipt(in: bucket) != receipt { return .effectLost }
            do throws(PostgresError) {
                if let value = try attempt(connection),
                    try confirmPrimary(connection, bucket, requests, afterEffect ? .unknown : .late)
                {
                    return .value(value)
                }
                laneConnection.drop(PostgresError(.timedOut, "a read took longer than its deadline"))
                return .allExpired
            } catch {
                switch retries.step(after: error) {
                case .sendAgainAfterLoss, .reconnect, .replaceReceipt: laneConnection.drop(error)
                case .sendAgain:
                    guard delivery.expire(requests, afterEffect ? .unknown : .late) != nil else { return .allExpired }
                case .reject: return .rejected(error)
                }
            }
        }
    }

    /// Reads with one prepared statement about a part of a batch; otherwise as `read`.
    func readBatch(
        _ query: PreparedQuery,
        _ part: BatchPart,
        afterEffect: Bool,
        parameters: () -> Parameters
    ) -> ReadReply<QueryResult> {
        read(part, in: part.bucket, afterEffect: afterEffect) { connection throws(PostgresError) in
            let sentAt = ContinuousClock.now
            try connection.send(prepared: query.name, parameters())
            let result = try awaitResult(connection, part, afterEffect ? .unknown : .late)
            if result != nil { record(.read, sentAt: sentAt) }
            return result
        }
    }

    // MARK: Waiting

    /// Waits for a connection with the lane's receipt in the bucket; nil if the deadline of every request passes first.
    private func awaitConnection(_ requests: some Expirable, _ bucket: Bucket, wasSent: Bool) -> DatabaseConnection? {
        laneConnection.advance()
        if let connection = laneConnection.connection(withReceiptIn: bucket) { return connection }
        while true {
            let late = laneConnection.connection == nil ? laneConnection.failure : .late
            guard let deadline = delivery.expire(requests, wasSent ? .unknown : late) else { return nil }
            // This comes after the check of deadlines, so that nothing is sent in vain over a late connection.
            if let connection = laneConnection.openReceipt(in: bucket, until: deadline) { return connection }
            waitForConnection(until: deadline)
            laneConnection.advance()
        }
    }

    /// Gives the lane's connection time to reconnect, at most until `deadline`.
    private func waitForConnection(until deadline: ContinuousClock.Instant) {
        sleep(min(deadline, laneConnection.retryAt ?? deadline))
    }

    /// Waits this long before the next attempt, but not past a deadline.
    private func pause(_ duration: Duration, _ requests: some Expirable) {
        let end = ContinuousClock.now + duration
        waitForConnection(until: min(end, requests.nextDeadline?.instant ?? end))
    }

    /// Waits for the result of the statement under way; nil if the deadline of every request passes first.
    func awaitResult(
        _ connection: DatabaseConnection,
        _ requests: some Expirable,
        _ error: EngineError
    ) throws(PostgresError) -> QueryResult? {
        try awaitResults(connection, requests, error)?.first
    }

    /// Waits for the results of the pipeline under way; nil if the deadline of every request passes first.
    ///
    /// - Parameter error: the answer to requests whose deadline passes.
    func awaitResults(
        _ connection: DatabaseConnection,
        _ requests: some Expirable,
        _ error: EngineError
    ) throws(PostgresError) -> [QueryResult]? {
        var deadline = requests.nextDeadline?.instant
        while let until = deadline {
            if let results = try connection.awaitResults(until: until) { return results }
            deadline = delivery.expire(requests, error)
        }
        return nil
    }

    // MARK: Receipts

    /// Executes a statement about the lane's receipt in a bucket; nil if all requests have been answered meanwhile. Its
    /// errors are thrown as a lost connection: they refuse no request, whose effect has to be found out again.
    ///
    /// - Parameter lateError: the answer to requests whose deadline passes.
    func awaitResult(
        of statement: PreparedQuery,
        _ connection: DatabaseConnection,
        _ bucket: Bucket,
        _ requests: some Expirable,
        _ lateError: EngineError
    ) throws(PostgresError) -> QueryResult? {
        do throws(PostgresError) {
            guard let receipt = laneConnection.receipt(in: bucket) else {
                throw PostgresError(.connectionLost, "the lane's receipt is lost")
            }
            try connection.send(prepared: statement.name, ReceiptStatement.parameters(bucket, lane: receipt))
            return try awaitResult(connection, requests, lateError)
        } catch {
            throw PostgresError(.connectionLost, error.message)
        }
    }

    /// Makes a commit durable that succeeded with the warning that it was not replicated. It is durable once a later
    /// commit of the same database is, which waits for all before it. False if all requests have been answered.
    private func awaitReplication(
        _ connection: DatabaseConnection,
        _ bucket: Bucket,
        _ requests: some Expirable,
        _ error: EngineError
    ) throws(PostgresError) -> Bool {
        let sentAt = ContinuousClock.now
        guard let touched = try awaitResult(of: ReceiptStatement.touch, connection, bucket, requests, error) else {
            return false
        }
        // A statement that finds no receipt writes nothing, so its commit has waited for no standby.
        guard touched.rowCount == 1 else { throw PostgresError(.connectionLost, "the lane's receipt is lost") }
        guard touched.isUnreplicated else {
            laneConnection.confirmPrimary(sentAt: sentAt)
            return true
        }
        logger.warning("commits are not replicated synchronously; nothing is answered before they are")
        throw PostgresError(.connectionLost, "the commit could not be replicated")
    }

    /// Makes sure that an answer which needed no commit does not come from a server that was superseded long ago. False
    /// if every request has been answered meanwhile.
    private func confirmPrimary(
        _ connection: DatabaseConnection,
        _ bucket: Bucket,
        _ requests: some Expirable,
        _ error: EngineError
    ) throws(PostgresError) -> Bool {
        guard laneConnection.mustConfirmPrimary(at: .now) else { return true }
        return try awaitReplication(connection, bucket, requests, error)
    }
}
