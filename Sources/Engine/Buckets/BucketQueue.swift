/// The requests of one bucket that wait for a lane. It does no I/O; it is a part of `LaneQueue`.
///
/// Requests that fit into the bucket's next batch wait in one queue. Once it is full, each connection has a queue of
/// its own, and the connections take turns (`FairQueue`), so that one with many requests does not delay the others.
struct BucketQueue {
    /// The requests of the next batch, which has room for all of them. They are executed before those of `connections`.
    private var next: [BatchedRequest] = []
    private var connections = FairQueue()
    private var lastWasUnbatched = false
    private let batchMaximum: Int

    /// - Parameter batchMaximum: the most requests in one batch.
    init(batchMaximum: Int) {
        self.batchMaximum = batchMaximum
    }

    var count: Int { next.count + connections.count }
    var isEmpty: Bool { next.isEmpty && connections.isEmpty }
    /// The number of connections with requests that do not fit into the next batch.
    var connectionCount: Int { connections.connectionCount }

    /// The number of such requests that this request's connection has.
    func count(ofConnectionOf request: Request) -> Int { connections.count(ofConnectionOf: request) }

    /// - Returns: whether no request waited before.
    mutating func append(_ request: Request) -> Bool {
        let wasEmpty = isEmpty
        // Requests behind an unbatched one must not overtake it.
        if connections.isEmpty, next.count < batchMaximum, let batched = BatchedRequest(request) {
            if let last = next.last, batched.deadline < last.deadline {
                // It is older than some that wait: see `FairQueue`.
                next.insert(batched, at: next.firstIndex { batched.deadline < $0.deadline } ?? next.count)
            } else {
                next.append(batched)
            }
        } else {
            connections.append(request)
        }
        return wasEmpty
    }

    /// Appends each request; see `append(_:)`.
    mutating func append(_ requests: [Request]) -> Bool {
        let wasEmpty = isEmpty
        for request in requests { _ = append(request) }
        return wasEmpty
    }

    /// Takes a batch or an unbatched request in turn, so that neither waits for many of the other. Nil if nothing
    /// waits.
    mutating func take(atMost limit: Int) -> LaneQueue.Work? {
        if next.isEmpty, !lastWasUnbatched, let unbatched = takeUnbatched() { return unbatched }
        var batch = takeNext(atMost: limit)
        if next.isEmpty { connections.fill(&batch, upTo: limit) }
        guard !batch.isEmpty else { return takeUnbatched() }
        lastWasUnbatched = false
        return .batch(batch)
    }

    private mutating func takeNext(atMost limit: Int) -> [BatchedRequest] {
        guard next.count <= limit else {
            defer { next.removeFirst(limit) }
            return Array(next.prefix(limit))
        }
        // The array itself is taken, because a copy of each request would cost more than new memory.
        var batch: [BatchedRequest] = []
        swap(&batch, &next)
        next.reserveCapacity(batch.count)
        return batch
    }

    private mutating func takeUnbatched() -> LaneQueue.Work? {
        guard let request = connections.takeUnbatched() else { return nil }
        lastWasUnbatched = true
        return .unbatched(request)
    }

    /// Removes the requests whose deadline has passed.
    mutating func expire(at now: Deadline, into expired: inout [ReturnAddress]) {
        let late = next.firstIndex { now < $0.deadline } ?? next.count
        expired += next[..<late].map(\.returnAddress)
        next.removeFirst(late)
        if !connections.isEmpty { connections.expire(at: now, into: &expired) }
    }

    /// The earliest deadline of a waiting request.
    var nextDeadline: Deadline? {
        guard !connections.isEmpty else { return next.first?.deadline }
        return [next.first?.deadline, connections.nextDeadline].compactMap(\.self).min()
    }

    /// Removes some requests. Those of each connection are returned in their order.
    mutating func remove(where leaves: (Request) -> Bool) -> [Request] {
        var removed: [Request] = []
        for request in removeAll() {
            if leaves(request) { removed.append(request) } else { _ = append(request) }
        }
        return removed
    }

    /// Removes all requests. Those of each connection are returned in their order.
    mutating func removeAll() -> [Request] {
        defer { next.removeAll() }
        return next.map { Request($0) } + connections.removeAll()
    }
}
