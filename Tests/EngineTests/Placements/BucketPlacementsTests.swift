import Postgres
import Synchronization
import Testing

@testable import Engine

/// Workers of tests that connect to none.
func workers(_ count: Int) -> [BucketPlacements.Node] { (0..<count).map { worker(Int32($0), "worker\($0)") } }

/// A worker with the hosts of its primary and its standbys.
func worker(_ number: Int32, _ hosts: String...) -> BucketPlacements.Node {
    .init(number: number, servers: hosts.map { ServerAddress(host: $0, port: 5_432) }, isCoordinator: false)
}

/// A map of so many buckets, whose numbers are 1, 2, 3 …
func map(buckets: Int, revision: Int32 = 1) -> BucketMap {
    BucketMap(buckets: (1...buckets).map { Bucket($0) }, moved: BucketMap.movedMaximum, revision: revision)
}

/// Buckets from 1, dealt out to the nodes in turn.
func placements(buckets: Int, on nodes: [BucketPlacements.Node]) -> BucketPlacements {
    BucketPlacements((0..<buckets).map { (Bucket($0 + 1), nodes[$0 % nodes.count]) })
}

@Suite("Placements of buckets")
struct BucketPlacementsTests {
    @Test("of a database that is not distributed send every lane to the same database")
    func none() {
        #expect(!BucketPlacements.none.isDistributed && BucketPlacements.none.homeCount == 1)
        #expect(BucketPlacements.none.node(ofLane: 3) == nil)
        #expect(BucketPlacements.none.firstBucket(ofLane: 3, by: map(buckets: 8)) == 4)
        let current = CurrentPlacements(DatabaseTopology("host=here"))
        #expect(current.home(ofLane: 1) === current.database)
    }

    @Test("divide the lanes equally among the workers, and begin with a bucket at home", arguments: [2, 3])
    func lanes(workerCount: Int) {
        let nodes = workers(workerCount)
        let placements = placements(buckets: 16, on: nodes)
        #expect(placements.nodes == nodes && placements.bucketCounts.reduce(0, +) == 16)
        for lane in 0..<workerCount * 2 {
            #expect(placements.node(ofLane: lane) == nodes[lane % workerCount])
            #expect(
                placements.home(of: placements.firstBucket(ofLane: lane, by: map(buckets: 16))) == lane % workerCount
            )
        }
    }

    @Test("name the workers' databases with the login of database-url, and the coordinator as it is configured")
    func homes() {
        let current = CurrentPlacements(DatabaseTopology("host=a,b port=1,2 hostaddr=::1,::2 dbname=chat user=ada"))
        let coordinator = BucketPlacements.Node(
            number: 7,
            servers: [ServerAddress(host: "a", port: 1)],
            isCoordinator: true
        )
        current.note(placements(buckets: 6, on: [coordinator, worker(0, "w0"), worker(1, "w1", "w2")]))
        #expect(current.home(ofLane: 0) === current.database)
        #expect("\(current.home(ofLane: 1))" == "host=w0 port=5432 dbname=chat user=ada")
        #expect("\(current.home(ofLane: 2))" == "host=w1,w2 port=5432,5432 dbname=chat user=ada")
    }

    @Test("keep what is known of a worker while it has buckets, and report each change once")
    func changes() {
        let current = CurrentPlacements(DatabaseTopology("host=here"))
        let seen = Mutex(0)
        current.observe { _ in seen.withLock { $0 += 1 } }
        current.note(placements(buckets: 4, on: workers(2)))
        let home = current.home(ofLane: 1)
        let generation = current.generation
        current.note(placements(buckets: 4, on: workers(2)))
        #expect(current.generation == generation && seen.withLock { $0 } == 2, "the first call has the present value")
        current.note(placements(buckets: 4, on: workers(3)))
        #expect(current.home(ofLane: 1) === home && current.generation > generation)
        current.note(.none)
        #expect(current.home(ofLane: 1) === current.database)
    }

    @Test("keep what is known of a worker whose standby took over, also when its servers change afterwards")
    func standbys() {
        let current = CurrentPlacements(DatabaseTopology("host=here"))
        current.note(placements(buckets: 4, on: [worker(1, "a", "b", "c")]))
        let home = current.home(ofLane: 0)
        let promoted = Timeline(systemIdentifier: 1, number: 2)
        home.note(promoted)
        current.note(placements(buckets: 4, on: [worker(1, "b", "a", "c")]))
        #expect(current.home(ofLane: 0) === home)
        #expect(current.current.nodes.map(\.servers[0].host) == ["b"])
        current.note(placements(buckets: 4, on: [worker(1, "b", "c")]))
        let later = current.home(ofLane: 0)
        #expect("\(later)" == "host=b,c port=5432,5432")
        #expect(later.successor(of: Timeline(systemIdentifier: 1, number: 1)) == promoted)
    }
}

@Suite("The lanes of users of a distributed database")
struct PlacedLaneRoutesTests {
    private func lanesOfBucket(_ routes: LaneRoutes, _ map: BucketMap) -> [Bucket: Set<Int>] {
        var lanes: [Bucket: Set<Int>] = [:]
        for unit in 0..<LaneRoutes.units {
            lanes[map.buckets[unit & (map.buckets.count - 1)], default: []].insert(routes.lane(ofUnit: unit))
        }
        return lanes
    }

    @Test(
        "belong to one lane of the worker that has their bucket, each lane to equally many buckets",
        arguments: [(16, 2, 2), (16, 2, 4), (64, 4, 4), (64, 4, 8)]
    )
    func placed(buckets: Int, workerCount: Int, lanes: Int) {
        let (map, placements) = (map(buckets: buckets), placements(buckets: buckets, on: workers(workerCount)))
        let routes = LaneRoutes(map, placements, laneCount: lanes)
        let lanesOfBucket = lanesOfBucket(routes, map)
        for (bucket, owners) in lanesOfBucket {
            #expect(owners.count == 1)
            #expect(owners.allSatisfy { $0 % workerCount == placements.home(of: bucket) })
        }
        for lane in 0..<lanes {
            let own = routes.buckets(ofLane: lane, by: map)
            #expect(own.count == buckets / lanes)
            #expect(own == Set(lanesOfBucket.filter { $0.value == [lane] }.keys))
        }
    }

    @Test("share a bucket among the lanes of its worker where there are fewer buckets")
    func fewBuckets() {
        let (map, placements) = (map(buckets: 4), placements(buckets: 4, on: workers(2)))
        let lanesOfBucket = lanesOfBucket(LaneRoutes(map, placements, laneCount: 8), map)
        #expect(lanesOfBucket == [1: [0, 4], 2: [1, 5], 3: [2, 6], 4: [3, 7]])
    }

    @Test("of a worker without a lane are divided among all lanes")
    func fewLanes() {
        let (map, placements) = (map(buckets: 16), placements(buckets: 16, on: workers(4)))
        let lanesOfBucket = lanesOfBucket(LaneRoutes(map, placements, laneCount: 2), map)
        for home in 0..<2 {
            #expect(lanesOfBucket.filter { placements.home(of: $0.key) == home }.values.allSatisfy { $0 == [home] })
        }
        let strays = lanesOfBucket.filter { placements.home(of: $0.key) ?? 0 >= 2 }
        #expect(strays.values.filter { $0 == [0] }.count == 4 && strays.values.filter { $0 == [1] }.count == 4)
    }

    @Test("are shared by all lanes while the users are being divided")
    func undivided() {
        let moving = BucketMap(buckets: [1, 2], moved: 100, revision: 1)
        let routes = LaneRoutes(moving, placements(buckets: 2, on: workers(2)), laneCount: 4)
        #expect(routes == LaneRoutes(buckets: 1, laneCount: 4))
    }
}
