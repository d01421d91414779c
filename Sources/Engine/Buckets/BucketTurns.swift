/// The turns of the buckets with waiting requests. It does no I/O; it is a part of `LaneQueue`.
///
/// A batch is about one bucket, and costs hardly more with many requests than with few. So the fullest bucket has the
/// next turn, as long as each of the others can still have its own within as many batches as there are such buckets.
struct BucketTurns {
    private struct Waiting {
        var bucket: Int
        /// The number of other buckets' batches that have begun since this bucket began to wait.
        var passedOver = 0
    }

    /// The waiting buckets; the one that has waited longest is first.
    private var waiting: [Waiting] = []

    var count: Int { waiting.count }
    var buckets: some Sequence<Int> { waiting.lazy.map(\.bucket) }

    /// Adds a bucket that was empty and has requests now.
    mutating func append(_ bucket: Int) {
        waiting.append(Waiting(bucket: bucket))
    }

    /// Chooses a bucket, which waits no longer.
    ///
    /// - Parameter queues: the requests of each bucket.
    mutating func takeNext(among queues: [BucketQueue]) -> Int? {
        guard waiting.count > 1 else { return waiting.popLast()?.bucket }
        var fullest = 0
        var most = 0
        for (index, candidate) in waiting.enumerated() where queues[candidate.bucket].count > most {
            (fullest, most) = (index, queues[candidate.bucket].count)
        }
        let chosen = waiting.remove(at: othersCanWait(for: fullest) ? fullest : 0)
        for index in waiting.indices { waiting[index].passedOver += 1 }
        return chosen.bucket
    }

    /// Whether the others would have their turns in time if they had them in their order after this one.
    private func othersCanWait(for chosen: Int) -> Bool {
        var batches = 1
        for index in waiting.indices where index != chosen {
            guard waiting[index].passedOver + batches <= waiting.count else { return false }
            batches += 1
        }
        return true
    }

    /// Removes a bucket that is empty, because its requests have expired.
    mutating func remove(_ bucket: Int) {
        waiting.removeAll { $0.bucket == bucket }
    }

    mutating func removeAll() {
        waiting.removeAll(keepingCapacity: true)
    }
}
