import Foundation
import Logging
import Postgres
import Synchronization
import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("The lanes of users")
struct LaneRoutesTests {
    @Test("share all users of a database that is not divided equally", arguments: [1, 2, 3, 8])
    func undivided(lanes: Int) {
        let routes = LaneRoutes(buckets: 1, laneCount: lanes)
        let units = Dictionary(grouping: 0..<LaneRoutes.units, by: routes.lane(ofUnit:)).mapValues(\.count)
        #expect(units.count == lanes)
        #expect((units.values.max() ?? 0) - (units.values.min() ?? 0) <= 1)
    }

    @Test("have equal numbers of buckets, and each bucket one lane", arguments: [8, 64, 1_024], [1, 2, 4, 8])
    func divided(buckets: Int, lanes: Int) {
        let routes = LaneRoutes(buckets: buckets, laneCount: lanes)
        var lanesOfSlot: [Int: Set<Int>] = [:]
        for unit in 0..<LaneRoutes.units {
            lanesOfSlot[unit & (buckets - 1), default: []].insert(routes.lane(ofUnit: unit))
        }
        #expect(lanesOfSlot.values.allSatisfy { $0.count == 1 })
        let slots = Dictionary(grouping: lanesOfSlot.values.compactMap(\.first)) { $0 }.mapValues(\.count)
        #expect(slots == Dictionary(uniqueKeysWithValues: (0..<lanes).map { ($0, buckets / lanes) }))
    }

    @Test("share the buckets where there are fewer", arguments: [(2, 8), (4, 6), (2, 3)])
    func fewerBuckets(buckets: Int, lanes: Int) {
        let routes = LaneRoutes(buckets: buckets, laneCount: lanes)
        var slotsOfLane: [Int: Set<Int>] = [:]
        for unit in 0..<LaneRoutes.units { slotsOfLane[routes.lane(ofUnit: unit), default: []].insert(unit % buckets) }
        #expect(slotsOfLane.count == lanes && slotsOfLane.values.allSatisfy { $0.count == 1 })
    }

    @Test("keep each user's requests in order while users move from lane to lane")
    func handOver() async throws {
        try await move { step in (map(buckets: [1, 8, 64, 2, 1_024][step % 5], revision: Int32(step)), .none) }
    }

    @Test("keep each user's requests in order while workers are added and removed, and buckets move between them")
    func movedBuckets() async throws {
        try await move { step in
            let nodes = Array(workers([2, 3, 5, 1, 2][step % 5]).reversed())
            return (map(buckets: 16), placements(buckets: 16, on: nodes))
        }
    }

    /// Changes the routes 200 times, while clients submit requests.
    private func move(_ change: (Int) -> (BucketMap, BucketPlacements)) async throws {
        let scene = Scene(lanes: 3)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for lane in 0..<3 { group.addTask { await runThread(named: "lane") { scene.runLane(lane) } } }
            for client in 0..<4 { group.addTask { await runThread(named: "client") { scene.runClient(client) } } }
            for step in 1...200 {
                let (map, placements) = change(step)
                scene.router.follow(map)
                scene.router.follow(placements)
                try await waitUntil("all lanes have handed over") {
                    scene.router.current == LaneRoutes(map, placements, laneCount: 3)
                }
            }
            scene.endClients()
            try await group.waitForAll()
        }
        #expect(scene.misplaced == [])
        #expect(scene.submitted == scene.executed)
        #expect(scene.executed > 1_000)
    }
}

/// Lanes whose threads count requests instead of executing them, and clients that submit them.
private final class Scene: Sendable {
    let router: LaneRouter
    private let lanes: [Lane]
    private let hasEnded = Atomic<Bool>(false)
    private let clientsRunning = Atomic<Int>(4)
    private let submittedCount = Atomic<Int>(0)
    private let state = Mutex(State())

    private struct State {
        var lastSlot: [UserID: UInt64] = [:]
        var executed = 0
        var misplaced: [UserID] = []
    }

    init(lanes count: Int) {
        let router = LaneRouter(laneCount: count)
        self.router = router
        let configuration = EngineConfiguration(
            database: DatabaseTopology("host=/nonexistent"),
            lanes: count,
            // No request is refused because this machine is slow.
            queueWaitMaximum: waitLimit,
            requestTimeout: waitLimit * 2
        )
        lanes = (0..<count).map {
            Lane(
                configuration,
                mailboxes: MailboxRegistry(),
                words: CurrentWords(),
                buckets: CurrentBuckets(),
                placements: CurrentPlacements(configuration.database),
                index: $0,
                invalidValues: InvalidValueLog(.silent),
                logger: .silent
            )
        }
        router.attach(lanes)
    }

    var misplaced: [UserID] { state.withLock { $0.misplaced } }
    var executed: Int { state.withLock { $0.executed } }
    var submitted: Int { submittedCount.load(ordering: .acquiring) }

    func endClients() { hasEnded.store(true, ordering: .releasing) }

    /// Each client has users of its own, and submits their requests with ascending slots.
    func runClient(_ client: Int) {
        var random = SeededGenerator(seed: UInt64(client))
        var reader = LaneRoutesReader(router)
        var slot: UInt64 = 0
        while !hasEnded.load(ordering: .acquiring) {
            reader.refresh()
            var staged = [[Request]](repeating: [], count: lanes.count)
            for _ in 0..<Int.random(in: 1...8, using: &random) {
                let user = user(UInt64(client * 100) + .random(in: 0..<50, using: &random))
                slot += 1
                staged[reader.routes.lane(of: user)].append(
                    .fixture(user, .consume(1), slot: slot, connection: client, deadline: .now + waitLimit)
                )
            }
            for (lane, requests) in staged.enumerated() where !requests.isEmpty { submit(requests, lane) }
            while submitted - executed > 5_000 { sched_yield() }
        }
        clientsRunning.subtract(1, ordering: .releasing)
    }

    private func submit(_ requests: [Request], _ lane: Int) {
        submittedCount.add(requests.count, ordering: .releasing)
        pass(requests, to: lane)
    }

    private func pass(_ requests: [Request], to lane: Int) {
        for (other, forwarded) in lanes[lane].enqueue(requests).forwarded { pass(forwarded, to: other) }
    }

    func runLane(_ lane: Int) {
        while true {
            let isLast = clientsRunning.load(ordering: .acquiring) == 0 && submitted == executed
            router.handOver(from: lane)
            guard case .batch(let batch)? = lanes[lane].takeWork() else {
                if isLast { return }
                sched_yield()
                continue
            }
            state.withLock { state in
                for request in batch {
                    let slot = request.returnAddress.slot
                    if state.lastSlot[request.user] ?? 0 > slot { state.misplaced.append(request.user) }
                    state.lastSlot[request.user] = slot
                    state.executed += 1
                }
            }
        }
    }
}
