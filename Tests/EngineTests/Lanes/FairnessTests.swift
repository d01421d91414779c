import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("Connections that wait for a lane")
struct FairnessTests {
    private let start = ContinuousClock.now

    /// Requests of one connection, told apart by their slots.
    private func requests(
        _ connection: Int,
        _ slots: Range<UInt64>,
        _ operation: EngineOperation = .consume(1),
        afterSeconds: Int = 60
    ) -> [Request] {
        slots.map {
            .fixture(
                user($0),
                operation,
                slot: $0,
                connection: connection,
                deadline: start + .seconds(afterSeconds)
            )
        }
    }

    private func queue(capacity: Int = 10_000) -> LaneQueue {
        LaneQueue(capacity: capacity, loadMaximum: 10)
    }

    private func load(_ queue: inout LaneQueue) -> [Request] {
        switch queue.take(atMost: 10, at: start) {
        case .batch(let requests): requests
        case .single(let request): [request]
        case nil: []
        }
    }

    @Test("have their requests in the next load but one at the latest, however many another connection has waiting")
    func greedy() {
        var queue = queue()
        _ = queue.enqueue(requests(1, 0..<1_000))
        _ = queue.enqueue(requests(2, 0..<1))
        var next = load(&queue)
        #expect(next == requests(1, 0..<10), "these stood there before")
        next = load(&queue)
        #expect(next.contains(requests(2, 0..<1)[0]))
        _ = queue.enqueue(requests(2, 1..<3))
        next = load(&queue)
        #expect(next.filter { $0.returnAddress.connection == 2 } == requests(2, 1..<3))
    }

    @Test("take turns, one request each, and keep their own order")
    func turns() {
        var queue = queue()
        _ = queue.enqueue(requests(9, 0..<10))
        _ = queue.enqueue(requests(1, 0..<6) + requests(2, 0..<2) + requests(3, 0..<9))
        _ = load(&queue)
        let next = load(&queue)
        #expect(next.map(\.returnAddress.connection) == [1, 2, 3, 1, 2, 3, 1, 3, 1, 3])
        for connection in 1...3 {
            let slots = next.filter { $0.returnAddress.connection == connection }.map(\.returnAddress.slot)
            #expect(slots == Array(0..<UInt64(slots.count)))
        }
        let (rest, none) = (load(&queue), load(&queue))
        #expect(rest.count == 7)
        #expect(none.isEmpty)
    }

    @Test("all have their turn, however many there are, while one always has a request that goes alone")
    func turnsBesideSingles() {
        var queue = queue()
        _ = queue.enqueue(requests(99, 0..<10))
        // More lines than a load takes.
        for connection in 1...25 { _ = queue.enqueue(requests(connection, 0..<4)) }
        _ = queue.enqueue(requests(98, 0..<100, .history(12)))
        var served: Set<Int> = []
        for _ in 0..<8 { served.formUnion(load(&queue).map(\.returnAddress.connection)) }
        #expect(served.isSuperset(of: 1...25))
    }

    @Test("take turns with what goes alone, too, while loads are full")
    func singlesTakeTurns() {
        var queue = queue()
        for connection in 1...25 { _ = queue.enqueue(requests(connection, 0..<20)) }
        _ = queue.enqueue(requests(97, 0..<50, .history(12)))
        _ = queue.enqueue(requests(98, 0..<1, .history(12)))
        let next = (0..<8).flatMap { _ in load(&queue) }
        #expect(next.contains { $0.returnAddress.connection == 98 })
    }

    @Test("do not wait for another's requests that go alone, and those do not wait for ever")
    func singles() {
        var queue = queue()
        _ = queue.enqueue(requests(1, 0..<50, .history(12)))
        _ = queue.enqueue(requests(2, 0..<20))
        var taken: [Int] = []
        for _ in 0..<4 { taken.append(contentsOf: Set(load(&queue).map(\.returnAddress.connection))) }
        #expect(taken == [1, 2, 1, 2])
        #expect(queue.count == 48)
    }

    @Test("keep the order of requests of which some go alone")
    func orderWithSingles() {
        var queue = queue()
        let mixed =
            requests(1, 0..<3) + requests(1, 3..<4, .resetUsage(nil)) + requests(1, 4..<5)
            + requests(1, 5..<6, .history(1))
        _ = queue.enqueue(mixed + requests(2, 0..<30))
        var taken: [Request] = []
        while queue.count > 0 { taken += load(&queue) }
        #expect(taken.filter { $0.returnAddress.connection == 1 } == mixed)
        #expect(taken.count == 36)
    }

    @Test("are all carried, each request once, whatever comes and goes")
    func property() {
        var random = SeededGenerator(seed: 20_261_121)
        var queue = queue()
        var next: [Int: UInt64] = [:]
        var carried: [Int: UInt64] = [:]
        for _ in 0..<2_000 {
            let connection = Int.random(in: 0..<12, using: &random)
            let first = next[connection, default: 0]
            let count = UInt64.random(in: 0...(connection == 0 ? 40 : 4), using: &random)
            let operation: EngineOperation = Int.random(in: 0..<9, using: &random) == 0 ? .history(1) : .usage
            let refused = queue.enqueue(requests(connection, first..<first + count, operation)).refused
            #expect(refused == nil)
            next[connection] = first + count
            for request in load(&queue) {
                let connection = request.returnAddress.connection
                #expect(request.returnAddress.slot == carried[connection, default: 0])
                carried[connection] = request.returnAddress.slot + 1
            }
        }
        while queue.count > 0 {
            for request in load(&queue) { carried[request.returnAddress.connection] = request.returnAddress.slot + 1 }
        }
        #expect(carried == next.filter { $0.value > 0 })
    }

    @Test("lose the requests whose deadline has passed, in every line")
    func expiry() {
        var queue = queue()
        _ = queue.enqueue(requests(1, 0..<12, afterSeconds: 5))
        _ = queue.enqueue(requests(2, 0..<1, afterSeconds: 1) + requests(2, 1..<2, afterSeconds: 9))
        _ = queue.enqueue(requests(3, 0..<1, afterSeconds: 2))
        #expect(queue.nextDeadline == start + .seconds(1))
        let first = queue.expire(at: start + .seconds(3))
        #expect(first == requests(2, 0..<1, afterSeconds: 1) + requests(3, 0..<1, afterSeconds: 2))
        #expect(queue.nextDeadline == start + .seconds(5))
        let second = queue.expire(at: start + .seconds(8))
        #expect(second.count == 12)
        let left = load(&queue)
        #expect(left == requests(2, 1..<2, afterSeconds: 9))
        #expect(queue.nextDeadline == nil)
        _ = queue.enqueue(requests(4, 0..<30))
        let third = queue.expire(at: start + .seconds(60))
        #expect(third.count == 30)
        #expect(queue.count == 0)
    }

    @Test("find room when others have filled the queue, and the others do not")
    func roomForTheFew() throws {
        var queue = queue(capacity: 1_280)
        let refusal = queue.enqueue(requests(1, 0..<1_400)).refused
        let (refused, error) = try #require(refusal)
        #expect(error.code == .overloaded)
        #expect(refused.count == 120, "alone it may have all of it")
        let whenFull = queue.enqueue(requests(2, 0..<1)).refused?.0.count
        #expect(whenFull == 1, "full is full")
        _ = queue.take(atMost: 10, at: start)
        let ofTheFew = queue.enqueue(requests(2, 0..<1)).refused
        #expect(ofTheFew == nil)
        let ofTheMany = queue.enqueue(requests(1, 1_400..<1_410)).refused?.0.count
        #expect(ofTheMany == 10, "it has more than its share")
        let more = queue.enqueue(requests(2, 1..<8)).refused
        #expect(more == nil)
    }
}
