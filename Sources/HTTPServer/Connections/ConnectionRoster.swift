import HeadroomServer

/// The connections of the HTTP port: each waits for a request, is answered about health, or is busy with anything else.
/// Decides which one gives way to a newcomer. No I/O.
///
/// Every newcomer gets in, since it may be a load balancer that asks whether the service lives. Where a limit is
/// reached, the connection that has waited longest is closed: a client of HTTP has to expect that of a connection that
/// it does not use. Busy connections are not closed. They always leave some places to the others, so that a newcomer
/// has the time to ask before the next newcomers take its place.
struct ConnectionRoster {
    struct Limits: Equatable, Sendable {
        /// Busy connections, and open ones as long as those leave enough places to newcomers.
        var all: Int
        /// The same for the connections of one network.
        var perNetwork: Int
        /// How many places busy connections leave at least.
        var newcomers: Int
    }

    /// A connection that is to be closed, because a newcomer needs its place.
    struct Closing: Equatable {
        var number: Int
        var reason: TurnedAway
    }

    struct Arrival: Equatable {
        var number: Int
        var closing: [Closing]
    }

    private enum State {
        case waiting, answeringHealth, busy
    }

    private struct Member {
        let network: PeerNetwork?
        var state = State.waiting
    }

    /// All connections, or those of one network.
    private struct Crowd {
        var waiting = WaitingLine<Int>()
        var answeringHealth = WaitingLine<Int>()
        var busyCount = 0

        var count: Int { waiting.count + answeringHealth.count + busyCount }

        /// One that is answered about health is so still because its peer does not take the answer.
        var firstToClose: Int? { waiting.first ?? answeringHealth.first }

        mutating func enter(_ number: Int, _ state: State) {
            switch state {
            case .waiting: waiting.join(number)
            case .answeringHealth: answeringHealth.join(number)
            case .busy: busyCount += 1
            }
        }

        mutating func leave(_ number: Int, _ state: State) {
            switch state {
            case .waiting: waiting.leave(number)
            case .answeringHealth: answeringHealth.leave(number)
            case .busy: busyCount -= 1
            }
        }
    }

    private let limits: Limits
    private var members: [Int: Member] = [:]
    private var lastNumber = 0
    private var all = Crowd()
    private var networks: [PeerNetwork: Crowd] = [:]

    init(_ limits: Limits) {
        self.limits = limits
    }

    var waitingCount: Int { all.waiting.count }
    /// Those that are answered about health included.
    var busyCount: Int { members.count - waitingCount }

    /// A connection was accepted; it waits for its first request.
    ///
    /// - Parameter network: nil is not counted by.
    mutating func arrive(from network: PeerNetwork?) -> Arrival {
        var closing: [Closing] = []
        if let network {
            while let number = numberToClose(in: networks[network] ?? Crowd(), limits.perNetwork) {
                closing.append(Closing(number: number, reason: .address))
                leave(number)
            }
        }
        while let number = numberToClose(in: all, limits.all) {
            closing.append(Closing(number: number, reason: .all))
            leave(number)
        }
        lastNumber += 1
        let member = Member(network: network)
        members[lastNumber] = member
        enter(lastNumber, member)
        return Arrival(number: lastNumber, closing: closing)
    }

    /// Nil where there is room for one more.
    private func numberToClose(in crowd: Crowd, _ maximum: Int) -> Int? {
        let newcomers = max(1, min(limits.newcomers, maximum / 4))
        return crowd.count < max(maximum, crowd.busyCount + newcomers) ? nil : crowd.firstToClose
    }

    /// A request's head came.
    ///
    /// - Returns: false where it is to be refused, because as many as may be are busy.
    mutating func begin(_ number: Int, asksForHealth: Bool) -> Bool {
        guard let member = members[number] else { return false }
        if member.state == .busy { return true }
        if asksForHealth {
            set(number, .answeringHealth)
            return true
        }
        let busyOfNetwork = member.network.flatMap { networks[$0]?.busyCount } ?? 0
        guard all.busyCount < limits.all, busyOfNetwork < limits.perNetwork else { return false }
        set(number, .busy)
        return true
    }

    /// Everything that was asked is answered; it waits again, behind all that wait already.
    mutating func wait(_ number: Int) {
        set(number, .waiting)
    }

    /// Changes nothing where it is gone already.
    mutating func leave(_ number: Int) {
        guard let member = members.removeValue(forKey: number) else { return }
        exit(number, member)
    }

    private mutating func set(_ number: Int, _ state: State) {
        guard var member = members[number], member.state != state else { return }
        exit(number, member)
        member.state = state
        members[number] = member
        enter(number, member)
    }

    private mutating func enter(_ number: Int, _ member: Member) {
        all.enter(number, member.state)
        if let network = member.network { networks[network, default: Crowd()].enter(number, member.state) }
    }

    private mutating func exit(_ number: Int, _ member: Member) {
        all.leave(number, member.state)
        guard let network = member.network else { return }
        networks[network]?.leave(number, member.state)
        if networks[network]?.count == 0 { networks[network] = nil }
    }
}
