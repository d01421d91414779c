import Postgres
import Usage

/// Renewals, prices and addresses in answers to `USAGE` in one batch with messages of the same user.
extension BatchExecutor {
    /// Delivers the completions of a counting statement, which returns no details of subscriptions. Answers about the
    /// subscription of a store are delivered after a second statement has read them; the others are not delayed.
    ///
    /// Details may be newer than the rest of their answer, never older.
    mutating func deliverWithDetails(_ completions: [Completion], of batch: Batch, deliver: Deliver) {
        var waiting: [ReturnAddress: Answer] = [:]
        var others: [Completion] = []
        for var completion in completions {
            guard case .answer(var answer) = completion.outcome, answer.isDetailed else {
                others.append(completion)
                continue
            }
            if answer.snapshot.renews != nil {
                waiting[completion.returnAddress] = answer
            } else {
                answer.snapshot.details = manageURL.map { SubscriptionDetails(manage: $0) }
                completion.outcome = .answer(answer)
                others.append(completion)
            }
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
                answer.snapshot.details = now.details
                usages.complete(index, .answer(answer), into: &completions)
            }
            return true
        }
    }
}
