/// Chooses the primary among the servers of a database, which are asked at the same time. It has no I/O and no clock:
/// `PrimarySearch` runs it.
struct PrimarySearchStateMachine {
    enum Answer: Equatable {
        /// The server has not answered yet. Can transition to: state, failed.
        case none
        /// The server is connected, and said what it is. Can transition to: another state, when it is asked again;
        /// failed.
        case state(ServerState)
        /// The server cannot be reached, or refuses the connection. Final.
        case failed
    }

    enum Action: Equatable {
        /// Wait for more answers, until this instant at most; nil means the search's own deadline. Ask standbys again
        /// from time to time: one of them may be promoted.
        case wait(until: ContinuousClock.Instant?)
        /// Use the connection to this server.
        case take(Int)
        /// Give up, because no server will do.
        case fail
    }

    /// How long the search waits for other servers, one of which may be the successor of the primary that was found. A
    /// primary of the newest timeline that was seen before is taken at once, because each timeline has one primary.
    static let grace = Duration.milliseconds(250)

    private(set) var answers: [Answer]
    private let acceptsStandby: Bool
    /// The timelines that were seen before the search.
    private let known: NewestTimelines
    /// The timelines of `known`, and those that the servers have answered.
    private(set) var newest: NewestTimelines
    private var primaryFoundAt: ContinuousClock.Instant?

    /// - Parameter acceptsStandby: true if there is one server, because commands that only read may use a standby.
    init(servers: Int, acceptsStandby: Bool, known: NewestTimelines) {
        answers = Array(repeating: .none, count: servers)
        self.acceptsStandby = acceptsStandby
        self.known = known
        newest = known
    }

    mutating func answered(_ server: Int, _ state: ServerState, at now: ContinuousClock.Instant) {
        answers[server] = .state(state)
        if let timeline = state.timeline { newest.note(timeline) }
        if isCandidate(server) { primaryFoundAt = primaryFoundAt ?? now }
    }

    mutating func failed(_ server: Int) {
        answers[server] = .failed
    }

    func action(at now: ContinuousClock.Instant) -> Action {
        let waiting = answers.contains(.none)
        guard let best = bestCandidate else {
            return waiting || !standbys.isEmpty ? .wait(until: nil) : .fail
        }
        guard waiting, !isKnown(best), let primaryFoundAt else { return .take(best) }
        let until = primaryFoundAt + Self.grace
        return now < until ? .wait(until: until) : .take(best)
    }

    /// The connected servers that are standbys.
    var standbys: [Int] {
        answers.indices.filter { if case .state(let state) = answers[$0] { state.isStandby } else { false } }
    }

    func isSuperseded(_ server: Int) -> Bool {
        timeline(server).flatMap(newest.successor) != nil
    }

    private func timeline(_ server: Int) -> Timeline? {
        if case .state(let state) = answers[server] { state.timeline } else { nil }
    }

    private func isCandidate(_ server: Int) -> Bool {
        guard case .state(let state) = answers[server] else { return false }
        return (acceptsStandby || !state.isStandby) && !isSuperseded(server)
    }

    private func isKnown(_ server: Int) -> Bool {
        timeline(server).map(known.isNewest) ?? false
    }

    /// The candidate of a cluster that is known, if there is one; otherwise the first in the connection string.
    /// Candidates of one cluster have the same timeline.
    private var bestCandidate: Int? {
        let candidates = answers.indices.filter(isCandidate)
        return candidates.first { timeline($0).map(known.hasCluster(of:)) ?? false } ?? candidates.first
    }
}
