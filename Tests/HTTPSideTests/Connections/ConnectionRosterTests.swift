import HeadroomServer
import NIOCore
import TestSupport
import Testing

@testable import HTTPSide

@Suite("The roster of the HTTP port's connections")
struct ConnectionRosterTests {
    private func network(_ address: String) throws -> PeerNetwork {
        try #require(PeerNetwork(SocketAddress(ipAddress: address, port: 1_000)))
    }

    private func roster(all: Int = 3, perNetwork: Int = .max, probes: Int = 2) -> ConnectionRoster {
        ConnectionRoster(ConnectionRoster.Limits(all: all, perNetwork: perNetwork, probes: probes))
    }

    private typealias Arrival = ConnectionRoster.Arrival
    private typealias Closing = ConnectionRoster.Closing

    @Test("closes the connection that has waited longest when one comes beyond the limit")
    func longestWaiting() {
        var roster = roster()
        for number in 1...3 { #expect(roster.arrive(from: nil) == Arrival(number: number, isProbe: false)) }
        // The first one is answered meanwhile, and waits behind the others.
        #expect(roster.begin(1, asksForHealth: false) == .taken(nil))
        #expect((roster.waitingCount, roster.busyCount, roster.probeCount) == (2, 1, 0))
        roster.wait(1)
        for (newcomer, closed) in [(4, 2), (5, 3), (6, 1), (7, 4)] {
            let arrival = roster.arrive(from: nil)
            #expect(
                arrival == Arrival(number: newcomer, isProbe: false, closing: Closing(number: closed, reason: .all))
            )
        }
        #expect((roster.waitingCount, roster.busyCount, roster.probeCount) == (3, 0, 0))
    }

    @Test("closes one of the newcomer's own address where that has as many as it may")
    func perNetwork() throws {
        let (one, other) = (try network("192.0.2.1"), try network("192.0.2.2"))
        var roster = roster(all: 9, perNetwork: 2)
        #expect(roster.arrive(from: other).number == 1)
        #expect(roster.arrive(from: one).number == 2)
        #expect(roster.arrive(from: one).number == 3)
        #expect(roster.arrive(from: one).closing == Closing(number: 2, reason: .address))
        #expect(roster.begin(3, asksForHealth: false) == .taken(nil))
        #expect(roster.begin(4, asksForHealth: false) == .taken(nil))
        #expect(roster.arrive(from: one) == Arrival(number: 5, isProbe: true), "both of its address are busy")
        #expect(roster.arrive(from: other) == Arrival(number: 6, isProbe: false))
        #expect(roster.arrive(from: nil) == Arrival(number: 7, isProbe: false))
        roster.leave(3)
        #expect(roster.begin(5, asksForHealth: false) == .taken(nil), "it has a place now")
        #expect((roster.waitingCount, roster.busyCount, roster.probeCount) == (3, 2, 0))
    }

    @Test("lets a newcomer in as a probe where all are busy, which may ask for health only")
    func probes() {
        var roster = roster()
        for number in 1...3 {
            _ = roster.arrive(from: nil)
            #expect(roster.begin(number, asksForHealth: false) == .taken(nil))
        }
        #expect(roster.arrive(from: nil) == Arrival(number: 4, isProbe: true))
        #expect(roster.begin(4, asksForHealth: true) == .taken(nil))
        roster.wait(4)
        #expect(roster.begin(4, asksForHealth: false) == .refused)
        #expect((roster.waitingCount, roster.busyCount, roster.probeCount) == (0, 3, 1))
        roster.wait(2)
        #expect(roster.begin(4, asksForHealth: false) == .taken(Closing(number: 2, reason: .all)))
        #expect((roster.waitingCount, roster.busyCount, roster.probeCount) == (0, 3, 0))
    }

    @Test("closes the probe that has waited longest when there are too many, and one that is answered only then")
    func tooManyProbes() {
        var roster = roster()
        for number in 1...3 {
            _ = roster.arrive(from: nil)
            _ = roster.begin(number, asksForHealth: false)
        }
        for number in 4...5 { #expect(roster.arrive(from: nil).number == number) }
        #expect(roster.arrive(from: nil).closing == Closing(number: 4, reason: .probes))
        #expect(roster.begin(5, asksForHealth: true) == .taken(nil))
        #expect(roster.arrive(from: nil).closing == Closing(number: 6, reason: .probes))
        #expect(roster.begin(7, asksForHealth: true) == .taken(nil))
        #expect(roster.arrive(from: nil).closing == Closing(number: 5, reason: .probes), "busy for longest")
        #expect(roster.probeCount == 2)
    }

    @Test("forgets who left, and does nothing for a number that nobody has")
    func leaving() throws {
        var roster = roster(all: 1, perNetwork: 1)
        let one = try network("2001:db8::1")
        #expect(roster.arrive(from: one).number == 1)
        roster.leave(1)
        roster.leave(1)
        roster.wait(1)
        #expect(roster.begin(1, asksForHealth: true) == .refused)
        #expect(roster.arrive(from: one) == Arrival(number: 2, isProbe: false))
        #expect((roster.waitingCount, roster.busyCount, roster.probeCount) == (1, 0, 0))
    }

    @Test("equals a plain list that is searched each time", arguments: SeededGenerator.seeds)
    func model(seed: UInt64) throws {
        print("seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        let networks = [nil, try network("192.0.2.1"), try network("192.0.2.2"), try network("2001:db8::1")]
        for _ in 0..<50 {
            let limits = ConnectionRoster.Limits(
                all: Int.random(in: 1...6, using: &generator),
                perNetwork: generator.chance(50) ? .max : Int.random(in: 1...4, using: &generator),
                probes: Int.random(in: 1...3, using: &generator)
            )
            var roster = ConnectionRoster(limits)
            var list = ListedConnections(limits: limits)
            for _ in 0..<200 {
                let number = Int.random(in: 1...max(1, list.lastNumber), using: &generator)
                switch Int.random(in: 0..<10, using: &generator) {
                case 0..<4:
                    let network = generator.element(of: networks)
                    #expect(roster.arrive(from: network) == list.arrive(from: network), "seed \(seed)")
                case 4..<7:
                    let health = generator.chance(30)
                    #expect(
                        roster.begin(number, asksForHealth: health) == list.begin(number, asksForHealth: health),
                        "seed \(seed)"
                    )
                case 7..<9:
                    roster.wait(number)
                    list.wait(number)
                default:
                    roster.leave(number)
                    list.leave(number)
                }
                #expect(roster.waitingCount == list.count { !$0.isProbe && !$0.isBusy }, "seed \(seed)")
                #expect(roster.busyCount == list.count { !$0.isProbe && $0.isBusy }, "seed \(seed)")
                #expect(roster.probeCount == list.count { $0.isProbe }, "seed \(seed)")
                #expect(roster.waitingCount + roster.busyCount <= limits.all && roster.probeCount <= limits.probes)
            }
        }
    }
}

/// The same by the most obvious means.
private struct ListedConnections {
    struct Listed {
        var number: Int
        var network: PeerNetwork?
        var isProbe: Bool
        var isBusy = false
    }

    let limits: ConnectionRoster.Limits
    private(set) var lastNumber = 0
    /// In the order in which they became what they are, waiting or busy.
    private var list: [Listed] = []

    init(limits: ConnectionRoster.Limits) {
        self.limits = limits
    }

    func count(where condition: (Listed) -> Bool) -> Int { list.filter(condition).count }

    private func place(for network: PeerNetwork?) -> (isFree: Bool, closing: ConnectionRoster.Closing?) {
        let regular = list.filter { !$0.isProbe }
        let own = regular.filter { network != nil && $0.network == network }
        if own.count >= limits.perNetwork {
            let first = own.first { !$0.isBusy }
            return (first != nil, first.map { ConnectionRoster.Closing(number: $0.number, reason: .address) })
        }
        guard regular.count >= limits.all else { return (true, nil) }
        let first = regular.first { !$0.isBusy }
        return (first != nil, first.map { ConnectionRoster.Closing(number: $0.number, reason: .all) })
    }

    mutating func arrive(from network: PeerNetwork?) -> ConnectionRoster.Arrival {
        var (isFree, closing) = place(for: network)
        let probes = list.filter(\.isProbe)
        if !isFree, probes.count >= limits.probes {
            closing = (probes.first { !$0.isBusy } ?? probes.first).map {
                ConnectionRoster.Closing(number: $0.number, reason: .probes)
            }
        }
        list.removeAll { $0.number == closing?.number }
        lastNumber += 1
        list.append(Listed(number: lastNumber, network: network, isProbe: !isFree))
        return ConnectionRoster.Arrival(number: lastNumber, isProbe: !isFree, closing: closing)
    }

    mutating func begin(_ number: Int, asksForHealth: Bool) -> ConnectionRoster.Beginning {
        guard let listed = list.first(where: { $0.number == number }) else { return .refused }
        guard listed.isProbe, !asksForHealth else {
            set(number, isBusy: true)
            return .taken(nil)
        }
        let (isFree, closing) = place(for: listed.network)
        guard isFree else { return .refused }
        list.removeAll { $0.number == number || $0.number == closing?.number }
        list.append(Listed(number: number, network: listed.network, isProbe: false, isBusy: true))
        return .taken(closing)
    }

    mutating func wait(_ number: Int) { set(number, isBusy: false) }

    private mutating func set(_ number: Int, isBusy: Bool) {
        guard let place = list.firstIndex(where: { $0.number == number }), list[place].isBusy != isBusy else { return }
        var listed = list.remove(at: place)
        listed.isBusy = isBusy
        list.append(listed)
    }

    mutating func leave(_ number: Int) { list.removeAll { $0.number == number } }
}
