import Postgres
import Usage

/// Renewals in answers to `USAGE` in one batch with messages of the same user.
extension BatchExecutor {
    /// Delivers the completions of a counting statement, which returns no renewals. Answers that may show one are
    /// delivered after a second statement has read it; the others are not delayed.
    ///
    /// A renewal may be newer than the rest of its answer, never older.
    mutating func deliverWithRenewals(_ completions: [Completion], of batch: Batch, deliver: Deliver) {
        var waiting: [ReturnAddress: Answer] = [:]
        let others = completions.filter { completion in
            guard case .answer(let answer) = completion.outcome, answer.isDetailed, answer.snapshot.mayRenew else {
                return true
            }
            waiting[completion.returnAddress] = answer
            return false
        }
        deliver(others)
        guard !waiting.isEmpty else { return }
        var usages = Batch(batch.requests.filter { waiting[$0.returnAddress] != nil })
        let groups = usages.groups[...]
        // The messages are counted, but these requests count nothing.
        readSnapshots(groups, of: &usages, isCounted: false, deliver: deliver) {
            _,
            group,
            now,
            _,
            usages,
            completions in
            for index in group.range {
                guard var answer = waiting[usages.requests[index].returnAddress] else { continue }
                answer.snapshot.renewsAt = now.renewsAt
                answer.snapshot.nextPlan = now.nextPlan
                usages.complete(index, .answer(answer), into: &completions)
            }
            return true
        }
    }
}
