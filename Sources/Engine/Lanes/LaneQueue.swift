import DequeModule

/// The requests that wait for one lane. Sans-IO: the lane and the event loops share it under a lock, and act on what it
/// returns outside of it.
///
/// Those who fit into the next load stand in one row. Who comes when more wait stands in a line for its connection, and the
/// lines take turns (`FairQueue`): a connection with many requests waits for itself. Who would have to wait too long is
/// refused at once, first those whose connection has many waiting.
struct LaneQueue {
    /// What a load of the ferry is.
    enum Load: Equatable {
        /// Requests that go together in one statement.
        case batch([Request])
        /// A request that goes alone.
        case single(Request)
    }

    private enum State: Equatable {
        /// Requests are taken in. Can transition to: refusing, closed.
        case open
        /// The database has been away for longer than anybody would wait; requests are refused at once instead of
        /// after their deadline. Can transition to: open, closed.
        case refusing
        /// Nothing is taken in any more; what waits is still carried. Final.
        case closed
    }

    /// Requests for the next load; all of them go together, and before the lines.
    private var waiting: Deque<Request> = []
    private var lines = FairQueue()
    private var rate: DrainRate
    /// How many may wait before those are refused whose connection has its share of them.
    private var roomForAll: Int
    private var state = State.open
    /// The lane found nothing to do and waits to be woken.
    private var laneSleeps = false
    private var lastWasSingle = false
    private let capacity: Int
    private let loadMaximum: Int
    private let waitMaximumSeconds: Double

    /// - Parameters:
    ///   - capacity: how many requests may wait; one more is refused as overload.
    ///   - loadMaximum: requests that go together at most.
    ///   - waitMaximum: requests that would have to wait for longer are refused as overload.
    init(capacity: Int, loadMaximum: Int = 512, waitMaximum: Duration = .seconds(60)) {
        self.capacity = capacity
        self.loadMaximum = loadMaximum
        waitMaximumSeconds = waitMaximum / .seconds(1)
        rate = DrainRate(loadMaximum: loadMaximum)
        roomForAll = LaneQueue.roomForAll(capacity)
    }

    /// The rest is for connections that have few waiting, when others have filled this.
    private static func roomForAll(_ capacity: Int) -> Int { capacity - capacity / 128 }

    var count: Int { waiting.count + lines.count }

    enum EnqueueAction: Equatable {
        case none
        case wakeLane
    }

    /// Takes in what may wait and hands back the rest with the reason.
    mutating func enqueue(_ requests: [Request]) -> (action: EnqueueAction, refused: ([Request], EngineError)?) {
        switch state {
        case .refusing: return (.none, (requests, .unavailable))
        case .closed: return (.none, (requests, .unavailable))
        case .open: break
        }
        var refused: [Request] = []
        if lines.isEmpty, waiting.count + requests.count <= min(loadMaximum, capacity),
            requests.allSatisfy(\.operation.isBatched)
        {
            waiting.append(contentsOf: requests)
        } else {
            for request in requests where !admit(request) { refused.append(request) }
        }
        let wakes = laneSleeps && count > 0
        if wakes { laneSleeps = false }
        return (wakes ? .wakeLane : .none, refused.isEmpty ? nil : (refused, overloaded))
    }

    private mutating func admit(_ request: Request) -> Bool {
        guard count < roomForAll || (count < capacity && isBelowShare(request)) else { return false }
        if lines.isEmpty, waiting.count < loadMaximum, request.operation.isBatched {
            waiting.append(request)
        } else {
            lines.append(request)
        }
        return true
    }

    /// Its connection has less waiting than all connections would, if they waited alike.
    private func isBelowShare(_ request: Request) -> Bool {
        let own = lines.count(sentLike: request)
        return own < max(1, roomForAll / (lines.lineCount + (own == 0 ? 1 : 0)))
    }

    private var overloaded: EngineError {
        var error = EngineError.overloaded
        error.retryAfterMilliseconds = rate.milliseconds(toTake: count).map { max(50, min($0, 10_000)) }
        return error
    }

    /// The next load, or nil, after which the lane sleeps until it is woken.
    ///
    /// Requests that go alone take turns with batches, so that neither waits for many of the other.
    mutating func take(atMost limit: Int, at now: ContinuousClock.Instant = .now) -> Load? {
        guard count > 0 else {
            laneSleeps = true
            rest()
            return nil
        }
        laneSleeps = false
        if waiting.isEmpty, !lastWasSingle, let single = lines.takeSingle() {
            return leave(.single(single), 1, at: now)
        }
        var batch = Array(waiting.prefix(limit))
        waiting.removeFirst(batch.count)
        if waiting.isEmpty { lines.fill(&batch, upTo: limit) }
        if batch.isEmpty, let single = lines.takeSingle() {
            return leave(.single(single), 1, at: now)
        }
        return leave(.batch(batch), batch.count, at: now)
    }

    private mutating func leave(_ load: Load, _ loadCount: Int, at now: ContinuousClock.Instant) -> Load {
        if case .single = load { lastWasSingle = true } else { lastWasSingle = false }
        rate.take(loadCount, leavesSome: count > 0, at: now)
        // With less than a load waiting, loads would shrink, each costs the same, and so even fewer could be served.
        roomForAll = LaneQueue.roomForAll(capacity)
        if let taken = rate.taken(withinSeconds: waitMaximumSeconds) {
            roomForAll = min(roomForAll, max(loadMaximum, taken))
        }
        return load
    }

    /// Nothing is known of how fast those who come now will be served.
    mutating func rest() {
        rate.rest()
        roomForAll = LaneQueue.roomForAll(capacity)
    }

    /// Removes and returns the requests whose deadline has passed. Each connection's wait in the order of their deadlines,
    /// because all have the same time, so the oldest stand first.
    mutating func expire(at now: ContinuousClock.Instant) -> [Request] {
        var expired: [Request] = []
        while let first = waiting.first, first.deadline <= now {
            expired.append(waiting.removeFirst())
        }
        if !lines.isEmpty { lines.expire(at: now, into: &expired) }
        return expired
    }

    /// When the next waiting request's deadline passes.
    var nextDeadline: ContinuousClock.Instant? {
        [waiting.first?.deadline, lines.nextDeadline].compactMap(\.self).min()
    }

    mutating func refuse() {
        if state == .open { state = .refusing }
    }

    mutating func reopen() {
        if state == .refusing { state = .open }
    }

    mutating func close() -> EnqueueAction {
        state = .closed
        defer { laneSleeps = false }
        return laneSleeps ? .wakeLane : .none
    }

    /// Closed, and everything that was taken in has been carried.
    var isDrained: Bool { state == .closed && count == 0 }
}
