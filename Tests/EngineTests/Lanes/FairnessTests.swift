import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("Connections with requests that wait for a lane")
struct FairnessTests {
    private let start = ContinuousClock.now

    /// Requests of one connection, each with a slot of its own.
    private func requests(
        _ connection: Int,
        _ slots: Range<UInt64>,
        _ operation: EngineOperation = .consume(1),
        afterSeconds: Int = 60
    ) -> [Request] {
        slots.map {
            .fixture(user($0), operation, slot: $0, connection: connection, deadline: start + .seconds(afterSeconds))
        }
    }

    private func queue(capacity: Int = 10_000) -> LaneQueue { LaneQueue(capacity: capacity, batchMaximum: 10) }

    private func take(_ queue: inout LaneQueue) -> [Request] {
        switch queue.take(atMost: 10, at: start) {
        case .batch(let requests): requests.map { Request($0) }
        case .unbatched(let request): [Request(request)]
        case .apart, .look, nil: []
        }
    }

    @Test("have their requests in the second batch at the latest, however many another connection has waiting")
    func longBacklog() {
        var queue = queue()
        _ = queue.enqueue(requests(1, 0..<1_000))
        _ = queue.enqueue(requests(2, 0..<1))
        var next = take(&queue)
        #expect(next == requests(1, 0..<10), "these waited before")
        next = take(&queue)
        #expect(next.contains(requests(2, 0..<1)[0]))
        _ = queue.enqueue(requests(2, 1..<3))
        next = take(&queue)
        #expect(next.filter { $0.returnAddress.connection == 2 } == requests(2, 1..<3))
    }

    @Test("take turns, one request each, and keep their own order")
    func turns() {
        var queue = queue()
        _ = queue.enqueue(requests(9, 0..<10))
        _ = queue.enqueue(requests(1, 0..<6) + requests(2, 0..<2) + requests(3, 0..<9))
        _ = take(&queue)
        let next = take(&queue)
        #expect(next.map(\.returnAddress.connection) == [1, 2, 3, 1, 2, 3, 1, 3, 1, 3])
        for connection in 1...3 {
            let slots = next.filter { $0.returnAddress.connection == connection }.map(\.returnAddress.slot)
            #expect(slots == Array(0..<UInt64(slots.count)))
        }
        let (rest, none) = (take(&queue), take(&queue))
        #expect(rest.count == 7)
        #expect(none.isEmpty)
    }

    @Test("all get their turn, however many there are, while one always has an unbatched request")
    func turnsBesideUnbatched() {
        var queue = queue()
        _ = queue.enqueue(requests(99, 0..<10))
        // More connections than a batch has requests.
        for connection in 1...25 { _ = queue.enqueue(requests(connection, 0..<4)) }
        _ = queue.enqueue(requests(98, 0..<100, .history(12)))
        var served: Set<Int> = []
        for _ in 0..<8 { served.formUnion(take(&queue).map(\.returnAddress.connection)) }
        #expect(served.isSuperset(of: 1...25))
    }

    @Test("take turns with unbatched requests, too, while batches are full")
    func unbatchedTakeTurns() {
        var queue = queue()
        for connection in 1...25 { _ = queue.enqueue(requests(connection, 0..<20)) }
        _ = queue.enqueue(requests(97, 0..<50, .history(12)))
        _ = queue.enqueue(requests(98, 0..<1, .history(12)))
        let next = (0..<8).flatMap { _ in take(&queue) }
        #expect(next.contains { $0.returnAddress.connection == 98 })
    }

    @Test("do not wait for another's unbatched requests, and those do not wait for ever")
    func unbatched() {
        var queue = queue()
        _ = queue.enqueue(requests(1, 0..<50, .history(12)))
        _ = queue.enqueue(requests(2, 0..<20))
        var taken: [Int] = []
        for _ in 0..<4 { taken.append(contentsOf: Set(take(&queue).map(\.returnAddress.connection))) }
        #expect(taken == [1, 2, 1, 2])
        #expect(queue.count == 48)
    }

    @Test("keep the order of their batched and unbatched requests")
    func orderWithUnbatched() {
        var queue = queue()
        let mixed =
            requests(1, 0..<3) + requests(1, 3..<4, .resetUsage(nil)) + requests(1, 4..<5)
            + requests(1, 5..<6, .history(1))
        _ = queue.enqueue(mixed + requests(2, 0..<30))
        var taken: [Request] = []
        while queue.count > 0 { taken += take(&queue) }
        #expect(taken.filter { $0.returnAddress.connection == 1 } == mixed)
        #expect(taken.count == 36)
    }

    @Test("have every request executed once, in any sequence of arrivals")
    func property() {
        var random = SeededGenerator(seed: 20_261_121)
        var queue = queue()
        var next: [Int: UInt64] = [:]
        var executed: [Int: UInt64] = [:]
        for _ in 0..<2_000 {
            let connection = Int.random(in: 0..<12, using: &random)
            let first = next[connection, default: 0]
            let count = UInt64.random(in: 0...(connection == 0 ? 40 : 4), using: &random)
            let operation: EngineOperation = Int.random(in: 0..<9, using: &random) == 0 ? .history(1) : .usage
            let refused = queue.enqueue(requests(connection, first..<first + count, operation)).refused
            #expect(refused == nil)
            next[connection] = first + count
            for request in take(&queue) {
                let connection = request.returnAddress.connection
                #expect(request.returnAddress.slot == executed[connection, default: 0])
                executed[connection] = request.returnAddress.slot + 1
            }
        }
        while queue.count > 0 {
            for request in take(&queue) { executed[request.returnAddress.connection] = request.returnAddress.slot + 1 }
        }
        #expect(executed == next.filter { $0.value > 0 })
    }

    @Test("have every request executed, also those that arrive after younger ones, while anything waits")
    func olderRequests() throws {
        var random = SeededGenerator(seed: 20_261_130)
        var queue = queue()
        var (added, executed) = (0, 0)
        for _ in 0..<5_000 {
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                let request = requests(
                    Int.random(in: 0..<2, using: &random),
                    UInt64(added)..<UInt64(added + 1),
                    Bool.random(using: &random) ? .usage : .history(1),
                    afterSeconds: 60 + Int.random(in: 0..<4, using: &random)
                )
                #expect(queue.enqueue(request).refused == nil)
                added += 1
            }
            guard queue.count > 0, Bool.random(using: &random) || queue.count > 20 else { continue }
            let taken = take(&queue)
            try #require(!taken.isEmpty, "\(queue.count) requests wait")
            executed += taken.count
        }
        while case let taken = take(&queue), !taken.isEmpty { executed += taken.count }
        #expect(executed == added && queue.count == 0)
    }

    @Test("lose the requests whose deadline has passed, in every queue")
    func expiry() {
        var queue = queue()
        _ = queue.enqueue(requests(1, 0..<12, afterSeconds: 5))
        _ = queue.enqueue(requests(2, 0..<1, afterSeconds: 1) + requests(2, 1..<2, afterSeconds: 9))
        _ = queue.enqueue(requests(3, 0..<1, afterSeconds: 2))
        #expect(queue.nextDeadline == Deadline(start + .seconds(1)))
        let first = queue.expire(at: Deadline(start + .seconds(3)))
        let late = requests(2, 0..<1, afterSeconds: 1) + requests(3, 0..<1, afterSeconds: 2)
        #expect(first == late.map(\.returnAddress))
        #expect(queue.nextDeadline == Deadline(start + .seconds(5)))
        let second = queue.expire(at: Deadline(start + .seconds(8)))
        #expect(second.count == 12)
        let left = take(&queue)
        #expect(left == requests(2, 1..<2, afterSeconds: 9))
        #expect(queue.nextDeadline == nil)
        _ = queue.enqueue(requests(4, 0..<30))
        let third = queue.expire(at: Deadline(start + .seconds(60)))
        #expect(third.count == 30)
        #expect(queue.count == 0)
    }

    @Test("may add requests below their share when others have filled the queue")
    func shares() throws {
        var queue = queue(capacity: 1_280)
        let refusal = queue.enqueue(requests(1, 0..<1_400)).refused
        let (refused, error) = try #require(refusal)
        #expect(error.code == .overloaded)
        #expect(refused.count == 120, "a single connection may use the whole capacity")
        let whenFull = queue.enqueue(requests(2, 0..<1)).refused?.0.count
        #expect(whenFull == 1, "at the capacity everything is refused")
        _ = queue.take(atMost: 10, at: start)
        let belowShare = queue.enqueue(requests(2, 0..<1)).refused
        #expect(belowShare == nil)
        let aboveShare = queue.enqueue(requests(1, 1_400..<1_410)).refused?.0.count
        #expect(aboveShare == 10, "it has more than its share")
        let more = queue.enqueue(requests(2, 1..<8)).refused
        #expect(more == nil)
    }
}
