import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("A lane's queue under overload")
struct OverloadTests {
    private static let batchMaximum = 100
    private let start = ContinuousClock.now

    private func requests(_ count: Int, connection: Int = 1) -> [Request] {
        (0..<UInt64(count)).map {
            .fixture(user($0), .consume(1), slot: $0, connection: connection, deadline: start + .seconds(600))
        }
    }

    private func queue(waitMaximum: Duration = .milliseconds(500)) -> LaneQueue {
        LaneQueue(capacity: 100_000, batchMaximum: OverloadTests.batchMaximum, waitMaximum: waitMaximum)
    }

    private func taken(_ queue: inout LaneQueue, atMilliseconds now: Int) -> Int {
        guard case .batch(let batch)? = queue.take(atMost: OverloadTests.batchMaximum, at: start + .milliseconds(now))
        else { return 0 }
        return batch.count
    }

    /// A database that takes 20 ms for each batch of 100, which is 5,000 a second, gets this many new requests per
    /// batch.
    ///
    /// - Returns: the most requests that waited, and how many were refused, after the first second.
    private func run(_ queue: inout LaneQueue, adding count: Int) -> (waiting: Int, refused: Int, taken: Int) {
        var (waiting, refused, executed) = (0, 0, 0)
        for turn in 0..<200 {
            // Of many connections, so that none is above its share.
            let added = (0..<count).flatMap { requests(1, connection: $0) }
            let excess = queue.enqueue(added).refused?.0.count ?? 0
            let batch = taken(&queue, atMilliseconds: turn * 20)
            guard turn >= 50 else { continue }
            refused += excess
            executed += batch
            waiting = max(waiting, queue.count)
        }
        return (waiting, refused, executed)
    }

    @Test("refuses requests that would wait too long, and executes as many as without a limit")
    func refuses() {
        var queue = queue()
        let seen = run(&queue, adding: 200)
        #expect((2_000...2_600).contains(seen.waiting), "half a second's worth, not \(seen.waiting)")
        #expect(seen.taken == 150 * 100, "the database is never without work")
        #expect((14_000...16_000).contains(seen.refused), "\(seen.refused)")
    }

    @Test("refuses no request while the database keeps up")
    func keepsUp() {
        var queue = queue()
        let seen = run(&queue, adding: 95)
        #expect(seen.refused == 0)
        #expect(seen.taken == 150 * 95)
    }

    @Test("keeps a full batch waiting however slow the database is, because smaller ones would not be faster")
    func fullBatches() {
        var queue = queue(waitMaximum: .milliseconds(10))
        let seen = run(&queue, adding: 200)
        #expect(seen.taken == 150 * 100)
        #expect(seen.waiting <= 3 * OverloadTests.batchMaximum, "\(seen.waiting)")
    }

    @Test("refuses no burst before its duration is known")
    func burst() {
        var queue = queue()
        #expect(taken(&queue, atMilliseconds: 0) == 0)
        let refused = queue.enqueue(requests(10_000)).refused
        #expect(refused == nil)
        for turn in 0..<3 { #expect(taken(&queue, atMilliseconds: turn * 20) == 100) }
        let later = queue.enqueue(requests(1)).refused
        #expect(later != nil, "this takes two seconds")
    }

    @Test("forgets the rate as soon as nothing waits")
    func forgets() {
        var queue = queue()
        _ = run(&queue, adding: 200)
        while taken(&queue, atMilliseconds: 100_000) > 0 {}
        let refused = queue.enqueue(requests(10_000)).refused
        #expect(refused == nil)
    }

    @Test("forgets one slow batch within a few others")
    func stall() {
        var queue = queue()
        _ = queue.enqueue(requests(5_000))
        #expect(taken(&queue, atMilliseconds: 0) == 100)
        #expect(taken(&queue, atMilliseconds: 1_500) == 100)
        for turn in 1...10 { #expect(taken(&queue, atMilliseconds: 1_500 + turn * 2) == 100) }
        let refused = queue.enqueue(requests(1_000)).refused
        #expect(refused == nil, "5,000 take a tenth of a second now")
    }

    @Test("reports when to retry")
    func retry() throws {
        var queue = queue()
        _ = run(&queue, adding: 200)
        let refusal = queue.enqueue(requests(1_000, connection: 77)).refused
        let (_, error) = try #require(refusal)
        #expect(error.code == .overloaded)
        let retry = try #require(error.retryAfterMilliseconds)
        #expect((300...700).contains(retry), "\(retry)")
    }

    @Test("accepts requests of connections with few waiting before those with many")
    func fair() {
        var queue = queue()
        for turn in 0..<100 {
            _ = queue.enqueue(requests(300, connection: 1))
            let refused = queue.enqueue(requests(1, connection: 2)).refused
            #expect(refused == nil, "turn \(turn)")
            #expect(taken(&queue, atMilliseconds: turn * 20) == 100)
        }
    }
}
