import Logging
import Postgres
import Usage

/// Sends a lane's statements so that each takes effect once, however often the connection breaks.
///
/// Each counting statement has a number, and moves the lane's receipt from the number before to its own in the same
/// transaction. After a loss the same number is sent again. If the lost transaction had committed, the gate is closed
/// and the receipt says what it had answered; if it is still running on the server, the receipt's row lock makes the
/// second wait for it; if it has not begun, it will find the gate closed. Looking at the receipt without sending again
/// would be wrong: the lost transaction might commit after the look.
struct ExactlyOnce {
    enum Trip {
        case done(QueryResult)
        /// Counted by a connection that was lost; from the receipt: place in the batch and message_count after it.
        case repeated([Int: Int])
        /// Every request has been answered because its deadline passed.
        case gone
        /// Some requests have been answered because their deadline passed before anything was sent; nothing was done, and
        /// the others are to be carried without them.
        case thinned
        /// The database refused; nothing happened.
        case rejected(PostgresError)
    }

    private let link: LaneConnection
    private let wake: WakePipe
    private let metrics: LaneMetrics
    private let logger: Logger

    init(link: LaneConnection, wake: WakePipe, metrics: LaneMetrics, logger: Logger) {
        self.link = link
        self.wake = wake
        self.metrics = metrics
        self.logger = logger
    }

    /// Runs a counting statement once. Until it is known what became of it, requests whose deadline passes are told
    /// that the outcome is unknown, or, if nothing was ever sent, that the database is away.
    func run(
        _ kind: StatementKind,
        _ groups: ArraySlice<Batch.Group>,
        of batch: inout Batch,
        deliver: BatchExecutor.Deliver,
        send: (_ connection: Connection, _ lane: LaneName, _ number: Int64) throws(PostgresError) ->
            Void
    ) -> Trip {
        guard !batch.hasAnswered(groups) else { return .thinned }
        var number = link.nextNumber()
        var lane = link.lane
        var losses = 0
        while true {
            let error: EngineError = losses == 0 ? .unavailable : .unknown
            guard let connection = awaitLink(groups, of: &batch, error, deliver: deliver) else {
                if losses > 0 { link.abandon() } else if link.lane == lane { link.takeBack(number) }
                return .gone
            }
            if link.lane != lane {
                // The receipt was lost with the database's memory: what was sent under it cannot be told any more.
                guard losses == 0 else {
                    fail(groups, of: batch, .unknown, deliver: deliver)
                    return .gone
                }
                (lane, number) = (link.lane, link.nextNumber())
            }
            if losses == 0, batch.hasAnswered(groups) {
                link.takeBack(number)
                return .thinned
            }
            do throws(PostgresError) {
                let sentAt = ContinuousClock.now
                try send(connection, link.lane, number)
                guard let result = try awaitResult(connection, groups, of: &batch, .unknown, deliver: deliver) else {
                    link.abandon()
                    return .gone
                }
                metrics.record(kind, sentAt: sentAt)
                let isUnreplicated = result.warnings.contains { $0.sqlState == .warning }
                // After a loss nobody can tell whether the commit that was lost had reached the standby.
                if isUnreplicated || losses > 0 {
                    guard try awaitTouch(connection, groups, of: &batch, deliver: deliver) else {
                        link.abandon()
                        return .gone
                    }
                }
                guard result.rowCount == 0, losses > 0 else { return .done(result) }
                switch try awaitReceipt(connection, number, groups, of: &batch, deliver: deliver) {
                case .counted(let counts): return .repeated(counts)
                case .notCounted: return .done(result)
                case .gone:
                    link.abandon()
                    return .gone
                }
            } catch {
                switch verdict(on: error) {
                case .lost:
                    losses += 1
                    link.drop(error)
                case .movedAway:
                    link.drop(error)
                case .receiptLost:
                    link.loseReceipt()
                case .refused where losses == 0:
                    link.takeBack(number)
                    return .rejected(error)
                case .rolledBack, .refused:
                    // The number is free for the next attempt. Refused after a loss, most likely because the lost
                    // transaction still holds the receipt: only the next attempts can tell what becomes of it.
                    logger.debug("statement rolled back, sent again", metadata: ["error": "\(error)"])
                    guard expire(groups, of: &batch, losses == 0 ? .unavailable : .unknown, deliver: deliver) != nil
                    else {
                        if losses == 0 { link.takeBack(number) } else { link.abandon() }
                        return .gone
                    }
                }
            }
        }
    }

    /// Runs a statement that changes nothing, again after each loss.
    ///
    /// - Parameter failure: what requests are told whose deadline passes first.
    func read(
        _ groups: ArraySlice<Batch.Group>,
        of batch: inout Batch,
        orFail failure: EngineError,
        deliver: BatchExecutor.Deliver,
        send: (_ connection: Connection) throws(PostgresError) -> Void
    ) -> Trip {
        while true {
            guard let connection = awaitLink(groups, of: &batch, failure, deliver: deliver) else { return .gone }
            do throws(PostgresError) {
                let sentAt = ContinuousClock.now
                try send(connection)
                guard let result = try awaitResult(connection, groups, of: &batch, failure, deliver: deliver)
                else {
                    link.drop(PostgresError(.timedOut, "a read took longer than its deadline"))
                    return .gone
                }
                metrics.record(.read, sentAt: sentAt)
                return .done(result)
            } catch {
                switch verdict(on: error) {
                case .lost, .movedAway, .receiptLost: link.drop(error)
                case .rolledBack:
                    guard expire(groups, of: &batch, failure, deliver: deliver) != nil else { return .gone }
                case .refused: return .rejected(error)
                }
            }
        }
    }

    // MARK: Waiting

    /// The connection, once there is one; nil when the deadline of every request passed first.
    private func awaitLink(
        _ groups: ArraySlice<Batch.Group>,
        of batch: inout Batch,
        _ error: EngineError,
        deliver: BatchExecutor.Deliver
    ) -> Connection? {
        while true {
            link.advance()
            if let connection = link.connection { return connection }
            guard let deadline = expire(groups, of: &batch, error, deliver: deliver) else { return nil }
            waitForLink(until: deadline)
        }
    }

    /// Lets the link come back for a while, until `deadline` at most.
    func waitForLink(until deadline: ContinuousClock.Instant) {
        _ = wake.sleep(orUntilReadable: -1, until: min(deadline, link.retryAt ?? deadline))
    }

    /// The result of the statement under way; nil when the deadline of every request passed first.
    private func awaitResult(
        _ connection: Connection,
        _ groups: ArraySlice<Batch.Group>,
        of batch: inout Batch,
        _ error: EngineError,
        deliver: BatchExecutor.Deliver
    ) throws(PostgresError) -> QueryResult? {
        var deadline = batch.nextDeadline(groups)
        while let until = deadline {
            if let result = try connection.awaitResult(until: until) { return result }
            deadline = expire(groups, of: &batch, error, deliver: deliver)
        }
        return nil
    }

    /// Answers the requests whose time is up; returns the next deadline, nil when all are answered.
    private func expire(
        _ groups: ArraySlice<Batch.Group>,
        of batch: inout Batch,
        _ error: EngineError,
        deliver: BatchExecutor.Deliver
    ) -> ContinuousClock.Instant? {
        var completions: [Completion] = []
        batch.expire(groups, at: .now, error, into: &completions)
        if !completions.isEmpty {
            metrics.countFailures(completions.count, error)
            deliver(completions)
        }
        return batch.nextDeadline(groups)
    }

    // MARK: Receipts

    private enum Receipt {
        /// This batch counted: place in the batch and message_count after it.
        case counted([Int: Int])
        case notCounted
        /// Every request has been answered meanwhile.
        case gone
    }

    /// What the lane's newest committed batch counted, if that is this one.
    private func awaitReceipt(
        _ connection: Connection,
        _ number: Int64,
        _ groups: ArraySlice<Batch.Group>,
        of batch: inout Batch,
        deliver: BatchExecutor.Deliver
    ) throws(PostgresError) -> Receipt {
        let answer = try afterwards(.readReceipt, connection, groups, of: &batch, deliver: deliver)
        guard let result = answer else { return .gone }
        guard result.rowCount == 1, try result.int64(0, 0) == number, !result.isNull(0, 1) else { return .notCounted }
        var counts: [Int: Int] = [:]
        for case .some(let entry) in try result.int64s(0, 1) {
            counts[Int(entry >> 32) - 1] = Int(entry & 0xFFFF_FFFF)
        }
        return .counted(counts)
    }

    /// A commit that succeeded with the warning that it was not replicated is not durable yet. It is once a later commit
    /// of the same database is: that one waits for everything before it. False when every request has been answered
    /// meanwhile.
    private func awaitTouch(
        _ connection: Connection,
        _ groups: ArraySlice<Batch.Group>,
        of batch: inout Batch,
        deliver: BatchExecutor.Deliver
    ) throws(PostgresError) -> Bool {
        let answer = try afterwards(.touchReceipt, connection, groups, of: &batch, deliver: deliver)
        guard let result = answer else { return false }
        try checkReplicated(result)
        return true
    }

    /// The same for a change that goes alone.
    func confirm(_ connection: Connection, deadline: ContinuousClock.Instant) throws(PostgresError) {
        var parameters = Parameters()
        parameters.append(uuid: link.lane.uuid)
        let touched: QueryResult
        do throws(PostgresError) {
            touched = try connection.query(EmbeddedSQL.touchReceipt, parameters, deadline: deadline)
        } catch {
            throw PostgresError(.connectionLost, error.message)
        }
        try checkReplicated(touched)
    }

    private func checkReplicated(_ result: QueryResult) throws(PostgresError) {
        guard result.warnings.contains(where: { $0.sqlState == .warning }) else { return }
        logger.warning("commits are not replicated synchronously; nothing is answered before they are")
        throw PostgresError(.connectionLost, "the commit could not be replicated")
    }

    /// Runs a statement about the lane's receipt once the batch may have been committed. Whatever goes wrong here is
    /// no refusal of the batch: what became of that has to be found out again.
    private func afterwards(
        _ statement: PreparedStatement,
        _ connection: Connection,
        _ groups: ArraySlice<Batch.Group>,
        of batch: inout Batch,
        deliver: BatchExecutor.Deliver
    ) throws(PostgresError) -> QueryResult? {
        var parameters = Parameters()
        parameters.append(uuid: link.lane.uuid)
        do throws(PostgresError) {
            try connection.send(prepared: statement.rawValue, parameters)
            return try awaitResult(connection, groups, of: &batch, .unknown, deliver: deliver)
        } catch {
            throw PostgresError(.connectionLost, error.message)
        }
    }

    private func fail(
        _ groups: ArraySlice<Batch.Group>,
        of batch: Batch,
        _ error: EngineError,
        deliver: BatchExecutor.Deliver
    ) {
        var completions: [Completion] = []
        batch.fail(groups, error, into: &completions)
        metrics.countFailures(completions.count, error)
        deliver(completions)
    }

    // MARK: Errors

    /// What headroom.perform_batch raises.
    private static let receiptUnknown = SQLState(rawValue: "HR001")

    enum Verdict {
        /// What became of the statement is not known.
        case lost
        /// Nothing happened, and the same statement can succeed.
        case rolledBack
        /// Nothing happened; this server takes no writes (any more), another may.
        case movedAway
        /// Nothing happened: the database does not know the lane's receipt, or knows another number.
        case receiptLost
        /// Nothing happened, and nothing will without a change.
        case refused
    }

    func verdict(on error: PostgresError) -> Verdict {
        switch error.kind {
        case .connectionLost, .connectFailed, .timedOut, .misuse: .lost
        // Not unique: somebody else used the same new key in the same moment, and will have committed when we look again.
        case .server(.deadlockDetected), .server(.serializationFailure), .server(.uniqueViolation): .rolledBack
        case .server(.readOnlySQLTransaction): .movedAway
        case .server(ExactlyOnce.receiptUnknown): .receiptLost
        case .server: .refused
        }
    }
}
