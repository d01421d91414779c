import NIOCore

/// Decides which endpoint to connect to, and when to retry one that failed.
///
/// One endpoint is in use at a time, the first reachable one; another one replaces it when it fails.
struct EndpointsStateMachine<Connection> {
    struct Attempt: Equatable {
        var id: UInt64
        /// Its index in the configuration.
        var endpoint: Int
    }

    private struct Endpoint {
        /// Failures in a row.
        var failures = 0
        /// No attempt begins before this. Nil if nothing has failed since a connection was last opened.
        var retryAt: NIODeadline?
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

    /// Whether the endpoint in use has all its connections.
    var isComplete: Bool { endpoints[current].open.count >= connectionsPerEndpoint }

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
            let missing = connectionsPerEndpoint - inUse.open.count - inUse.opening.count
            // Requests have a connection, so missing ones wait for the retry time.
            guard missing > 0, inUse.retryAt.map({ $0 <= now }) ?? true else { return .nothing }
            return .connect((0..<missing).map { _ in attempt(current) })
        }
        guard endpoints.allSatisfy({ $0.opening.isEmpty }) else { return .nothing }
        for offset in endpoints.indices {
            let index = (current + offset) % endpoints.count
            if endpoints[index].retryAt.map({ $0 <= now }) ?? true { return .connect([attempt(index)]) }
        }
        return endpoints.compactMap(\.retryAt).min().map { .wait(until: $0) } ?? .nothing
    }

    private mutating func attempt(_ endpoint: Int) -> Attempt {
        lastID += 1
        endpoints[endpoint].opening[lastID] = false
        return Attempt(id: lastID, endpoint: endpoint)
    }

    /// - Returns: false when the connection has closed already; call `failed` then.
    mutating func opened(_ attempt: Attempt, _ connection: Connection) -> Bool {
        guard endpoints[attempt.endpoint].opening[attempt.id] == false else { return false }
        endpoints[attempt.endpoint].opening[attempt.id] = nil
        endpoints[attempt.endpoint].retryAt = nil
        endpoints[attempt.endpoint].open.append((attempt.id, connection))
        if endpoints[current].open.isEmpty { current = attempt.endpoint }
        return true
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
        let index = endpoints[attempt.endpoint].open.firstIndex { $0.id == attempt.id }
        if let index { endpoints[attempt.endpoint].open.remove(at: index) }
        guard wasOpening || index != nil else { return .nothingToReport }
        let failures = endpoints[attempt.endpoint].failures
        endpoints[attempt.endpoint].failures = failures + 1
        endpoints[attempt.endpoint].retryAt = now + TimeAmount(backoff.pause(after: failures, using: &generator))
        return wasOpening ? .notOpened : .lost
    }
}
