import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("The map of buckets")
struct BucketMapTests {
    private let users = (0..<2_000).map { user($0) }

    private func map(_ buckets: [Bucket], moved: Int = BucketMap.movedMaximum) -> BucketMap {
        BucketMap(buckets: buckets, moved: moved, revision: 1)
    }

    @Test("has everybody in the one bucket of a database that is not divided")
    func single() {
        #expect(Set(users.map(map([0]).bucket(of:))) == [0])
        #expect(Set(users.map(map([0], moved: 0).bucket(of:))) == [0])
        #expect(BucketMap.undivided.settledCount == 1)
    }

    @Test("has each user in the bucket of the last bits of the hash")
    func settled() {
        let map = map([4, 5, 6, 7])
        for user in users { #expect(map.bucket(of: user) == 4 + Bucket(user.hash & 3)) }
        #expect(map.settledCount == 4)
    }

    @Test("moves users by the first bits of the hash, and leaves the others in bucket 0")
    func moving() {
        let map = map([1, 2, 3, 4, 5, 6, 7, 8], moved: 1_000)
        for user in users {
            let hasMoved = user.hash >> 52 < 1_000
            #expect(map.bucket(of: user) == (hasMoved ? 1 + Bucket(user.hash & 7) : 0))
        }
        #expect(map.settledCount == 1, "until nobody is left behind, all lanes share bucket 0")
    }

    @Test("numbers its buckets, each once")
    func ordinals() {
        for map in [map([1, 2, 3, 4]), map([0, 2, 0, 4]), map([1, 2, 3, 4], moved: 7), map([0])] {
            var bucketOfOrdinal: [Int: Bucket] = [:]
            for user in users {
                let (ordinal, bucket) = (map.ordinal(of: user), map.bucket(of: user))
                #expect((0..<map.bucketCount).contains(ordinal))
                #expect(bucketOfOrdinal.updateValue(bucket, forKey: ordinal) ?? bucket == bucket)
            }
            #expect(bucketOfOrdinal.count == Set(users.map(map.bucket(of:))).count)
        }
    }

    @Test("divides requests by bucket, each bucket's in their order")
    func dividing() {
        let map = map([1, 2, 3, 4])
        let requests = users.prefix(100).enumerated().map { slot, user in
            BatchedRequest.fixture(user, .consume(1), slot: UInt64(slot), deadline: .now)
        }
        let divided = map.divide(requests)
        #expect(divided.map(\.bucket) == [1, 2, 3, 4])
        for (bucket, own) in divided { #expect(own == requests.filter { map.bucket(of: $0.user) == bucket }) }
        #expect(map.divide([]).isEmpty)
        #expect(BucketMap.undivided.divide(requests).map(\.requests) == [requests])
    }
}
