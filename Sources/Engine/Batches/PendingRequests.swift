/// Requests that one statement executes. Each is answered once: with its outcome, or with an error if its deadline
/// passes first. It has expired then.
protocol PendingRequests {
    /// The earliest deadline of those that have not expired; nil when all have.
    var nextDeadline: Deadline? { get }
    /// Whether some have expired. One that was answered "nothing was counted" must not be sent any more.
    var someExpired: Bool { get }
    /// Fails those whose deadline has passed.
    func expire(at now: Deadline, _ error: EngineError, into completions: inout [Completion])
    /// Fails those that have not expired.
    func fail(_ error: EngineError, into completions: inout [Completion])
}

/// A batch that is being executed. Its parts share it, because a request that expires in one of them must not be
/// answered by another.
final class PendingBatch {
    fileprivate(set) var batch: Batch

    init(_ batch: Batch) {
        self.batch = batch
    }

    func part(_ groups: [Batch.UserRequests]) -> BatchPart { BatchPart(groups: groups[...], pending: self) }
}

/// The users of a batch that one statement executes.
struct BatchPart: PendingRequests {
    let groups: ArraySlice<Batch.UserRequests>
    fileprivate let pending: PendingBatch

    /// All of it, as it is now.
    var batch: Batch { pending.batch }
    var nextDeadline: Deadline? { pending.batch.nextDeadline(groups) }
    var someExpired: Bool { pending.batch.hasExpired(groups) }
    /// The requests that have not expired.
    var unexpired: [BatchedRequest] { pending.batch.unexpired(groups) }

    func expire(at now: Deadline, _ error: EngineError, into completions: inout [Completion]) {
        pending.batch.expire(groups, at: now, error, into: &completions)
    }

    func fail(_ error: EngineError, into completions: inout [Completion]) {
        pending.batch.fail(groups, error, into: &completions)
    }

    /// Some of this part's users.
    func part(_ groups: ArraySlice<Batch.UserRequests>) -> BatchPart { BatchPart(groups: groups, pending: pending) }
    func part(_ groups: [Batch.UserRequests]) -> BatchPart { part(groups[...]) }
}

/// What a path leaves of its part of a batch.
struct Remainder {
    /// The users that the next path is to execute.
    var forNextPath: [Batch.UserRequests] = []
    /// Requests that are to be executed as a batch of their own: their statement was not executed, because others in it
    /// had expired.
    var forNewBatch: [BatchedRequest] = []

    static func + (lhs: Remainder, rhs: Remainder) -> Remainder {
        Remainder(
            forNextPath: lhs.forNextPath + rhs.forNextPath,
            forNewBatch: lhs.forNewBatch + rhs.forNewBatch
        )
    }

    static func += (lhs: inout Remainder, rhs: Remainder) { lhs = lhs + rhs }
}

/// A request that is executed alone.
final class PendingUnbatchedRequest: PendingRequests {
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
