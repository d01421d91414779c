import Logging
import Postgres
import TestSupport
import Testing
import Usage

@testable import Engine

/// One PostgreSQL that is reached through two proxies plays two workers, each of which can be lost by itself.
@Suite("Lanes to workers", .serialized)
struct WorkerLanesTests {
    private struct Scene: Sendable {
        let database: TestDatabase
        let proxies: [Proxy]
        let placements: CurrentPlacements
        let engine: EngineHarness

        /// A worker whose primary is reached through the first of these proxies, and its standbys through the others.
        func node(_ indexes: Int...) -> BucketPlacements.Node {
            let servers = indexes.map { index in
                let path = proxies[index].address.pathname ?? ""
                let directory = path.prefix(upTo: path.lastIndex(of: "/") ?? path.startIndex)
                let port = path.suffix(from: path.index(after: path.lastIndex(of: ".") ?? path.startIndex))
                return ServerAddress(host: String(directory), port: Int32(port) ?? 0)
            }
            return .init(number: Int32(indexes[0]), servers: servers, isCoordinator: false)
        }

        /// Says that bucket 1 and bucket 2 are at these workers.
        func place(_ first: Int, _ second: Int) {
            placements.note(BucketPlacements([(1, node(first)), (2, node(second))]))
        }

        func users(inBucket bucket: Bucket) -> [UserID] {
            (0..<20).map { user($0) }.filter { map(buckets: 2).bucket(of: $0) == bucket }
        }

        func count(_ users: [UserID], within timeout: Duration = waitLimit) async throws -> [Outcome] {
            try await engine.execute(users.map { ($0, .consume(1)) }, within: timeout)
        }

        func connections(_ index: Int) -> Int { engine.engine.snapshot.nodes[index].lanesConnected }
    }

    private func withWorkers(
        lanes: Int = 2,
        requestTimeout: Duration = waitLimit,
        _ body: @Sendable (Scene) async throws -> Void
    ) async throws {
        let database = try await TestDatabase.fresh()
        try await database.beginDivision(into: 2)
        try await database.divideUsers(to: BucketMap.movedMaximum)
        let proxies = [try await database.proxy(), try await database.proxy()]
        defer { for proxy in proxies { proxy.close() } }
        let placements = CurrentPlacements(DatabaseTopology(database.conninfo))
        let engine = EngineHarness(
            database.conninfo,
            lanes: lanes,
            placements: placements,
            requestTimeout: requestTimeout
        )
        let scene = Scene(database: database, proxies: proxies, placements: placements, engine: engine)
        scene.place(0, 1)
        try await engine.running { try await body(scene) }
    }

    @Test("connect to the worker of their buckets, and begin with a receipt of one of these")
    func homes() async throws {
        try await withWorkers { scene in
            let nodes = scene.engine.engine.snapshot.nodes
            #expect(nodes.map(\.lanesConnected) == [1, 1] && nodes.map(\.buckets) == [1, 1])
            #expect(nodes.map(\.address) == (0..<2).map { "\(scene.node($0).servers[0])" })
            let receipts = try await scene.database.psql.rows(
                "select bucket || ':' || count(*) from headroom.lane_receipts group by bucket order by bucket"
            )
            #expect(receipts == ["1:1", "2:1"])
        }
    }

    @Test("go on at one worker while another is down, whose users are answered again when it is back")
    func deadWorker() async throws {
        try await withWorkers(requestTimeout: .seconds(1)) { scene in
            let (lost, kept) = (scene.users(inBucket: 1), scene.users(inBucket: 2))
            _ = try await scene.count(lost + kept)
            scene.proxies[0].refusesConnections = true
            scene.proxies[0].cutAll()
            try await waitUntil("the loss is noticed") { scene.connections(0) == 0 }
            let waiting = scene.engine.submit(lost.map { ($0, .consume(1)) })
            let answers = try await scene.count(kept)
            #expect(answers.map { $0.answer?.snapshot.used } == kept.map { _ in 2 })
            for outcome in try await scene.engine.outcomes(of: waiting) {
                #expect(outcome.failure?.code == .unreachable)
            }
            #expect(scene.connections(1) == 1)
            scene.proxies[0].refusesConnections = false
            try await waitUntil("the lane is back") { scene.connections(0) == 1 }
            let again = try await scene.count(lost)
            #expect(again.map { $0.answer?.snapshot.used } == lost.map { _ in 2 }, "nothing was counted meanwhile")
        }
    }

    @Test("follow their buckets to another worker, and need the one that they have left no more")
    func movedBuckets() async throws {
        try await withWorkers { scene in
            let users = scene.users(inBucket: 1) + scene.users(inBucket: 2)
            _ = try await scene.count(users)
            scene.place(1, 1)
            try await waitUntil("all lanes are at the other worker") { scene.connections(0) == 2 }
            scene.proxies[0].refusesConnections = true
            scene.proxies[0].cutAll()
            let answers = try await scene.count(users)
            #expect(answers.map { $0.answer?.snapshot.used } == users.map { _ in 2 })
            scene.proxies[0].refusesConnections = false
            scene.place(1, 0)
            try await waitUntil("a lane is at each worker") { scene.connections(0) == 1 && scene.connections(1) == 1 }
            let more = try await scene.count(users)
            #expect(more.map { $0.answer?.snapshot.used } == users.map { _ in 3 })
            #expect(scene.engine.engine.snapshot.reconnects == 0, "a move is no loss")
        }
    }

    @Test("go on with other users while a FORGET waits for the coordinator, and the user's requests wait for it")
    func forget() async throws {
        try await withWorkers { scene in
            let users = scene.users(inBucket: 1)
            let forgotten = users[0]
            _ = try await scene.engine.execute(forgotten, .setPlan(PlanChange(user: forgotten, plan: "paid")))
            _ = try await scene.count(users)
            let other = try await Session.open(scene.database.conninfo)
            try await other.execute("begin; lock table headroom.customers")
            let forget = scene.engine.submit([(forgotten, .forget)])
            let message = scene.engine.submit([(forgotten, .consume(1))])
            let answers = try await scene.count(Array(users.dropFirst()))
            #expect(answers.map { $0.answer?.snapshot.used } == users.dropFirst().map { _ in 2 })
            #expect(!scene.engine.mailbox.hasOutcome(of: forget[0]))
            #expect(!scene.engine.mailbox.hasOutcome(of: message[0]))
            try await other.execute("commit")
            let outcomes = try await scene.engine.outcomes(of: forget + message)
            #expect(outcomes[0] == .done)
            #expect(outcomes[1].answer?.snapshot.plan.name == "trial", "the message came after it")
        }
    }

    @Test("go to the server that has taken over from a worker's primary, before the placements tell")
    func promotedStandby() async throws {
        try await withWorkers { scene in
            let users = scene.users(inBucket: 1) + scene.users(inBucket: 2)
            scene.proxies[1].refusesConnections = true
            scene.placements.note(BucketPlacements([(1, scene.node(0, 1)), (2, scene.node(0, 1))]))
            try await waitUntil("all lanes are at the primary") { scene.connections(0) == 2 }
            scene.proxies[1].refusesConnections = false
            scene.proxies[0].refusesConnections = true
            scene.proxies[0].cutAll()
            let answers = try await scene.count(users)
            #expect(answers.map { $0.answer?.snapshot.used } == users.map { _ in 1 })
        }
    }

    @Test("say once that there are too few of them")
    func tooFewLanes() async throws {
        try await withWorkers(lanes: 1) { scene in
            let users = scene.users(inBucket: 1) + scene.users(inBucket: 2)
            let answers = try await scene.count(users)
            #expect(answers.map { $0.answer?.snapshot.used } == users.map { _ in 1 })
            let warnings = scene.engine.log.events.filter { $0.message.contains("fewer lanes than workers") }
            #expect(warnings.count == 1)
        }
    }

    @Test("forget the receipts of buckets that they have no more, and keep the others")
    func receipts() async throws {
        let database = try await TestDatabase.fresh()
        try await database.beginDivision(into: 2)
        let receipts = try await onThread { () throws -> [Bool] in
            let wake = WakePipe()
            let configuration = EngineConfiguration(
                database: DatabaseTopology(database.conninfo),
                requestTimeout: waitLimit,
                connectTimeout: waitLimit
            )
            let lane = LaneConnection(
                options: configuration.sessionOptions("lane"),
                primaryLease: .seconds(1),
                words: CurrentWords(),
                wake: wake,
                logger: .silent
            )
            defer { lane.close() }
            while lane.connection == nil {
                lane.advance()
                if lane.connection == nil { _ = wake.sleep(orUntilReadable: -1, until: .now + waitLimit) }
            }
            _ = lane.openReceipt(in: 0, until: .now + waitLimit)
            let kept = lane.receipt(in: 0)
            _ = lane.openReceipt(in: 1, until: .now + waitLimit)
            let hadBoth = kept != nil && lane.receipt(in: 1) != nil
            lane.keepReceipts(of: [0])
            return [hadBoth, lane.receipt(in: 0) == kept, lane.receipt(in: 1) == nil]
        }
        #expect(receipts == [true, true, true])
    }
}
