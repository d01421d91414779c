import DequeModule

/// The requests that wait for one lane. No I/O: the lane and the event loops share it under a lock, and act on what it
/// returns outside of the lock.
///
/// Requests that fit into the next batch wait in one queue. Once it is full, each connection has a queue of its own,
/// and the connections take turns (`FairQueue`), so that one with many requests does not delay the others. A request
/// that would wait too long is refused at once; connections with many waiting requests are refused first.
struct LaneQueue {
    /// What the lane executes next.
    enum Work: Equatable {
        /// Requests that one statement executes together.
        case batch([BatchedRequest])
        case unbatched(UnbatchedRequest)
    }

    private enum State: Equatable {
        /// Requests are accepted. Can transition to: refusing, closed.
        case open
        /// There has been no connection for longer than a request may wait; requests are refused with this error at
        /// once instead of after their deadline. Can transition to: open, closed.
        case refusing(EngineError)
        /// Nothing is accepted any more; waiting requests are still executed. Final.
        case closed
    }

    /// Requests for the next batch, which they all fit into; executed before those of `connections`.
    private var next: Deque<BatchedRequest> = []
    private var connections = FairQueue()
    private var rate: DrainRate
    /// Beyond this many waiting requests, only connections below their share may add more.
    private var countBeforeShares: Int
    private var state = State.open
    /// The lane found no work and sleeps until it is woken.
    private var laneSleeps = false
    private var lastWasUnbatched = false
    private let capacity: Int
    private let batchMaximum: Int
    private let waitMaximumSeconds: Double

    /// - Parameters:
    ///   - capacity: how many requests may wait; further ones are refused as overload.
    ///   - batchMaximum: requests in one batch at most.
    ///   - waitMaximum: requests that would wait longer are refused as overload.
    init(capacity: Int, batchMaximum: Int = 512, waitMaximum: Duration = .seconds(60)) {
        self.capacity = capacity
        self.batchMaximum = batchMaximum
        waitMaximumSeconds = waitMaximum / .seconds(1)
        rate = DrainRate(batchMaximum: batchMaximum)
        countBeforeShares = LaneQueue.countBeforeShares(capacity)
    }

    /// The rest of the capacity is for connections with few waiting requests.
    private static func countBeforeShares(_ capacity: Int) -> Int { capacity - capacity / 128 }

    var count: Int { next.count + connections.count }

    enum EnqueueAction: Equatable {
        case none
        case wakeLane
    }

    /// Accepts the requests that may wait, and returns the others with the reason.
    mutating func enqueue(_ requests: [Request]) -> (action: EnqueueAction, refused: ([Request], EngineError)?) {
        switch state {
        case .open: break
        case .refusing(let error): return (.none, (requests, error))
        case .closed: return (.none, (requests, .closed))
        }
        var refused: [Request] = []
        var fitsNextBatch = connections.isEmpty && next.count + requests.count <= min(batchMaximum, capacity)
        for request in requests {
            if fitsNextBatch, let batched = BatchedRequest(request) {
                next.append(batched)
                continue
            }
            // Requests behind an unbatched one must not overtake it.
            fitsNextBatch = false
            if !accept(request) { refused.append(request) }
        }
        let wakes = laneSleeps && count > 0
        if wakes { laneSleeps = false }
        return (wakes ? .wakeLane : .none, refused.isEmpty ? nil : (refused, overloaded))
    }

    private mutating func accept(_ request: Request) -> Bool {
        guard count < countBeforeShares || (count < capacity && isBelowShare(request)) else { return false }
        if connections.isEmpty, next.count < batchMaximum, let batched = BatchedRequest(request) {
            next.append(batched)
        } else {
            connections.append(request)
        }
        return true
    }

    /// Whether the request's connection has fewer waiting requests than an equal share of all.
    private func isBelowShare(_ request: Request) -> Bool {
        let own = connections.count(ofConnectionOf: request)
        return own < max(1, countBeforeShares / (connections.connectionCount + (own == 0 ? 1 : 0)))
    }

    private var overloaded: EngineError {
        var error = EngineError.overloaded
        error.retryAfterMilliseconds = rate.milliseconds(toExecute: count).map { max(50, min($0, 10_000)) }
        return error
    }

    /// The next work, or nil, after which the lane sleeps until it is woken.
    ///
    /// Unbatched requests and batches alternate, so that neither waits for many of the other.
    mutating func take(atMost limit: Int, at now: ContinuousClock.Instant = .now) -> Work? {
        guard count > 0 else {
            laneSleeps = true
            rest()
            return nil
        }
        laneSleeps = false
        if next.isEmpty, !lastWasUnbatched, let unbatched = connections.takeUnbatched() {
            return begin(.unbatched(unbatched), 1, at: now)
        }
        var batch = Array(next.prefix(limit))
        next.removeFirst(batch.count)
        if next.isEmpty { connections.fill(&batch, upTo: limit) }
        if batch.isEmpty, let unbatched = connections.takeUnbatched() {
            return begin(.unbatched(unbatched), 1, at: now)
        }
        return begin(.batch(batch), batch.count, at: now)
    }

    private mutating func begin(_ work: Work, _ requestCount: Int, at now: ContinuousClock.Instant) -> Work {
        if case .unbatched = work { lastWasUnbatched = true } else { lastWasUnbatched = false }
        rate.begin(requestCount, leavesSome: count > 0, at: now)
        // At least a full batch may wait: smaller batches cost the same each, so fewer requests would be served.
        countBeforeShares = LaneQueue.countBeforeShares(capacity)
        if let executed = rate.executed(withinSeconds: waitMaximumSeconds) {
            countBeforeShares = min(countBeforeShares, max(batchMaximum, executed))
        }
        return work
    }

    /// The lane is idle or disconnected: its rate is unknown from now on.
    mutating func rest() {
        rate.reset()
        countBeforeShares = LaneQueue.countBeforeShares(capacity)
    }

    /// Removes the requests whose deadline has passed, and returns where their outcomes are delivered. All requests
    /// have the same time limit, so those of one connection wait in the order of their deadlines.
    mutating func expire(at now: Deadline) -> [ReturnAddress] {
        var expired: [ReturnAddress] = []
        while let first = next.first, first.deadline <= now {
            expired.append(next.removeFirst().returnAddress)
        }
        if !connections.isEmpty { connections.expire(at: now, into: &expired) }
        return expired
    }

    /// The earliest deadline of a waiting request.
    var nextDeadline: Deadline? {
        [next.first?.deadline, connections.nextDeadline].compactMap(\.self).min()
    }

    /// - Parameter error: the answer until `reopen`; replaces an earlier one.
    mutating func refuse(with error: EngineError) {
        if state != .closed { state = .refusing(error) }
    }

    mutating func reopen() {
        if state != .closed { state = .open }
    }

    mutating func close() -> EnqueueAction {
        state = .closed
        defer { laneSleeps = false }
        return laneSleeps ? .wakeLane : .none
    }

    /// Closed, and every accepted request has been taken.
    var isDrained: Bool { state == .closed && count == 0 }
}
