/// Requests that one statement executes. Each is answered once: with its outcome, or with an error if its deadline
/// passes first. It has expired then.
protocol Expirable {
    /// The earliest deadline of those that have not expired; nil when all have.
    var nextDeadline: Deadline? { get }
    /// Whether some have expired. One that was answered "nothing was counted" must not be sent any more.
    var someExpired: Bool { get }
    /// Fails those whose deadline has passed.
    func expire(at now: Deadline, _ error: EngineError, into completions: inout [Completion])
    /// Fails those that have not expired.
    func fail(_ error: EngineError, into completions: inout [Completion])
}

/// A request that is executed alone.
final class PendingUnbatchedRequest: Expirable {
    let request: UnbatchedRequest
    private var hasExpired = false

    init(_ request: UnbatchedRequest) {
        self.request = request
    }

    var nextDeadline: Deadline? { hasExpired ? nil : request.deadline }
    /// There are no others that could be sent without it.
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
