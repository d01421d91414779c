import Usage

/// The lane of each user.
///
/// Users are divided into units by the last bits of their hash. A unit belongs to one lane, so that a user's requests
/// keep their order. The units of one slot have the same last bits. With as many buckets as lanes or more, a bucket
/// belongs to one lane, which then fills its batches; with fewer, several lanes share a bucket. In a distributed
/// database this holds for each server: the lanes that connect to it have its buckets.
public struct LaneRoutes: Sendable, Equatable {
    /// The number of units, which is also the maximum of buckets.
    static let units = 1_024

    /// The lane of each unit; empty if there is one lane.
    private var lanes: [UInt16]

    /// - Parameters:
    ///   - buckets: the number of buckets into which all users are divided, a power of two.
    ///   - laneCount: the number of lanes.
    init(buckets: Int, laneCount: Int) {
        self.init(homes: Array(repeating: 0, count: buckets), homeCount: 1, laneCount: laneCount)
    }

    /// - Parameter placements: those of the map's buckets. All lanes share the buckets of a server without a lane.
    init(_ map: BucketMap, _ placements: BucketPlacements, laneCount: Int) {
        // While users move, the lanes of all servers share all buckets.
        guard map.isSettled else {
            self.init(buckets: 1, laneCount: laneCount)
            return
        }
        let homes = map.buckets.map { placements.home(of: $0).flatMap { $0 < laneCount ? $0 : nil } }
        self.init(homes: homes, homeCount: placements.homeCount, laneCount: laneCount)
    }

    /// - Parameter homes: the server of each slot, below `homeCount`; nil if no lane connects to it.
    private init(homes: [Int?], homeCount: Int, laneCount: Int) {
        guard laneCount > 1 else {
            lanes = []
            return
        }
        let allLanes = Array(0..<laneCount)
        let lanesOfHome = Dictionary(grouping: allLanes) { $0 % homeCount }
        // The number of each slot among those of its server, and the number of these slots.
        var counts: [Int?: Int] = [:]
        let numbers = homes.map { home in
            defer { counts[home, default: 0] += 1 }
            return counts[home, default: 0]
        }
        lanes = (0..<LaneRoutes.units).map { unit in
            let slot = unit & (homes.count - 1)
            let lanes = homes[slot].flatMap { lanesOfHome[$0] } ?? allLanes
            let (number, count) = (numbers[slot], counts[homes[slot], default: 1])
            guard count < lanes.count else { return UInt16(lanes[number % lanes.count]) }
            // The lanes that share the slot are every `count`th, beginning with the one of this number.
            let sharing = (lanes.count - number + count - 1) / count
            return UInt16(lanes[number + unit / homes.count % sharing * count])
        }
    }

    /// The buckets of a lane's users, by a settled map.
    func buckets(ofLane lane: Int, by map: BucketMap) -> Set<Bucket> {
        guard !lanes.isEmpty else { return Set(map.buckets) }
        let units = lanes.indices.lazy.filter { Int(lanes[$0]) == lane }
        return Set(units.map { map.buckets[$0 & (map.buckets.count - 1)] })
    }

    static func unit(of user: UserID) -> Int { Int(user.hash & UInt64(LaneRoutes.units - 1)) }

    public func lane(of user: UserID) -> Int {
        lanes.isEmpty ? 0 : lane(ofUnit: LaneRoutes.unit(of: user))
    }

    func lane(ofUnit unit: Int) -> Int { lanes.isEmpty ? 0 : Int(lanes[unit]) }

    mutating func move(_ units: [Int], as routes: LaneRoutes) {
        for unit in units { lanes[unit] = routes.lanes[unit] }
    }

    /// The units that leave a lane if the routes change to others.
    func units(leaving lane: Int, for routes: LaneRoutes) -> [Int] {
        lanes.indices.filter { self.lane(ofUnit: $0) == lane && routes.lane(ofUnit: $0) != lane }
    }
}
