import Postgres
import Usage

/// The read path: answers users from their rows, without a lock and without writing.
extension BatchExecutor {
    typealias AnswerSnapshot = (
        _ executor: inout BatchExecutor,
        _ group: Batch.UserRequests,
        _ snapshot: UsageSnapshot,
        _ isStale: Bool,
        _ batch: Batch,
        _ completions: inout [Completion]
    ) -> Bool

    /// Returns the groups in which messages are to be counted after all.
    mutating func read(
        _ groups: ArraySlice<Batch.UserRequests>,
        of batch: inout Batch,
        deliver: Deliver
    ) -> [Batch.UserRequests] {
        readSnapshots(groups, of: &batch, isCounted: false, deliver: deliver) {
            executor,
            group,
            snapshot,
            isStale,
            batch,
            completions in
            guard batch.isDeniedThroughout(group, at: snapshot) else { return false }
            // The slow path writes the limit that denies the message into a stale row: otherwise the next message would
            // undo an operator's UPDATE of it, and a client that reads the table would show the previous limit.
            guard group.consumes == 0 || !isStale else { return false }
            let after = batch.answer(group, from: snapshot, into: &completions)
            executor.metrics.add(group.consumes, to: .blocked)
            executor.users.learn(group.user, after)
            return true
        }
    }

    /// Reads the snapshot of each group's user and answers with it; returns the groups for which `answer` returned
    /// false.
    ///
    /// - Parameter isCounted: the requests were counted before, so a failure is answered `unknown`.
    @discardableResult
    mutating func readSnapshots(
        _ groups: ArraySlice<Batch.UserRequests>,
        of batch: inout Batch,
        isCounted: Bool,
        deliver: Deliver,
        answer: AnswerSnapshot
    ) -> [Batch.UserRequests] {
        let first = groups.startIndex
        let reply = sender.read(ReadBatchStatement.query, groups, of: &batch, isCounted: isCounted, deliver: deliver) {
            ReadBatchStatement.parameters(
                count: groups.count,
                unknownUsersPolicy,
                user: { groups[first + $0].user },
                periodLabel: { users.period(of: groups[first + $0].user).label }
            )
        }
        switch reply {
        case .result(let result):
            do throws(PostgresError) {
                let result = try ReadBatchStatement.Result(result)
                return self.answer(groups, result, of: batch, isCounted: isCounted, deliver: deliver, answer)
            } catch {
                invalidValues.record(error)
                batch.fail(groups, isCounted ? .unknown : .invalidValue(error), metrics, deliver: deliver)
                return []
            }
        case .allExpired:
            return []
        case .rejected where isCounted:
            batch.fail(groups, .unknown, metrics, deliver: deliver)
            return []
        case .rejected(let error):
            return isolate(groups, error, of: &batch, deliver: deliver) { executor, part, batch in
                executor.readSnapshots(part, of: &batch, isCounted: isCounted, deliver: deliver, answer: answer)
            }
        }
    }

    private mutating func answer(
        _ groups: ArraySlice<Batch.UserRequests>,
        _ result: ReadBatchStatement.Result,
        of batch: Batch,
        isCounted: Bool,
        deliver: Deliver,
        _ answer: AnswerSnapshot
    ) -> [Batch.UserRequests] {
        refreshCatalog(result.snapshots.planRevision)
        var completions: [Completion] = []
        var unanswered: [Batch.UserRequests] = []
        for row in result.rows {
            let group = groups[groups.startIndex + result.snapshots.index(row)]
            do throws(PostgresError) {
                let snapshot = try result.snapshots.snapshot(row, laneConnection.catalog)
                let isStale = try result.isStale(row)
                if !answer(&self, group, snapshot, isStale, batch, &completions) { unanswered.append(group) }
            } catch {
                invalidValues.record(error)
                let error: EngineError = isCounted ? .invalidValueAfterwards(error) : .invalidValue(error)
                batch.fail(CollectionOfOne(group), error, into: &completions)
            }
        }
        deliver(completions)
        return unanswered
    }
}
