import Postgres
import Usage

/// A part of the database. The rows of a user are all in one bucket, and so are those of a batch.
typealias Bucket = Int16

/// The bucket of each user, as in a row of `headroom.bucket_map`.
///
/// The last bits of a user's hash are the user's slot, and each slot has a bucket. While a database is being divided,
/// only users whose first bits are below `moved` are in the bucket of their slot; the others are still in bucket 0.
struct BucketMap: Equatable, Sendable {
    /// The bucket of each slot. Their number is a power of two.
    let buckets: [Bucket]
    let moved: Int
    /// A number that grows with each change of the map.
    let revision: Int32
    /// The ordinal of each slot's bucket, as `ordinal(of:)` returns it. Ordinals begin at 0.
    private let ordinals: [Int]
    /// The number of buckets in which there may be users.
    let bucketCount: Int
    /// Whether there is one bucket, which all users have.
    let isSingle: Bool

    /// The value of `moved` once all users are in the buckets of their slots.
    static let movedMaximum = 4_096
    /// The map of a database that was never divided, before one was read.
    static let undivided = BucketMap(buckets: [0], moved: movedMaximum, revision: -1)

    init(buckets: [Bucket], moved: Int, revision: Int32) {
        precondition(buckets.count.nonzeroBitCount == 1, "the number of buckets is a power of two")
        self.buckets = buckets
        self.moved = moved
        self.revision = revision
        isSingle = buckets.count == 1
        var ordinalOfBucket: [Bucket: Int] = isSingle ? [:] : [0: 0]
        ordinals = buckets.map { bucket in
            let next = ordinalOfBucket.count
            let ordinal = ordinalOfBucket[bucket, default: next]
            ordinalOfBucket[bucket] = ordinal
            return ordinal
        }
        bucketCount = ordinalOfBucket.count
    }

    /// Decodes the result of `read_buckets.sql`.
    init(_ result: QueryResult) throws(PostgresError) {
        let row = result.firstRow
        let numbers = try result.int32s(0, result.column("buckets"))
        let buckets = numbers.compactMap { $0.flatMap(Bucket.init(exactly:)) }
        guard buckets.count == numbers.count, buckets.count.nonzeroBitCount == 1, buckets.count <= LaneRoutes.units
        else {
            throw StoredColumn("headroom.bucket_map", "buckets").invalid(
                "an array of \(numbers.count)",
                unless: "cardinality(buckets) in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)"
            )
        }
        self.init(
            buckets: buckets,
            moved: try row.int32("moved"),
            revision: Int32(try row.int32("buckets_revision"))
        )
    }

    /// Whether all users are in the buckets of their slots.
    var isSettled: Bool { moved >= BucketMap.movedMaximum }
    /// The number of buckets, once the division has ended; 1 until then.
    var settledCount: Int { isSettled ? buckets.count : 1 }

    /// A bucket that a lane will most likely use.
    func bucket(ofLane lane: Int) -> Bucket { isSettled ? buckets[lane % buckets.count] : 0 }

    func bucket(of user: UserID) -> Bucket {
        if isSingle { return buckets[0] }
        return slot(of: user).map { buckets[$0] } ?? 0
    }

    /// The ordinal of the user's bucket, below `bucketCount`.
    func ordinal(of user: UserID) -> Int {
        if isSingle { return 0 }
        return slot(of: user).map { ordinals[$0] } ?? 0
    }

    /// The ordinals of all buckets in which users of a unit (`LaneRoutes`) may be.
    func ordinals(ofUnit unit: Int) -> Set<Int> {
        Set([ordinals[unit & (buckets.count - 1)]] + (isSettled ? [] : [0]))
    }

    /// The slot of the user; nil for a user who is still in bucket 0.
    private func slot(of user: UserID) -> Int? {
        let hash = user.hash
        return Int(hash >> 52) < moved ? Int(hash & UInt64(buckets.count - 1)) : nil
    }

    /// Divides requests by their users' buckets. Each bucket's requests keep their order.
    func divide(_ requests: [BatchedRequest]) -> [(bucket: Bucket, requests: [BatchedRequest])] {
        guard let first = requests.first else { return [] }
        let bucket = bucket(of: first.user)
        if isSingle || requests.dropFirst().allSatisfy({ self.bucket(of: $0.user) == bucket }) {
            return [(bucket, requests)]
        }
        return Dictionary(grouping: requests) { self.bucket(of: $0.user) }.sorted { $0.key < $1.key }
            .map { (bucket: $0.key, requests: $0.value) }
    }
}
