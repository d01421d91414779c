import Usage

/// Which lane executes the requests of each user.
///
/// Users are divided into units by the last bits of their hash. A unit belongs to one lane, so that a user's requests
/// keep their order. The units of one slot have the same last bits. With as many buckets as lanes or more, a bucket
/// belongs to one lane, which then fills its batches; with fewer, several lanes share a bucket.
public struct LaneRoutes: Sendable, Equatable {
    /// As many as there may be buckets.
    static let units = 1_024

    /// By unit. Empty if there is one lane.
    private var lanes: [UInt16]

    /// - Parameters:
    ///   - buckets: into how many buckets everybody is divided, a power of two.
    ///   - laneCount: how many lanes there are.
    init(buckets: Int, laneCount: Int) {
        guard laneCount > 1 else {
            lanes = []
            return
        }
        lanes = (0..<LaneRoutes.units).map { unit in
            let slot = unit & (buckets - 1)
            guard buckets < laneCount else { return UInt16(slot % laneCount) }
            // The lanes `slot`, `slot + buckets`, `slot + 2 * buckets` … share the slot.
            let sharing = (laneCount - slot + buckets - 1) / buckets
            return UInt16(slot + unit / buckets % sharing * buckets)
        }
    }

    static func unit(of user: UserID) -> Int { Int(user.hash & UInt64(LaneRoutes.units - 1)) }

    public func lane(of user: UserID) -> Int {
        lanes.isEmpty ? 0 : lane(ofUnit: LaneRoutes.unit(of: user))
    }

    func lane(ofUnit unit: Int) -> Int { lanes.isEmpty ? 0 : Int(lanes[unit]) }

    mutating func move(_ units: [Int], as routes: LaneRoutes) {
        for unit in units { lanes[unit] = routes.lanes[unit] }
    }

    /// The units that leave a lane for those of other routes.
    func units(leaving lane: Int, for routes: LaneRoutes) -> [Int] {
        lanes.indices.filter { self.lane(ofUnit: $0) == lane && routes.lane(ofUnit: $0) != lane }
    }
}
