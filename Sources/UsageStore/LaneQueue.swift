import DequeModule

/// The requests that wait for one lane. Sans-IO: the lane and the event loops share it under a lock, and act on what it
/// returns outside of it.
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

    private var waiting: Deque<Request> = []
    private var state = State.open
    /// The lane found nothing to do and waits to be woken.
    private var laneSleeps = false
    private let capacity: Int

    /// - Parameter capacity: how many requests may wait; one more is refused as overload.
    init(capacity: Int) {
        self.capacity = capacity
    }

    var count: Int { waiting.count }

    enum EnqueueAction: Equatable {
        case none
        case wakeLane
    }

    /// Takes in what fits and hands back the rest with the reason.
    mutating func enqueue(_ requests: [Request]) -> (action: EnqueueAction, refused: (ArraySlice<Request>, StoreError)?)
    {
        switch state {
        case .refusing: return (.none, (requests[...], .unavailable))
        case .closed: return (.none, (requests[...], .unavailable))
        case .open: break
        }
        let room = max(0, capacity - waiting.count)
        waiting.append(contentsOf: requests.prefix(room))
        let refused = requests.dropFirst(room)
        let wakes = laneSleeps && !waiting.isEmpty
        if wakes { laneSleeps = false }
        return (wakes ? .wakeLane : .none, refused.isEmpty ? nil : (refused, .overloaded))
    }

    /// The next load, or nil, after which the lane sleeps until it is woken.
    ///
    /// A request that goes alone is carried between two batches, so that a user's requests keep their order.
    mutating func take(atMost limit: Int) -> Load? {
        guard let first = waiting.first else {
            laneSleeps = true
            return nil
        }
        laneSleeps = false
        guard first.operation.isBatched else {
            return .single(waiting.removeFirst())
        }
        var count = 0
        while count < min(limit, waiting.count), waiting[count].operation.isBatched {
            count += 1
        }
        let batch = Array(waiting.prefix(count))
        waiting.removeFirst(count)
        return .batch(batch)
    }

    /// Removes and returns the requests whose deadline has passed. They wait in the order of their deadlines, because
    /// all have the same time, so the oldest stand first.
    mutating func expire(at now: ContinuousClock.Instant) -> [Request] {
        var expired: [Request] = []
        while let first = waiting.first, first.deadline <= now {
            expired.append(waiting.removeFirst())
        }
        return expired
    }

    /// When the next waiting request's deadline passes.
    var nextDeadline: ContinuousClock.Instant? { waiting.first?.deadline }

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
    var isDrained: Bool { state == .closed && waiting.isEmpty }
}
