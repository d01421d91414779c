import NIOCore
import ServiceCore
import TestSupport
import Testing

@testable import HTTPServer

@Suite("The connection limiter")
struct ConnectionLimiterTests {
    private func network(_ address: String) throws -> PeerNetwork {
        try #require(PeerNetwork(SocketAddress(ipAddress: address, port: 1_000)))
    }

    private func limiter(all: Int = 3, perNetwork: Int = .max, newcomers: Int = 2) -> ConnectionLimiterStateMachine {
        ConnectionLimiterStateMachine(
            ConnectionLimiterStateMachine.Limits(all: all, perNetwork: perNetwork, newcomers: newcomers)
        )
    }

    private typealias Admission = ConnectionLimiterStateMachine.Admission
    private typealias Eviction = ConnectionLimiterStateMachine.Eviction

    @Test("a connection over its address's limit evicts one of the same address")
    func perNetwork() throws {
        let (one, other) = (try network("192.0.2.1"), try network("192.0.2.2"))
        var limiter = limiter(all: 9, perNetwork: 2)
        #expect(limiter.opened(from: other).id == 1)
        #expect(limiter.opened(from: one).id == 2)
        #expect(limiter.opened(from: one).id == 3)
        #expect(limiter.opened(from: one).evictions == [Eviction(id: 2, reason: .networkLimit)])
        for id in 3...4 { #expect(limiter.requestBegan(id, isHealthCheck: false) == true) }
        #expect(limiter.opened(from: one) == Admission(id: 5, evictions: []), "both of its address are busy")
        #expect(limiter.opened(from: other) == Admission(id: 6, evictions: []))
        #expect(limiter.opened(from: nil) == Admission(id: 7, evictions: []))
        #expect(limiter.requestBegan(5, isHealthCheck: false) == false)
        #expect(limiter.requestBegan(5, isHealthCheck: true) == true)
        #expect(limiter.requestBegan(6, isHealthCheck: false) == true, "another address has room")
        limiter.closed(3)
        #expect(limiter.requestBegan(5, isHealthCheck: false) == true, "and now this address has room too")
    }

    @Test("busy connections leave places to new ones and are never evicted")
    func placesForNewConnections() {
        var limiter = limiter(all: 16, newcomers: 4)
        var ids: [Int] = []
        for _ in 1...16 {
            ids.append(limiter.opened(from: nil).id)
            #expect(limiter.requestBegan(ids.last ?? 0, isHealthCheck: false) == true)
        }
        for id in 17...20 { #expect(limiter.opened(from: nil) == Admission(id: id, evictions: [])) }
        #expect(limiter.opened(from: nil).evictions == [Eviction(id: 17, reason: .connectionLimit)])
        #expect(limiter.requestBegan(18, isHealthCheck: true) == true)
        #expect(limiter.opened(from: nil).evictions == [Eviction(id: 19, reason: .connectionLimit)], "which is idle")
        for id in 20...22 { #expect(limiter.requestBegan(id, isHealthCheck: true) == true) }
        let longestAnswered = limiter.opened(from: nil).evictions
        #expect(longestAnswered == [Eviction(id: 18, reason: .connectionLimit)])
        // Fewer busy connections also lower the maximum of all.
        for id in 1...8 { limiter.becameIdle(id) }
        let evictions = limiter.opened(from: nil).evictions
        #expect(evictions.map(\.id) == [23, 1, 2, 3, 4])
        #expect(limiter.idleCount + limiter.busyCount == 16)
    }

    @Test("behaves like a plain list", arguments: SeededGenerator.seeds)
    func model(seed: UInt64) throws {
        print("seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        let networks = [nil, try network("192.0.2.1"), try network("192.0.2.2"), try network("2001:db8::1")]
        for _ in 0..<50 {
            let limits = ConnectionLimiterStateMachine.Limits(
                all: Int.random(in: 1...12, using: &generator),
                perNetwork: generator.chance(50) ? .max : Int.random(in: 1...8, using: &generator),
                newcomers: Int.random(in: 1...3, using: &generator)
            )
            var limiter = ConnectionLimiterStateMachine(limits)
            var list = ConnectionList(limits: limits)
            for _ in 0..<200 {
                let id = Int.random(in: 1...max(1, list.lastID), using: &generator)
                switch Int.random(in: 0..<10, using: &generator) {
                case 0..<4:
                    let network = generator.element(of: networks)
                    #expect(limiter.opened(from: network) == list.opened(from: network), "seed \(seed)")
                case 4..<7:
                    let health = generator.chance(30)
                    #expect(
                        limiter.requestBegan(id, isHealthCheck: health) == list.requestBegan(id, isHealthCheck: health),
                        "seed \(seed)"
                    )
                case 7..<9:
                    limiter.becameIdle(id)
                    list.becameIdle(id)
                default:
                    limiter.closed(id)
                    list.closed(id)
                }
                #expect(limiter.idleCount == list.count { $0.state == .idle }, "seed \(seed)")
                #expect(limiter.busyCount == list.count { $0.state != .idle }, "seed \(seed)")
                let most = limits.all + max(1, min(limits.newcomers, limits.all / 4))
                #expect(limiter.idleCount + limiter.busyCount <= most, "seed \(seed)")
            }
        }
    }
}

/// The reference implementation.
private struct ConnectionList {
    enum State { case idle, healthCheck, busy }

    struct Connection {
        var id: Int
        var network: PeerNetwork?
        var state = State.idle
    }

    let limits: ConnectionLimiterStateMachine.Limits
    /// In the order of their last change of state.
    private var list: [Connection] = []
    private(set) var lastID = 0

    init(limits: ConnectionLimiterStateMachine.Limits) { self.limits = limits }

    func count(_ condition: (Connection) -> Bool) -> Int { list.filter(condition).count }

    private mutating func makeRoom(
        _ maximum: Int,
        _ reason: RejectionReason,
        _ belongs: (Connection) -> Bool
    ) -> [ConnectionLimiterStateMachine.Eviction] {
        var evictions: [ConnectionLimiterStateMachine.Eviction] = []
        let reserve = max(1, min(limits.newcomers, maximum / 4))
        while list.count(where: belongs) >= max(maximum, list.count { belongs($0) && $0.state == .busy } + reserve) {
            let members = list.filter(belongs)
            let next = members.first { $0.state == .idle } ?? members.first { $0.state == .healthCheck }
            guard let next else { break }
            evictions.append(ConnectionLimiterStateMachine.Eviction(id: next.id, reason: reason))
            closed(next.id)
        }
        return evictions
    }

    mutating func opened(from network: PeerNetwork?) -> ConnectionLimiterStateMachine.Admission {
        var evictions: [ConnectionLimiterStateMachine.Eviction] = []
        if network != nil { evictions = makeRoom(limits.perNetwork, .networkLimit) { $0.network == network } }
        evictions += makeRoom(limits.all, .connectionLimit) { _ in true }
        lastID += 1
        list.append(Connection(id: lastID, network: network))
        return ConnectionLimiterStateMachine.Admission(id: lastID, evictions: evictions)
    }

    mutating func requestBegan(_ id: Int, isHealthCheck: Bool) -> Bool {
        guard let connection = list.first(where: { $0.id == id }) else { return false }
        if connection.state == .busy { return true }
        if isHealthCheck {
            set(id, .healthCheck)
            return true
        }
        let busy = list.filter { $0.state == .busy }
        guard busy.count < limits.all else { return false }
        let ofNetwork = connection.network == nil ? 0 : busy.count { $0.network == connection.network }
        guard ofNetwork < limits.perNetwork else { return false }
        set(id, .busy)
        return true
    }

    mutating func becameIdle(_ id: Int) { set(id, .idle) }

    private mutating func set(_ id: Int, _ state: State) {
        guard let index = list.firstIndex(where: { $0.id == id }), list[index].state != state else { return }
        var connection = list.remove(at: index)
        connection.state = state
        list.append(connection)
    }

    mutating func closed(_ id: Int) { list.removeAll { $0.id == id } }
}
