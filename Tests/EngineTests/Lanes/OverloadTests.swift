import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("A lane's queue under overload")
struct OverloadTests {
    private static let loadMaximum = 100
    private let start = ContinuousClock.now

    private func requests(_ count: Int, connection: Int = 1) -> [Request] {
        (0..<UInt64(count)).map {
            .fixture(user($0), .consume(1), slot: $0, connection: connection, deadline: start + .seconds(600))
        }
    }

    private func queue(waitMaximum: Duration = .milliseconds(500)) -> LaneQueue {
        LaneQueue(capacity: 100_000, loadMaximum: OverloadTests.loadMaximum, waitMaximum: waitMaximum)
    }

    private func taken(_ queue: inout LaneQueue, atMilliseconds now: Int) -> Int {
        guard case .batch(let load)? = queue.take(atMost: OverloadTests.loadMaximum, at: start + .milliseconds(now))
        else { return 0 }
        return load.count
    }

    /// A database that takes 20 ms for each load of 100, which is 5,000 a second, is offered so many in each of them.
    ///
    /// - Returns: the most requests that waited, and how many were refused, after the first second.
    private func run(_ queue: inout LaneQueue, offering count: Int) -> (waiting: Int, refused: Int, taken: Int) {
        var (waiting, refused, carried) = (0, 0, 0)
        for turn in 0..<200 {
            // Of many connections, so that none is greedy.
            let offered = (0..<count).flatMap { requests(1, connection: $0) }
            let hadRoom = queue.enqueue(offered).refused?.0.count ?? 0
            let load = taken(&queue, atMilliseconds: turn * 20)
            guard turn >= 50 else { continue }
            refused += hadRoom
            carried += load
            waiting = max(waiting, queue.count)
        }
        return (waiting, refused, carried)
    }

    @Test("refuses what could not be served in time, and serves as much as without")
    func refuses() {
        var queue = queue()
        let seen = run(&queue, offering: 200)
        #expect((2_000...2_600).contains(seen.waiting), "half a second's worth, not \(seen.waiting)")
        #expect(seen.taken == 150 * 100, "the database is never without work")
        #expect((14_000...16_000).contains(seen.refused), "\(seen.refused)")
    }

    @Test("refuses nobody while the database keeps up")
    func keepsUp() {
        var queue = queue()
        let seen = run(&queue, offering: 95)
        #expect(seen.refused == 0)
        #expect(seen.taken == 150 * 95)
    }

    @Test("keeps a load waiting however slow the database is: smaller ones would not be faster")
    func fullLoads() {
        var queue = queue(waitMaximum: .milliseconds(10))
        let seen = run(&queue, offering: 200)
        #expect(seen.taken == 150 * 100)
        #expect(seen.waiting <= 3 * OverloadTests.loadMaximum, "\(seen.waiting)")
    }

    @Test("refuses no burst before it is known how long that takes")
    func burst() {
        var queue = queue()
        #expect(taken(&queue, atMilliseconds: 0) == 0)
        let refused = queue.enqueue(requests(10_000)).refused
        #expect(refused == nil)
        for turn in 0..<3 { #expect(taken(&queue, atMilliseconds: turn * 20) == 100) }
        let later = queue.enqueue(requests(1)).refused
        #expect(later != nil, "this takes two seconds")
    }

    @Test("forgets how slow the database was as soon as nothing waits")
    func forgets() {
        var queue = queue()
        _ = run(&queue, offering: 200)
        while taken(&queue, atMilliseconds: 100_000) > 0 {}
        let refused = queue.enqueue(requests(10_000)).refused
        #expect(refused == nil)
    }

    @Test("forgets one load that took long within a few others")
    func stall() {
        var queue = queue()
        _ = queue.enqueue(requests(5_000))
        #expect(taken(&queue, atMilliseconds: 0) == 100)
        #expect(taken(&queue, atMilliseconds: 1_500) == 100)
        for turn in 1...10 { #expect(taken(&queue, atMilliseconds: 1_500 + turn * 2) == 100) }
        let refused = queue.enqueue(requests(1_000)).refused
        #expect(refused == nil, "5,000 take a tenth of a second now")
    }

    @Test("says when it is worth trying again")
    func retry() throws {
        var queue = queue()
        _ = run(&queue, offering: 200)
        let refusal = queue.enqueue(requests(1_000, connection: 77)).refused
        let (_, error) = try #require(refusal)
        #expect(error.code == .overloaded)
        let retry = try #require(error.retryAfterMilliseconds)
        #expect((300...700).contains(retry), "\(retry)")
    }

    @Test("lets who has little waiting in before who has much")
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
