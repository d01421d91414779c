import Usage

/// The readings that dashboards wait for: one runs at a time, and all who wait for the same one share it. Sans-IO; the
/// reader and the event loops share it under a lock.
///
/// Nobody joins a reading that runs already: it may have passed the row of a message that was counted before the question
/// came. Whoever asks meanwhile shares the next one.
struct ReadingQueue {
    private struct Waiting {
        var reading: Reading
        var requests: [ReadingRequest]
    }

    enum Turn: Equatable {
        /// Begin with the table's first page.
        case begin(Reading)
        /// Go on with the one that runs.
        case goOn(Reading)
    }

    private enum State: Equatable {
        /// Can transition to: closed.
        case open
        /// Nothing is taken in any more; what waits is still read. Final.
        case closed
    }

    /// Each is asked for by somebody; the oldest stands first.
    private var waiting: [Waiting] = []
    private var running: Waiting?
    private var state = State.open
    private let capacity: Int
    /// What those are told whose deadline passes.
    private var lateness = EngineError.readingTookTooLong
    /// No request waits longer, whatever its own deadline.
    private var latest: ContinuousClock.Instant?

    /// - Parameter capacity: requests that may wait; one more is refused as overload.
    init(capacity: Int) {
        self.capacity = capacity
    }

    /// The reason when the request is not taken in.
    mutating func enqueue(_ request: ReadingRequest) -> EngineError? {
        guard state == .open else { return .readingWasCutShort }
        guard count < capacity else { return .tooManyReadings }
        if let index = waiting.firstIndex(where: { $0.reading == request.reading }) {
            waiting[index].requests.append(request)
        } else {
            waiting.append(Waiting(reading: request.reading, requests: [request]))
        }
        return nil
    }

    /// Requests that have no outcome yet.
    var count: Int { waiting.reduce(running?.requests.count ?? 0) { $0 + $1.requests.count } }

    /// What the reader does next: it goes on while anybody waits for what runs, else it begins the next. Nil when there
    /// is nothing to read.
    mutating func next() -> Turn? {
        if let running, !running.requests.isEmpty { return .goOn(running.reading) }
        running = waiting.isEmpty ? nil : waiting.removeFirst()
        return (running?.reading).map { .begin($0) }
    }

    /// The running reading is over.
    mutating func finish(_ outcome: Outcome) -> [Completion] {
        defer { running = nil }
        return completions(of: running?.requests ?? [], outcome)
    }

    /// The database has been away for longer than it is worth waiting.
    mutating func refuseAll(_ error: EngineError) -> [Completion] {
        let all = (running?.requests ?? []) + waiting.flatMap(\.requests)
        running = nil
        waiting.removeAll()
        return completions(of: all, .failure(error))
    }

    /// Removes those whose deadline has passed.
    mutating func expire(at now: ContinuousClock.Instant) -> [Completion] {
        guard let next = nextDeadline, next <= now else { return [] }
        if let latest, latest <= now { return refuseAll(lateness) }
        var expired: [ReadingRequest] = []
        func isExpired(_ request: ReadingRequest) -> Bool {
            guard request.deadline <= now else { return false }
            expired.append(request)
            return true
        }
        running?.requests.removeAll(where: isExpired)
        for index in waiting.indices { waiting[index].requests.removeAll(where: isExpired) }
        waiting.removeAll { $0.requests.isEmpty }
        return completions(of: expired, .failure(lateness))
    }

    /// When the next request's time is up; nil when nobody waits.
    var nextDeadline: ContinuousClock.Instant? {
        let deadlines = (running?.requests ?? []).map(\.deadline) + waiting.flatMap { $0.requests.map(\.deadline) }
        guard let earliest = deadlines.min() else { return nil }
        return latest.map { min($0, earliest) } ?? earliest
    }

    /// The service shuts down: whoever still waits at `deadline` is told so.
    mutating func drain(by deadline: ContinuousClock.Instant) {
        latest = deadline
        lateness = .readingWasCutShort
    }

    mutating func close() { state = .closed }

    /// Closed, and everybody who was taken in has an outcome.
    var isDrained: Bool { state == .closed && count == 0 }

    private func completions(of requests: [ReadingRequest], _ outcome: Outcome) -> [Completion] {
        requests.map { Completion(returnAddress: $0.returnAddress, outcome: outcome) }
    }
}
