import HeadroomServer
import NIOCore
import TestSupport
import Testing

@testable import HTTPServer

@Suite("The roster of the HTTP port's connections")
struct ConnectionRosterTests {
    private func network(_ address: String) throws -> PeerNetwork {
        try #require(PeerNetwork(SocketAddress(ipAddress: address, port: 1_000)))
    }

    private func roster(all: Int = 3, perNetwork: Int = .max, newcomers: Int = 2) -> ConnectionRoster {
        ConnectionRoster(ConnectionRoster.Limits(all: all, perNetwork: perNetwork, newcomers: newcomers))
    }

    private typealias Arrival = ConnectionRoster.Arrival
    private typealias Closing = ConnectionRoster.Closing

    @Test("closes the connection that has waited longest when one comes beyond the limit")
    func longestWaiting() {
        var roster = roster()
        for number in 1...3 { #expect(roster.arrive(from: nil) == Arrival(number: number, closing: [])) }
        // The first one is answered meanwhile, and waits behind the others.
        #expect(roster.begin(1, asksForHealth: false) == true)
        #expect((roster.waitingCount, roster.busyCount) == (2, 1))
        roster.wait(1)
        for (newcomer, closed) in [(4, 2), (5, 3), (6, 1), (7, 4)] {
            let arrival = roster.arrive(from: nil)
            #expect(arrival == Arrival(number: newcomer, closing: [Closing(number: closed, reason: .all)]))
        }
        #expect((roster.waitingCount, roster.busyCount) == (3, 0))
    }

    @Test("closes one of the newcomer's own address where that has as many as it may")
    func perNetwork() throws {
        let (one, other) = (try network("192.0.2.1"), try network("192.0.2.2"))
        var roster = roster(all: 9, perNetwork: 2)
        #expect(roster.arrive(from: other).number == 1)
        #expect(roster.arrive(from: one).number == 2)
        #expect(roster.arrive(from: one).number == 3)
        #expect(roster.arrive(from: one).closing == [Closing(number: 2, reason: .address)])
        for number in 3...4 { #expect(roster.begin(number, asksForHealth: false) == true) }
        #expect(roster.arrive(from: one) == Arrival(number: 5, closing: []), "both of its address are busy")
        #expect(roster.arrive(from: other) == Arrival(number: 6, closing: []))
        #expect(roster.arrive(from: nil) == Arrival(number: 7, closing: []))
        #expect(roster.begin(5, asksForHealth: false) == false)
        #expect(roster.begin(5, asksForHealth: true) == true)
        #expect(roster.begin(6, asksForHealth: false) == true, "another address has room")
        roster.leave(3)
        #expect(roster.begin(5, asksForHealth: false) == true, "and so has it now")
    }

    @Test("refuses what is not about health where as many as may be are busy")
    func busy() {
        var roster = roster()
        for number in 1...3 {
            _ = roster.arrive(from: nil)
            #expect(roster.begin(number, asksForHealth: false) == true)
        }
        #expect(roster.arrive(from: nil) == Arrival(number: 4, closing: []))
        #expect(roster.begin(4, asksForHealth: true) == true)
        roster.wait(4)
        #expect(roster.begin(4, asksForHealth: false) == false)
        #expect((roster.waitingCount, roster.busyCount) == (1, 3))
        #expect(roster.begin(3, asksForHealth: true) == true)
        #expect(roster.begin(3, asksForHealth: false) == true, "it is busy already")
        roster.wait(2)
        #expect(roster.begin(4, asksForHealth: false) == true)
    }

    @Test("leaves newcomers places however many are busy, and closes no busy connection")
    func placesForNewcomers() {
        var roster = roster(all: 16, newcomers: 4)
        var numbers: [Int] = []
        for _ in 1...16 {
            numbers.append(roster.arrive(from: nil).number)
            #expect(roster.begin(numbers.last ?? 0, asksForHealth: false) == true)
        }
        for number in 17...20 { #expect(roster.arrive(from: nil) == Arrival(number: number, closing: [])) }
        #expect(roster.arrive(from: nil).closing == [Closing(number: 17, reason: .all)])
        #expect(roster.begin(18, asksForHealth: true) == true)
        #expect(roster.arrive(from: nil).closing == [Closing(number: 19, reason: .all)], "which waits")
        for number in 20...22 { #expect(roster.begin(number, asksForHealth: true) == true) }
        #expect(roster.arrive(from: nil).closing == [Closing(number: 18, reason: .all)], "answered for longest")
        // Fewer are busy, and so fewer may be there.
        for number in 1...8 { roster.wait(number) }
        let closing = roster.arrive(from: nil).closing
        #expect(closing.map(\.number) == [23, 1, 2, 3, 4])
        #expect(roster.waitingCount + roster.busyCount == 16)
    }

    @Test("forgets who left, and does nothing for a number that nobody has")
    func leaving() throws {
        var roster = roster(all: 1, perNetwork: 1)
        let one = try network("2001:db8::1")
        #expect(roster.arrive(from: one).number == 1)
        roster.leave(1)
        roster.leave(1)
        roster.wait(1)
        #expect(roster.begin(1, asksForHealth: true) == false)
        #expect(roster.arrive(from: one) == Arrival(number: 2, closing: []))
        #expect((roster.waitingCount, roster.busyCount) == (1, 0))
    }

    @Test("equals a plain list that is searched each time", arguments: SeededGenerator.seeds)
    func model(seed: UInt64) throws {
        print("seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        let networks = [nil, try network("192.0.2.1"), try network("192.0.2.2"), try network("2001:db8::1")]
        for _ in 0..<50 {
            let limits = ConnectionRoster.Limits(
                all: Int.random(in: 1...12, using: &generator),
                perNetwork: generator.chance(50) ? .max : Int.random(in: 1...8, using: &generator),
                newcomers: Int.random(in: 1...3, using: &generator)
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
                #expect(roster.waitingCount == list.count { $0.state == .waits }, "seed \(seed)")
                #expect(roster.busyCount == list.count { $0.state != .waits }, "seed \(seed)")
                let most = limits.all + max(1, min(limits.newcomers, limits.all / 4))
                #expect(roster.waitingCount + roster.busyCount <= most, "seed \(seed)")
            }
        }
    }
}

/// The same by the most obvious means.
private struct ListedConnections {
    enum State { case waits, asksForHealth, isBusy }

    struct Listed {
        var number: Int
        var network: PeerNetwork?
        var state = State.waits
    }

    let limits: ConnectionRoster.Limits
    /// In the order in which they came into their state.
    private var list: [Listed] = []
    private(set) var lastNumber = 0

    init(limits: ConnectionRoster.Limits) {
        self.limits = limits
    }

    func count(_ condition: (Listed) -> Bool) -> Int { list.filter(condition).count }

    private mutating func makeRoom(
        _ maximum: Int,
        _ reason: TurnedAway,
        _ belongs: (Listed) -> Bool
    ) -> [ConnectionRoster.Closing] {
        var closing: [ConnectionRoster.Closing] = []
        let reserve = max(1, min(limits.newcomers, maximum / 4))
        while list.count(where: belongs) >= max(maximum, list.count { belongs($0) && $0.state == .isBusy } + reserve) {
            let there = list.filter(belongs)
            let next = there.first { $0.state == .waits } ?? there.first { $0.state == .asksForHealth }
            guard let next else { break }
            closing.append(ConnectionRoster.Closing(number: next.number, reason: reason))
            leave(next.number)
        }
        return closing
    }

    mutating func arrive(from network: PeerNetwork?) -> ConnectionRoster.Arrival {
        var closing: [ConnectionRoster.Closing] = []
        if network != nil { closing = makeRoom(limits.perNetwork, .address) { $0.network == network } }
        closing += makeRoom(limits.all, .all) { _ in true }
        lastNumber += 1
        list.append(Listed(number: lastNumber, network: network))
        return ConnectionRoster.Arrival(number: lastNumber, closing: closing)
    }

    mutating func begin(_ number: Int, asksForHealth: Bool) -> Bool {
        guard let listed = list.first(where: { $0.number == number }) else { return false }
        if listed.state == .isBusy { return true }
        if asksForHealth {
            set(number, .asksForHealth)
            return true
        }
        let busy = list.filter { $0.state == .isBusy }
        guard busy.count < limits.all else { return false }
        let ofNetwork = listed.network == nil ? 0 : busy.count { $0.network == listed.network }
        guard ofNetwork < limits.perNetwork else { return false }
        set(number, .isBusy)
        return true
    }

    mutating func wait(_ number: Int) { set(number, .waits) }

    private mutating func set(_ number: Int, _ state: State) {
        guard let place = list.firstIndex(where: { $0.number == number }), list[place].state != state else { return }
        var listed = list.remove(at: place)
        listed.state = state
        list.append(listed)
    }

    mutating func leave(_ number: Int) { list.removeAll { $0.number == number } }
}
