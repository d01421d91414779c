import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("Requests that wait for a lane")
struct LaneQueueTests {
    private let start = ContinuousClock.now

    private func request(
        _ slot: UInt64,
        _ operation: EngineOperation = .consume(1),
        afterSeconds: Int = 60
    ) -> Request {
        .fixture(user(slot % 3), operation, slot: slot, deadline: start + .seconds(afterSeconds))
    }

    private func requests(_ slots: ClosedRange<UInt64>) -> [Request] { slots.map { request($0) } }

    private func batch(_ requests: [Request]) -> LaneQueue.Work { .batch(requests.compactMap(BatchedRequest.init)) }

    private func unbatched(_ request: Request) -> LaneQueue.Work? { UnbatchedRequest(request).map { .unbatched($0) } }

    @Test("are taken in the order of arrival, up to a limit")
    func order() {
        var queue = LaneQueue(capacity: 100)
        _ = queue.enqueue(requests(1...3))
        _ = queue.enqueue(requests(4...6))
        #expect(queue.count == 6)
        #expect(queue.take(atMost: 4) == batch(requests(1...4)))
        #expect(queue.take(atMost: 4) == batch(requests(5...6)))
        #expect(queue.take(atMost: 4) == nil)
        #expect(queue.count == 0)
    }

    @Test("are accepted up to the capacity; the others are returned as overload")
    func capacity() throws {
        var queue = LaneQueue(capacity: 3)
        #expect(queue.enqueue(requests(1...2)).refused == nil)
        let refusal = queue.enqueue(requests(3...5)).refused
        let (refused, error) = try #require(refusal)
        #expect(Array(refused) == requests(4...5))
        #expect(error == .overloaded)
        #expect(queue.take(atMost: 10) == batch(requests(1...3)))
        #expect(queue.enqueue(requests(6...8)).refused == nil)
    }

    @Test("wake the lane only if it sleeps, and once")
    func waking() {
        var queue = LaneQueue(capacity: 100)
        #expect(queue.enqueue(requests(1...1)).action == .none)
        _ = queue.take(atMost: 10)
        #expect(queue.enqueue(requests(2...2)).action == .none, "a busy lane takes it without being woken")
        _ = queue.take(atMost: 10)
        #expect(queue.take(atMost: 10) == nil)
        #expect(queue.enqueue(requests(3...3)).action == .wakeLane)
        #expect(queue.enqueue(requests(4...4)).action == .none)
    }

    @Test("do not wake the lane when none of them was accepted")
    func noWakingForNothing() {
        var queue = LaneQueue(capacity: 0)
        #expect(queue.take(atMost: 10) == nil)
        #expect(queue.enqueue(requests(1...1)).action == .none)
    }

    @Test("that are not batched are executed between two batches, in their order")
    func unbatched() {
        var queue = LaneQueue(capacity: 100)
        let (reset, history) = (request(3, .resetUsage(nil)), request(4, .history(12)))
        _ = queue.enqueue([request(1), request(2, .check(1)), reset, history, request(5, .usage), request(6)])
        #expect(queue.take(atMost: 10) == batch([request(1), request(2, .check(1))]))
        #expect(queue.take(atMost: 10) == unbatched(reset))
        #expect(queue.take(atMost: 10) == unbatched(history))
        #expect(queue.take(atMost: 10) == batch([request(5, .usage), request(6)]))
        #expect(queue.take(atMost: 10) == nil)
    }

    @Test("are refused with the latest reason during a long outage, and accepted again after it")
    func refusing() throws {
        var queue = LaneQueue(capacity: 100)
        _ = queue.enqueue(requests(1...1))
        queue.refuse(with: .sessionRefused)
        #expect(queue.enqueue(requests(2...2)).refused?.1 == .sessionRefused)
        queue.refuse(with: .unreachable)
        let refusal = queue.enqueue(requests(2...3))
        let (refused, error) = try #require(refusal.refused)
        #expect(Array(refused) == requests(2...3))
        #expect(error == .unreachable)
        #expect(refusal.action == .none)
        #expect(queue.take(atMost: 10) == batch(requests(1...1)), "waiting requests stay")
        queue.reopen()
        #expect(queue.enqueue(requests(4...4)).refused == nil)
    }

    @Test("are refused after closing, while waiting ones are still executed")
    func closing() throws {
        var queue = LaneQueue(capacity: 100)
        _ = queue.enqueue(requests(1...1))
        #expect(queue.close() == .none)
        queue.reopen()
        queue.refuse(with: .unreachable)
        let refusal = queue.enqueue(requests(2...2)).refused
        let (_, error) = try #require(refusal)
        #expect(error == .closed)
        var isFinished = queue.finishIfDrained()
        #expect(!isFinished)
        #expect(queue.take(atMost: 10) == batch(requests(1...1)))
        isFinished = queue.finishIfDrained()
        #expect(isFinished)
    }

    @Test("closing wakes a lane that sleeps")
    func closingWakes() {
        var queue = LaneQueue(capacity: 100)
        #expect(queue.take(atMost: 10) == nil)
        var isFinished = queue.finishIfDrained()
        #expect(!isFinished, "an open queue is empty, not drained")
        #expect(queue.close() == .wakeLane)
        isFinished = queue.finishIfDrained()
        #expect(isFinished)
    }

    @Test("expire at their deadline, the oldest first")
    func expiry() {
        var queue = LaneQueue(capacity: 100)
        let waiting = (1...4).map { request(UInt64($0), afterSeconds: $0) }
        #expect(queue.nextDeadline == nil)
        _ = queue.enqueue(waiting)
        #expect(queue.nextDeadline == Deadline(start + .seconds(1)))
        #expect(queue.expire(at: Deadline(start + .milliseconds(999))).isEmpty)
        #expect(queue.expire(at: Deadline(start + .seconds(2))) == waiting[..<2].map(\.returnAddress))
        #expect(queue.nextDeadline == Deadline(start + .seconds(3)))
        #expect(queue.take(atMost: 10) == batch(Array(waiting[2...])))
    }

    @Test("that another lane hands over expire in time, too, with few that wait or many", arguments: [100, 2])
    func handedOver(batchMaximum: Int) {
        var queue = LaneQueue(capacity: 100, batchMaximum: batchMaximum)
        let waiting = (1...7).map { request(UInt64($0), afterSeconds: $0) }
        _ = queue.enqueue([waiting[2], waiting[3], waiting[5]])
        _ = queue.takeOver([waiting[0], waiting[4], waiting[1], waiting[6]])
        #expect(queue.nextDeadline == Deadline(start + .seconds(1)))
        for (seconds, request) in waiting.enumerated() {
            let expired = queue.expire(at: Deadline(start + .seconds(seconds + 1)))
            #expect(expired == [request.returnAddress], "after \(seconds + 1) s")
        }
        #expect(queue.count == 0)
    }
}
