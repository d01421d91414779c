import Testing

@testable import Postgres

@Suite("The search for the primary")
struct PrimarySearchStateMachineTests {
    private static let cluster: Int64 = 7_300_000_000_000_000_001
    private let start = ContinuousClock.now

    private func primary(_ timeline: UInt32?, of cluster: Int64 = cluster) -> ServerState {
        let timeline = timeline.map { Timeline(systemIdentifier: cluster, number: $0) }
        return ServerState(isStandby: false, timeline: timeline)
    }

    private func standby(_ timeline: UInt32) -> ServerState {
        let timeline = Timeline(systemIdentifier: Self.cluster, number: timeline)
        return ServerState(isStandby: true, timeline: timeline)
    }

    /// - Parameter newest: the newest timeline that was seen before.
    private func search(
        _ servers: Int,
        newest: UInt32? = nil,
        acceptsStandby: Bool = false
    ) -> PrimarySearchStateMachine {
        var known = NewestTimelines()
        if let newest { known.note(Timeline(systemIdentifier: Self.cluster, number: newest)) }
        return PrimarySearchStateMachine(servers: servers, acceptsStandby: acceptsStandby, known: known)
    }

    @Test("waits for answers, and fails once every server has failed")
    func failing() {
        var search = search(2)
        #expect(search.action(at: start) == .wait(until: nil))
        search.failed(1)
        #expect(search.action(at: start) == .wait(until: nil))
        search.failed(0)
        #expect(search.action(at: start) == .fail)
    }

    @Test("takes the primary of the newest timeline at once, although others have not answered")
    func knownPrimary() {
        var search = search(3, newest: 4)
        search.answered(2, primary(4), at: start)
        #expect(search.action(at: start) == .take(2))
    }

    @Test("gives other servers a moment to answer before it takes a primary of an unknown timeline")
    func unknownPrimary() {
        for newest in [nil, 3] as [UInt32?] {
            var search = search(2, newest: newest)
            search.answered(0, primary(4), at: start)
            let end = start + PrimarySearchStateMachine.grace
            #expect(search.action(at: start) == .wait(until: end))
            #expect(search.action(at: end) == .take(0))
            search.answered(1, standby(3), at: start)
            #expect(search.action(at: start) == .take(0))
        }
    }

    @Test("takes the successor of an old primary that comes first in the connection string")
    func oldPrimaryFirst() {
        var search = search(3)
        search.answered(0, primary(3), at: start)
        search.answered(1, primary(4), at: start)
        search.failed(2)
        #expect(search.action(at: start) == .take(1))
        #expect(search.isSuperseded(0) && !search.isSuperseded(1))
    }

    @Test("refuses a primary that was superseded, by what was seen before or by what a standby reports")
    func superseded() {
        var search = search(1, newest: 5, acceptsStandby: true)
        search.answered(0, primary(4), at: start)
        #expect(search.action(at: start) == .fail)
        search = self.search(2)
        search.answered(0, primary(4), at: start)
        search.answered(1, standby(5), at: start)
        #expect(search.action(at: start) == .wait(until: nil))
    }

    @Test("waits for a standby to be promoted, and takes it then")
    func promotion() {
        var search = search(2, newest: 1)
        search.failed(0)
        search.answered(1, standby(1), at: start)
        #expect(search.action(at: start) == .wait(until: nil) && search.standbys == [1])
        search.answered(1, primary(2), at: start)
        #expect(search.action(at: start) == .take(1) && search.standbys.isEmpty)
    }

    @Test("takes a standby if it is the only server")
    func onlyStandby() {
        var search = search(1, acceptsStandby: true)
        search.answered(0, standby(1), at: start)
        #expect(search.action(at: start) == .take(0))
    }

    @Test("keeps to the cluster that it knows, and does not compare timelines of different clusters")
    func otherCluster() {
        var search = search(2, newest: 2)
        search.answered(0, primary(9, of: 1), at: start)
        search.answered(1, primary(3), at: start)
        #expect(search.action(at: start + PrimarySearchStateMachine.grace) == .take(1))
        // The database was moved: the old cluster is gone.
        search = self.search(2, newest: 2)
        search.failed(0)
        search.answered(1, primary(1, of: 1), at: start)
        #expect(search.action(at: start) == .take(1))
    }

    @Test("takes a primary that does not report its timeline")
    func withoutTimeline() {
        var search = search(2, newest: 3)
        search.answered(0, primary(nil), at: start)
        #expect(search.action(at: start) == .wait(until: start + PrimarySearchStateMachine.grace))
        search.failed(1)
        #expect(search.action(at: start) == .take(0))
    }
}
