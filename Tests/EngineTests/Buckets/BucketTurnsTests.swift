import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("Buckets with requests that wait for a lane")
struct BucketTurnsTests {
    private let start = ContinuousClock.now
    private let map = BucketMap(buckets: [1, 2, 3, 4], moved: BucketMap.movedMaximum, revision: 1)

    private func queue(batchMaximum: Int = 10, capacity: Int = 100_000) -> LaneQueue {
        LaneQueue(capacity: capacity, batchMaximum: batchMaximum, map: map)
    }

    /// Requests of users of one bucket, each with a slot of its own.
    private func requests(
        _ count: Int,
        of bucket: Bucket,
        from slot: UInt64 = 0,
        _ operation: EngineOperation = .consume(1),
        seconds: Int = 60
    ) -> [Request] {
        (0..<10_000 as Range<UInt64>).lazy.map { user($0) }.filter { map.bucket(of: $0) == bucket }.prefix(count)
            .enumerated().map { .fixture($1, operation, slot: slot + UInt64($0), deadline: start + .seconds(seconds)) }
    }

    /// The bucket of the next batch, and its requests.
    private func take(_ queue: inout LaneQueue) -> (bucket: Bucket, count: Int)? {
        switch queue.take(atMost: 10, at: start) {
        case .batch(let batch):
            let buckets = Set(batch.map { map.bucket(of: $0.user) })
            #expect(buckets.count == 1, "a batch is about one bucket")
            return buckets.first.map { ($0, batch.count) }
        case .unbatched(let request): return (map.bucket(of: request.user), 1)
        case .apart, .look, nil: return nil
        }
    }

    @Test("have the fullest served first")
    func fullest() {
        var queue = queue()
        _ = queue.enqueue(requests(2, of: 1) + requests(5, of: 2) + requests(3, of: 3))
        #expect(queue.count == 10)
        var served: [Bucket] = []
        while let next = take(&queue) { served.append(next.bucket) }
        #expect(served == [2, 3, 1])
        #expect(queue.count == 0)
    }

    @Test("wait for as many batches as there are such buckets at most, however full another is")
    func bound() {
        var queue = queue()
        _ = queue.enqueue(requests(1_000, of: 1) + requests(1, of: 2) + requests(1, of: 3) + requests(1, of: 4))
        var served: [Bucket] = []
        while let next = take(&queue) { served.append(next.bucket) }
        #expect(served.prefix(5) == [1, 1, 2, 3, 4], "each of the four has its turn within four batches of others")
        #expect(served.dropFirst(5).allSatisfy { $0 == 1 } && served.count == 103)
    }

    @Test("keep to that bound in random histories")
    func randomHistories() {
        for seed in 1...20 as ClosedRange<UInt64> {
            var random = SeededGenerator(seed: seed)
            var queue = queue()
            /// Of each bucket that waits: batches of others since then, and the most buckets that waited meanwhile.
            var waiting: [Bucket: (passedOver: Int, atMost: Int)] = [:]
            var counts: [Bucket: Int] = [:]
            for _ in 0..<500 {
                for bucket in 1...4 as ClosedRange<Bucket> where Int.random(in: 0..<3, using: &random) == 0 {
                    let count = Int.random(in: 1...25, using: &random)
                    _ = queue.enqueue(requests(count, of: bucket))
                    counts[bucket, default: 0] += count
                    if waiting[bucket] == nil { waiting[bucket] = (0, 0) }
                }
                let buckets = waiting.count
                for (bucket, turn) in waiting { waiting[bucket]?.atMost = max(turn.atMost, buckets) }
                guard let next = take(&queue) else { continue }
                if let served = waiting.removeValue(forKey: next.bucket) {
                    #expect(served.passedOver <= served.atMost, "seed \(seed)")
                }
                for bucket in waiting.keys { waiting[bucket]?.passedOver += 1 }
                counts[next.bucket, default: 0] -= next.count
                if counts[next.bucket] != 0 { waiting[next.bucket] = (0, 0) }
            }
        }
    }

    @Test("keep an unbatched request between the other requests of its connection")
    func unbatched() {
        var queue = queue()
        let (before, reset, after) = (
            requests(1, of: 1)[0], requests(1, of: 1, from: 1, .resetUsage(nil))[0], requests(1, of: 1, from: 2)[0]
        )
        _ = queue.enqueue([before, reset, after] + requests(1, of: 2, from: 9))
        var slots: [UInt64] = []
        while let work = queue.take(atMost: 10, at: start) {
            switch work {
            case .batch(let batch): slots += batch.map(\.returnAddress.slot)
            case .unbatched(let request): slots.append(request.returnAddress.slot)
            case .apart, .look: Issue.record("no user was locked")
            }
        }
        #expect(slots.filter { $0 < 9 } == [0, 1, 2])
        #expect(slots.count == 4)
    }

    @Test("share the capacity, and the wait for which requests are refused")
    func capacity() {
        var queue = queue(capacity: 10)
        #expect(queue.enqueue(requests(6, of: 1)).refused == nil)
        #expect(queue.enqueue(requests(6, of: 2)).refused?.0.count == 2)
        #expect(queue.count == 10)
    }

    @Test("expire each at its own deadline")
    func expiry() {
        var queue = queue()
        _ = queue.enqueue(requests(2, of: 1, seconds: 2) + requests(3, of: 2, from: 2, seconds: 1))
        #expect(queue.nextDeadline == Deadline(start + .seconds(1)))
        #expect(queue.expire(at: Deadline(start + .seconds(1))).map(\.slot).sorted() == [2, 3, 4])
        #expect(queue.nextDeadline == Deadline(start + .seconds(2)))
        #expect(queue.count == 2)
        let next = take(&queue)
        #expect(next?.bucket == 1)
        let last = take(&queue)
        #expect(last == nil)
    }

    @Test("are those of a new map once users have moved, in the order of arrival")
    func regrouping() {
        var queue = LaneQueue(capacity: 100_000, batchMaximum: 10)
        let waiting = (0..<100 as Range<UInt64>).map { slot in
            let operation = slot % 7 == 0 ? EngineOperation.history(1) : .consume(1)
            return Request.fixture(user(slot % 20), operation, slot: slot, deadline: start + .seconds(60))
        }
        _ = queue.enqueue(waiting)
        queue.regroup(by: map)
        #expect(queue.count == 100)
        var slots: [UserID: [UInt64]] = [:]
        while let work = queue.take(atMost: 10, at: start) {
            switch work {
            case .batch(let batch):
                #expect(Set(batch.map { map.bucket(of: $0.user) }).count == 1)
                for request in batch { slots[request.user, default: []].append(request.returnAddress.slot) }
            case .unbatched(let request): slots[request.user, default: []].append(request.returnAddress.slot)
            case .apart, .look: Issue.record("no user was locked")
            }
        }
        for (user, own) in slots { #expect(own == waiting.filter { $0.user == user }.map { $0.returnAddress.slot }) }
        #expect(slots.values.reduce(0) { $0 + $1.count } == 100)
    }
}
