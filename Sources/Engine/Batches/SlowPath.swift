import Postgres
import Usage

/// The slow path: `headroom.perform_batch` resolves plan, state and period of each user, and handles keys and holds.
extension BatchExecutor {
    /// The most users in one statement. Each costs the database ten times what a counted one does, so hundreds of them
    /// in one statement would delay the others.
    private static let slowPathUsersMaximum = 128

    /// Answers all groups.
    mutating func perform(_ groups: ArraySlice<Batch.Group>, of batch: inout Batch, deliver: Deliver) {
        var rest = groups
        while !rest.isEmpty {
            performTogether(rest.prefix(BatchExecutor.slowPathUsersMaximum), of: &batch, deliver: deliver)
            rest = rest.dropFirst(BatchExecutor.slowPathUsersMaximum)
        }
    }

    private mutating func performTogether(
        _ groups: ArraySlice<Batch.Group>,
        of batch: inout Batch,
        deliver: Deliver
    ) {
        let statement = PerformBatchStatement(groups, of: batch, unknownUsersPolicy)
        let query = PerformBatchStatement.query
        let reply = sender.execute(.perform, query, groups, of: &batch, deliver: deliver) {
            statement.parameters(lane: $0, number: $1)
        }
        switch reply {
        case .result(let result):
            do throws(PostgresError) {
                let result = try PerformBatchStatement.Result(result)
                guard result.rows.count == statement.requests.count else {
                    throw PostgresError.replacedFunction("headroom.perform_batch returned no row for a request")
                }
                answer(result, statement.requests, of: batch, deliver: deliver)
            } catch {
                failUncertain(groups, error, of: batch, deliver: deliver)
            }
        case .allExpired:
            break
        case .someExpired:
            execute(Batch(batch.unexpired(groups)), deliver: deliver)
        case .counted:
            // The receipt's counts are of a counting statement; perform_batch returns its rows again itself.
            batch.fail(groups, .unknown, metrics, deliver: deliver)
        case .rejected(let error):
            _ = isolate(groups, error, of: &batch, deliver: deliver) { executor, part, batch in
                executor.performTogether(part, of: &batch, deliver: deliver)
                return []
            }
        }
    }

    private mutating func answer(
        _ result: PerformBatchStatement.Result,
        _ requests: [Int],
        of batch: Batch,
        deliver: Deliver
    ) {
        refreshCatalog(result.planRevision)
        var completions: [Completion] = []
        var (messages, blocked) = (0, 0)
        for row in result.rows {
            let index = requests[result.index(row)]
            let request = batch.requests[index]
            do throws(PostgresError) {
                let performed = try result.slowPathResult(row, link.catalog)
                batch.complete(index, performed.outcome(of: request.operation, user: request.user), into: &completions)
                messages += performed.messagesCounted
                if performed.verdict == .blocked, request.operation.countsOrHolds { blocked += 1 }
                if !performed.isReplay { users.learn(request.user, performed.snapshot) }
            } catch {
                invalidValues.record(error)
                batch.complete(index, .failure(.invalidValueAfterwards(error)), into: &completions)
            }
        }
        metrics.add(messages, to: .messages)
        metrics.add(blocked, to: .blocked)
        deliverWithDetails(completions, of: batch, deliver: deliver)
    }
}
