import NIOCore

/// Decides which endpoint to connect to, and when to retry one that failed.
///
/// One endpoint is in use at a time, the first reachable one. Another one replaces it when it fails, until an earlier
/// one answers again.
struct EndpointsStateMachine<Connection> {
    struct Attempt: Equatable {
        var id: UInt64
        /// Its index in the configuration.
        var endpoint: Int
        /// Requests have another endpoint, so this one must answer a request before it is used: a service
        /// manager may keep its socket open while no service runs.
        var isReturn = false
    }

    private struct Endpoint {
        /// Failures in a row.
        var failures = 0
        /// No attempt begins before this. Nil if nothing has failed since a connection was last opened.
        var retryAt: NIODeadline?
        /// While another endpoint is in use, no attempt begins before this. Later than `retryAt`: a service that drains
        /// needs about a second to be back, and requests do not wait for it.
        var returnAt: NIODeadline?
        /// The attempt to return to it is under way.
        var isReturning = false
        /// Attempts under way, and whether the connection of each has closed already.
        var opening: [UInt64: Bool] = [:]
        var open: [(id: UInt64, connection: Connection)] = []
    }

    private var endpoints: [Endpoint]
    /// The endpoint in use, or the first to try.
    private var current = 0
    private var lastID: UInt64 = 0
    private var turn = 0
    private let connectionsPerEndpoint: Int
    private let backoff: Backoff

    init(endpoints: Int, connectionsPerEndpoint: Int, backoff: Backoff) {
        self.endpoints = Array(repeating: Endpoint(), count: endpoints)
        self.connectionsPerEndpoint = connectionsPerEndpoint
        self.backoff = backoff
    }

    var openCount: Int { endpoints.reduce(0) { $0 + $1.open.count } }
    var connections: [Connection] { endpoints.flatMap { $0.open.map(\.connection) } }

    /// The connection for the next request, in turn; nil when none is open.
    mutating func choose() -> Connection? {
        if endpoints[current].open.isEmpty {
            guard let other = endpoints.firstIndex(where: { !$0.open.isEmpty }) else { return nil }
            current = other
        }
        let open = endpoints[current].open
        if open.count == 1 { return open[0].connection }
        turn = (turn + 1) % open.count
        return open[turn].connection
    }

    /// Whether the endpoint in use has all its connections, and no earlier one is to be tried again.
    func isSettled(now: @autoclosure () -> NIODeadline) -> Bool {
        guard endpoints[current].open.count >= connectionsPerEndpoint else { return false }
        return current == 0 || endpointToReturnTo(now: now()) == nil
    }

    private func endpointToReturnTo(now: NIODeadline) -> Int? {
        guard !endpoints[..<current].contains(where: \.isReturning) else { return nil }
        return endpoints[..<current].firstIndex { endpoint in
            endpoint.opening.isEmpty && endpoint.returnAt.map { $0 <= now } ?? true
        }
    }

    enum Next: Equatable {
        case nothing
        case connect([Attempt])
        /// All endpoints have failed. At this time one of them may be tried again.
        case wait(until: NIODeadline)
    }

    /// What to do so that requests find a connection.
    mutating func next(now: NIODeadline) -> Next {
        let inUse = endpoints[current]
        if !inUse.open.isEmpty {
            var attempts: [Attempt] = []
            if let earlier = endpointToReturnTo(now: now) { attempts.append(attempt(earlier, isReturn: true)) }
            let missing = connectionsPerEndpoint - inUse.open.count - inUse.opening.count
            // Requests have a connection, so missing ones wait for the retry time.
            if missing > 0, inUse.retryAt.map({ $0 <= now }) ?? true {
                attempts += (0..<missing).map { _ in attempt(current) }
            }
            return attempts.isEmpty ? .nothing : .connect(attempts)
        }
        guard endpoints.allSatisfy({ $0.opening.isEmpty || $0.isReturning }) else { return .nothing }
        let eligible = endpoints.indices.map { (current + $0) % endpoints.count }.filter { index in
            endpoints[index].opening.isEmpty && endpoints[index].retryAt.map { $0 <= now } ?? true
        }
        // One that drains would refuse again, although its short pause may be over by now.
        if let index = eligible.first(where: { endpoints[$0].failures == 0 }) ?? eligible.first {
            return .connect([attempt(index)])
        }
        let waiting = endpoints.filter { $0.opening.isEmpty }
        return waiting.compactMap(\.retryAt).min().map { .wait(until: $0) } ?? .nothing
    }

    private mutating func attempt(_ endpoint: Int, isReturn: Bool = false) -> Attempt {
        lastID += 1
        endpoints[endpoint].opening[lastID] = false
        endpoints[endpoint].isReturning = isReturn
        return Attempt(id: lastID, endpoint: endpoint, isReturn: isReturn)
    }

    enum Opened {
        case accepted
        /// The client has returned to an earlier endpoint, and no longer needs these connections to others.
        case returned(from: [Connection])
        /// The connection has closed already; call `failed`.
        case closed
    }

    mutating func opened(_ attempt: Attempt, _ connection: Connection) -> Opened {
        guard endpoints[attempt.endpoint].opening[attempt.id] == false else { return .closed }
        endpoints[attempt.endpoint].opening[attempt.id] = nil
        endpoints[attempt.endpoint].retryAt = nil
        endpoints[attempt.endpoint].returnAt = nil
        if attempt.isReturn { endpoints[attempt.endpoint].isReturning = false }
        endpoints[attempt.endpoint].open.append((attempt.id, connection))
        if endpoints[current].open.isEmpty || attempt.endpoint < current { current = attempt.endpoint }
        var left: [Connection] = []
        for index in endpoints.indices where index != current {
            left += endpoints[index].open.map(\.connection)
            endpoints[index].open = []
        }
        return left.isEmpty ? .accepted : .returned(from: left)
    }

    /// The service has answered a request. An open connection alone proves little: a proxy, or a service with too many
    /// connections, accepts connections and closes them at once.
    mutating func answered(_ attempt: Attempt) {
        endpoints[attempt.endpoint].failures = 0
    }

    /// The client no longer needs the connection. The endpoint may be tried again at once.
    mutating func released(_ attempt: Attempt) {
        endpoints[attempt.endpoint].open.removeAll { $0.id == attempt.id }
    }

    enum Failure: Equatable {
        /// Reported before, or to be reported by `failed`, or the client itself has closed the connection.
        case nothingToReport
        case notOpened
        case lost
    }

    /// The connection has closed, or accepts no more requests.
    ///
    /// If the attempt to open it is still under way, no other attempt begins before `failed` reports the cause. That
    /// may be a refused token, which fails all waiting requests: another connection would be refused as well.
    mutating func closed(
        _ attempt: Attempt,
        now: NIODeadline,
        using generator: inout some RandomNumberGenerator
    ) -> Failure {
        guard endpoints[attempt.endpoint].opening[attempt.id] == nil else {
            endpoints[attempt.endpoint].opening[attempt.id] = true
            return .nothingToReport
        }
        return remove(attempt, now: now, using: &generator)
    }

    /// The connection could not be opened.
    mutating func failed(
        _ attempt: Attempt,
        now: NIODeadline,
        using generator: inout some RandomNumberGenerator
    ) -> Failure {
        remove(attempt, now: now, using: &generator)
    }

    private mutating func remove(
        _ attempt: Attempt,
        now: NIODeadline,
        using generator: inout some RandomNumberGenerator
    ) -> Failure {
        let wasOpening = endpoints[attempt.endpoint].opening.removeValue(forKey: attempt.id) != nil
        if attempt.isReturn, wasOpening { endpoints[attempt.endpoint].isReturning = false }
        let index = endpoints[attempt.endpoint].open.firstIndex { $0.id == attempt.id }
        if let index { endpoints[attempt.endpoint].open.remove(at: index) }
        guard wasOpening || index != nil else { return .nothingToReport }
        let failures = endpoints[attempt.endpoint].failures
        endpoints[attempt.endpoint].failures = failures + 1
        endpoints[attempt.endpoint].retryAt = now + TimeAmount(backoff.pause(after: failures, using: &generator))
        endpoints[attempt.endpoint].returnAt = now + TimeAmount(backoff.returnPause(after: failures, using: &generator))
        return wasOpening ? .notOpened : .lost
    }
}
