import Usage

/// The queue of report requests: one scan runs at a time, and all requests for the same report share it. It does no
/// I/O; the report reader and the event loops share the queue under a lock.
///
/// A request never joins a running scan: the scan may have passed the row of a message that was counted before the
/// request arrived. Such requests share the next scan.
struct ReportQueue {
    private struct Waiting {
        var query: ReportQuery
        var requests: [ReportRequest]
    }

    enum Step: Equatable {
        /// The reader begins a scan at the table's first page.
        case start(ReportQuery)
        /// The reader continues the running scan.
        case proceed(ReportQuery)
    }

    private enum State: Equatable {
        /// Can transition to: closed.
        case open
        /// No more requests are accepted; waiting ones are still answered. Final.
        case closed
    }

    /// The requests for each report, at least one; the oldest report is first.
    private var waiting: [Waiting] = []
    private var running: Waiting?
    private var state = State.open
    private let capacity: Int
    /// The outcome of requests whose deadline passes.
    private var expiryError = EngineError.reportTimedOut
    /// The latest deadline of all requests, whatever their own; nil if there is none.
    private var latest: ContinuousClock.Instant?

    /// - Parameter capacity: the most requests that may wait; one more fails with `overloaded`.
    init(capacity: Int) {
        self.capacity = capacity
    }

    /// - Returns: the error if the request is not accepted; else nil.
    mutating func enqueue(_ request: ReportRequest) -> EngineError? {
        guard state == .open else { return .reportInterrupted }
        guard count < capacity else { return .tooManyReports }
        if let index = waiting.firstIndex(where: { $0.query == request.query }) {
            waiting[index].requests.append(request)
        } else {
            waiting.append(Waiting(query: request.query, requests: [request]))
        }
        return nil
    }

    /// The number of requests that have no outcome yet.
    var count: Int { waiting.reduce(running?.requests.count ?? 0) { $0 + $1.requests.count } }

    /// The next step: the running scan continues while a request waits for it; else the next one starts. Nil if no
    /// request waits.
    mutating func next() -> Step? {
        if let running, !running.requests.isEmpty { return .proceed(running.query) }
        running = waiting.isEmpty ? nil : waiting.removeFirst()
        return (running?.query).map { .start($0) }
    }

    /// Answers the requests of the running scan, which is complete or has failed.
    mutating func finish(_ outcome: Outcome) -> [Completion] {
        defer { running = nil }
        return completions(of: running?.requests ?? [], outcome)
    }

    /// Fails all requests.
    mutating func failAll(_ error: EngineError) -> [Completion] {
        let all = (running?.requests ?? []) + waiting.flatMap(\.requests)
        running = nil
        waiting.removeAll()
        return completions(of: all, .failure(error))
    }

    /// Removes the requests whose deadline has passed.
    mutating func expire(at now: ContinuousClock.Instant) -> [Completion] {
        guard let next = nextDeadline, next <= now else { return [] }
        if let latest, latest <= now { return failAll(expiryError) }
        var expired: [ReportRequest] = []
        func isExpired(_ request: ReportRequest) -> Bool {
            guard request.deadline <= now else { return false }
            expired.append(request)
            return true
        }
        running?.requests.removeAll(where: isExpired)
        for index in waiting.indices { waiting[index].requests.removeAll(where: isExpired) }
        waiting.removeAll { $0.requests.isEmpty }
        return completions(of: expired, .failure(expiryError))
    }

    /// The earliest deadline; nil if no request waits.
    var nextDeadline: ContinuousClock.Instant? {
        let deadlines = (running?.requests ?? []).map(\.deadline) + waiting.flatMap { $0.requests.map(\.deadline) }
        guard let earliest = deadlines.min() else { return nil }
        return latest.map { min($0, earliest) } ?? earliest
    }

    /// Begins the shutdown: requests that still wait at `deadline` fail.
    mutating func drain(by deadline: ContinuousClock.Instant) {
        latest = deadline
        expiryError = .reportInterrupted
    }

    mutating func close() { state = .closed }

    /// Whether the queue is closed, and every accepted request has an outcome.
    var isDrained: Bool { state == .closed && count == 0 }

    private func completions(of requests: [ReportRequest], _ outcome: Outcome) -> [Completion] {
        requests.map { Completion(returnAddress: $0.returnAddress, outcome: outcome) }
    }
}
