/// Requests of one statement that expire at their deadlines. Each is answered once: with its outcome, or with an error
/// if its deadline passes first.
protocol Expirable {
    /// The earliest deadline of the requests that have not expired; nil when all have.
    var nextDeadline: Deadline? { get }
    /// Whether some have expired. These were answered "nothing was counted", so their statement must not be sent.
    var someExpired: Bool { get }
    /// Fails the requests whose deadline has passed.
    func expire(at now: Deadline, _ error: EngineError, into completions: inout [Completion])
    /// Fails the requests that have not expired.
    func fail(_ error: EngineError, into completions: inout [Completion])
}

/// A request that a lane executes alone, between two batches.
final class PendingUnbatchedRequest: Expirable {
    let request: UnbatchedRequest
    private var hasExpired = false

    init(_ request: UnbatchedRequest) {
        self.request = request
    }

    var nextDeadline: Deadline? { hasExpired ? nil : request.deadline }
    /// False, because the statement has no other requests that could be executed without the expired one.
    var someExpired: Bool { false }

    func expire(at now: Deadline, _ error: EngineError, into completions: inout [Completion]) {
        guard request.deadline <= now else { return }
        fail(error, into: &completions)
        hasExpired = true
    }

    func fail(_ error: EngineError, into completions: inout [Completion]) {
        if !hasExpired { completions.append(completion(.failure(error))) }
    }

    func completion(_ outcome: Outcome) -> Completion {
        Completion(returnAddress: request.returnAddress, outcome: outcome)
    }
}
