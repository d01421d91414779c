import Testing
import Usage

@testable import Engine

@Suite("The readings that dashboards wait for")
struct ReadingQueueTests {
    private let start = ContinuousClock.now
    private let report = Reading.report(.open)
    private let top = Reading.top(.open, count: 10)

    private func request(_ slot: UInt64, _ reading: Reading, afterSeconds: Int = 60) -> ReadingRequest {
        ReadingRequest(
            reading: reading,
            returnAddress: ReturnAddress(mailbox: 0, connection: 0, slot: slot),
            deadline: start + .seconds(afterSeconds)
        )
    }

    private func slots(_ completions: [Completion]) -> [UInt64] {
        completions.map(\.returnAddress.slot)
    }

    private let outcome = Outcome.history([])

    @Test("run one after the other, in the order in which they were first asked for")
    func order() {
        var queue = ReadingQueue(capacity: 100)
        for (slot, reading) in [report, top, report].enumerated() {
            #expect(queue.enqueue(request(UInt64(slot), reading)) == nil)
        }
        #expect(queue.next() == .begin(report))
        #expect(queue.next() == .goOn(report), "until it is finished")
        #expect(slots(queue.finish(outcome)) == [0, 2], "who waits for the same shares it")
        #expect(queue.next() == .begin(top))
        #expect(slots(queue.finish(outcome)) == [1])
        #expect(queue.next() == nil)
    }

    @Test("are not joined once they run, because they may have passed what was counted before the question")
    func joining() {
        var queue = ReadingQueue(capacity: 100)
        _ = queue.enqueue(request(0, report))
        _ = queue.next()
        _ = queue.enqueue(request(1, report))
        #expect(slots(queue.finish(outcome)) == [0])
        #expect(queue.next() == .begin(report))
        #expect(slots(queue.finish(outcome)) == [1])
    }

    @Test("are waited for until the deadline, also while they run; a reading that nobody waits for is given up")
    func expiry() {
        var queue = ReadingQueue(capacity: 100)
        _ = queue.enqueue(request(0, report, afterSeconds: 5))
        _ = queue.enqueue(request(1, report, afterSeconds: 6))
        _ = queue.enqueue(request(2, top, afterSeconds: 7))
        #expect(queue.next() == .begin(report))
        #expect(queue.nextDeadline == start + .seconds(5))
        let late = queue.expire(at: start + .seconds(5))
        #expect(slots(late) == [0])
        #expect(late.first?.outcome == .failure(.readingTookTooLong))
        #expect(queue.next() == .goOn(report), "the other one waits still")
        _ = queue.enqueue(request(3, report))
        #expect(slots(queue.expire(at: start + .seconds(6))) == [1])
        #expect(queue.next() == .begin(top))
        #expect(slots(queue.expire(at: start + .seconds(8))) == [2])
        #expect(queue.next() == .begin(report), "anew, for who asked while it ran")
        #expect(slots(queue.finish(outcome)) == [3])
        #expect(queue.next() == nil && queue.nextDeadline == nil)
    }

    @Test("are taken in up to the capacity")
    func capacity() {
        var queue = ReadingQueue(capacity: 2)
        #expect(queue.enqueue(request(0, report)) == nil)
        _ = queue.next()
        #expect(queue.enqueue(request(1, top)) == nil)
        #expect(queue.enqueue(request(2, report)) == .tooManyReadings)
        _ = queue.finish(outcome)
        #expect(queue.enqueue(request(3, report)) == nil)
    }

    @Test("are all refused when the database stays away")
    func refusal() {
        var queue = ReadingQueue(capacity: 100)
        for slot in 0..<3 { _ = queue.enqueue(request(UInt64(slot), slot == 1 ? top : report)) }
        _ = queue.next()
        let refused = queue.refuseAll(.readerIsAway)
        #expect(slots(refused).sorted() == [0, 1, 2])
        #expect(queue.next() == nil && queue.count == 0)
    }

    @Test("draining, are cut short in time to say so; closed, nothing more is taken in")
    func draining() {
        var queue = ReadingQueue(capacity: 100)
        _ = queue.enqueue(request(0, report))
        _ = queue.enqueue(request(1, top, afterSeconds: 1))
        _ = queue.next()
        queue.drain(by: start + .seconds(3))
        #expect(queue.nextDeadline == start + .seconds(1))
        #expect(slots(queue.expire(at: start + .seconds(1))) == [1])
        #expect(queue.nextDeadline == start + .seconds(3))
        queue.close()
        #expect(!queue.isDrained, "somebody waits")
        let cut = queue.expire(at: start + .seconds(3))
        #expect(slots(cut) == [0] && cut.first?.outcome == .failure(.readingWasCutShort))
        #expect(queue.isDrained)
        #expect(queue.enqueue(request(2, report)) == .readingWasCutShort)
    }
}
