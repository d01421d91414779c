import HeadroomServer

/// The connections of the HTTP port: each waits for a request or is busy with one. Decides which one gives way to a
/// newcomer. No I/O.
///
/// Every newcomer gets in, since it may be a load balancer that asks whether the service lives. Where a limit is
/// reached, the connection that has waited longest is closed: a client of HTTP has to expect that of a connection that
/// it does not use. Where all are busy, the newcomer is a probe, which may ask for health only. Probes have places of
/// their own, and there, too, the one that has waited longest gives way.
struct ConnectionRoster {
    struct Limits: Equatable, Sendable {
        /// Without probes.
        var all: Int
        var perNetwork: Int
        var probes: Int
    }

    /// A connection that is to be closed, because a newcomer needs its place.
    struct Closing: Equatable {
        var number: Int
        var reason: TurnedAway
    }

    struct Arrival: Equatable {
        var number: Int
        var isProbe: Bool
        var closing: Closing?
    }

    enum Beginning: Equatable {
        /// The request is answered.
        case taken(Closing?)
        /// A probe asks for something else than health, and all are still busy.
        case refused
    }

    private struct Member {
        let network: PeerNetwork?
        var isProbe: Bool
        var isBusy = false
    }

    private struct Network {
        var count = 0
        var waiting = WaitingLine<Int>()
    }

    private let limits: Limits
    private var members: [Int: Member] = [:]
    private var lastNumber = 0
    /// Those that are no probes.
    private var waiting = WaitingLine<Int>()
    /// Those that are no probes, where their network is known.
    private var networks: [PeerNetwork: Network] = [:]
    private var waitingProbes = WaitingLine<Int>()
    private var busyProbes = WaitingLine<Int>()

    init(_ limits: Limits) {
        self.limits = limits
    }

    var waitingCount: Int { waiting.count }
    var busyCount: Int { members.count - waiting.count - probeCount }
    var probeCount: Int { waitingProbes.count + busyProbes.count }

    /// A connection was accepted; it waits for its first request.
    ///
    /// - Parameter network: nil is not counted by.
    mutating func arrive(from network: PeerNetwork?) -> Arrival {
        let place = place(for: network)
        var closing: Closing?
        if case .regular(let other) = place { closing = other } else { closing = probeToClose }
        if let closing { leave(closing.number) }
        lastNumber += 1
        enter(lastNumber, Member(network: network, isProbe: place == .full))
        return Arrival(number: lastNumber, isProbe: place == .full, closing: closing)
    }

    /// A request's head came.
    mutating func begin(_ number: Int, asksForHealth: Bool) -> Beginning {
        guard let member = members[number] else { return .refused }
        guard member.isProbe, !asksForHealth else {
            setBusy(number, true)
            return .taken(nil)
        }
        // There may be a place by now.
        guard case .regular(let closing) = place(for: member.network) else { return .refused }
        if let closing { leave(closing.number) }
        leave(number)
        enter(number, Member(network: member.network, isProbe: false))
        setBusy(number, true)
        return .taken(closing)
    }

    /// Everything that was asked is answered; it waits again, behind all that wait already.
    mutating func wait(_ number: Int) {
        setBusy(number, false)
    }

    /// Changes nothing where it is gone already.
    mutating func leave(_ number: Int) {
        guard let member = members.removeValue(forKey: number) else { return }
        waitingProbes.leave(number)
        busyProbes.leave(number)
        waiting.leave(number)
        guard !member.isProbe, let network = member.network else { return }
        networks[network]?.waiting.leave(number)
        networks[network]?.count -= 1
        if networks[network]?.count == 0 { networks[network] = nil }
    }

    // MARK: Places

    private enum Place: Equatable {
        /// Once that one is closed.
        case regular(Closing?)
        case full
    }

    private func place(for network: PeerNetwork?) -> Place {
        if let network, let there = networks[network], there.count >= limits.perNetwork {
            return there.waiting.first.map { .regular(Closing(number: $0, reason: .address)) } ?? .full
        }
        guard members.count - probeCount >= limits.all else { return .regular(nil) }
        return waiting.first.map { .regular(Closing(number: $0, reason: .all)) } ?? .full
    }

    /// Where as many as may be are there already. One that is busy is so because its peer does not take the answer.
    private var probeToClose: Closing? {
        guard probeCount >= limits.probes else { return nil }
        return (waitingProbes.first ?? busyProbes.first).map { Closing(number: $0, reason: .probes) }
    }

    private mutating func enter(_ number: Int, _ member: Member) {
        members[number] = member
        if !member.isProbe, let network = member.network { networks[network, default: Network()].count += 1 }
        joinLine(number, member)
    }

    private mutating func setBusy(_ number: Int, _ isBusy: Bool) {
        guard var member = members[number], member.isBusy != isBusy else { return }
        member.isBusy = isBusy
        members[number] = member
        joinLine(number, member)
    }

    /// Of those that wait, or are busy, as the member says; leaves the other one.
    private mutating func joinLine(_ number: Int, _ member: Member) {
        switch (member.isProbe, member.isBusy) {
        case (true, true):
            waitingProbes.leave(number)
            busyProbes.join(number)
        case (true, false):
            busyProbes.leave(number)
            waitingProbes.join(number)
        case (false, true):
            waiting.leave(number)
            if let network = member.network { networks[network]?.waiting.leave(number) }
        case (false, false):
            waiting.join(number)
            if let network = member.network { networks[network]?.waiting.join(number) }
        }
    }
}
