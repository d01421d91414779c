import ServiceCore

/// The connections of the HTTP port, and which of them is closed to make room for a new one. No I/O.
///
/// Every new connection is admitted, because it may be a load balancer's health check. At a limit, the connection that
/// has been idle for longest is evicted, which HTTP clients have to expect of an unused connection. Busy connections
/// are never evicted. They always leave a few places to others, so that a new connection has time to send its request
/// before further new connections evict it.
struct ConnectionLimiterStateMachine {
    struct Limits: Equatable, Sendable {
        /// The maximum of busy connections, and of all connections unless that leaves fewer places than `newcomers`.
        var all: Int
        /// The same for the connections of one network.
        var perNetwork: Int
        /// How many connections that are not busy always have a place. A quarter of the maximum if that is less.
        var newcomers: Int
    }

    struct Eviction: Equatable {
        var id: Int
        var reason: RejectionReason
    }

    struct Admission: Equatable {
        var id: Int
        /// The connections to close.
        var evictions: [Eviction]
    }

    private enum State {
        /// Can transition to: healthCheck, busy.
        case idle
        /// The connection is answering a health check. Can transition to: idle, busy.
        case healthCheck
        /// The connection is answering another request. Can transition to: idle.
        case busy
    }

    private struct Connection {
        let network: PeerNetwork?
        var state = State.idle
    }

    /// All connections, or those of one network.
    private struct Group {
        var idle = LinkedSet<Int>()
        var healthChecks = LinkedSet<Int>()
        var busyCount = 0

        var count: Int { idle.count + healthChecks.count + busyCount }

        /// A health check is answered at once, so a connection stays in that state only if its peer does not read.
        var firstToEvict: Int? { idle.first ?? healthChecks.first }

        mutating func insert(_ id: Int, _ state: State) {
            switch state {
            case .idle: idle.append(id)
            case .healthCheck: healthChecks.append(id)
            case .busy: busyCount += 1
            }
        }

        mutating func remove(_ id: Int, _ state: State) {
            switch state {
            case .idle: idle.remove(id)
            case .healthCheck: healthChecks.remove(id)
            case .busy: busyCount -= 1
            }
        }
    }

    private let limits: Limits
    private var connections: [Int: Connection] = [:]
    private var lastID = 0
    private var all = Group()
    private var networks: [PeerNetwork: Group] = [:]

    init(_ limits: Limits) {
        self.limits = limits
    }

    var idleCount: Int { all.idle.count }
    /// The connections that are answering a request, or a health check.
    var busyCount: Int { connections.count - idleCount }

    /// A connection was accepted.
    ///
    /// - Parameter network: nil is exempt from the limit per network.
    mutating func opened(from network: PeerNetwork?) -> Admission {
        var evictions: [Eviction] = []
        if let network {
            while let id = idToEvict(from: networks[network] ?? Group(), limits.perNetwork) {
                evictions.append(Eviction(id: id, reason: .networkLimit))
                closed(id)
            }
        }
        while let id = idToEvict(from: all, limits.all) {
            evictions.append(Eviction(id: id, reason: .connectionLimit))
            closed(id)
        }
        lastID += 1
        let connection = Connection(network: network)
        connections[lastID] = connection
        insert(lastID, connection)
        return Admission(id: lastID, evictions: evictions)
    }

    /// - Returns: nil if there is room for one more.
    private func idToEvict(from group: Group, _ maximum: Int) -> Int? {
        let newcomers = max(1, min(limits.newcomers, maximum / 4))
        return group.count < max(maximum, group.busyCount + newcomers) ? nil : group.firstToEvict
    }

    /// A request's head was received.
    ///
    /// - Returns: false if the request must be refused, because the maximum of connections is busy.
    mutating func requestBegan(_ id: Int, isHealthCheck: Bool) -> Bool {
        guard let connection = connections[id] else { return false }
        if connection.state == .busy { return true }
        if isHealthCheck {
            transition(id, to: .healthCheck)
            return true
        }
        guard hasRoom(for: connection.network) else { return false }
        transition(id, to: .busy)
        return true
    }

    /// Whether one more connection may become busy.
    func hasRoom(for network: PeerNetwork?) -> Bool {
        let busyOfNetwork = network.flatMap { networks[$0]?.busyCount } ?? 0
        return all.busyCount < limits.all && busyOfNetwork < limits.perNetwork
    }

    /// All requests are answered. The connection becomes the last to be evicted.
    mutating func becameIdle(_ id: Int) {
        transition(id, to: .idle)
    }

    /// Changes nothing for an unknown id.
    mutating func closed(_ id: Int) {
        guard let connection = connections.removeValue(forKey: id) else { return }
        remove(id, connection)
    }

    private mutating func transition(_ id: Int, to state: State) {
        guard var connection = connections[id], connection.state != state else { return }
        remove(id, connection)
        connection.state = state
        connections[id] = connection
        insert(id, connection)
    }

    private mutating func insert(_ id: Int, _ connection: Connection) {
        all.insert(id, connection.state)
        if let network = connection.network { networks[network, default: Group()].insert(id, connection.state) }
    }

    private mutating func remove(_ id: Int, _ connection: Connection) {
        all.remove(id, connection.state)
        guard let network = connection.network else { return }
        networks[network]?.remove(id, connection.state)
        if networks[network]?.count == 0 { networks[network] = nil }
    }
}
