import Testing
import Usage

@testable import Engine

@Suite("The queue of report requests")
struct ReportQueueTests {
    private let start = ContinuousClock.now
    private let report = ReportQuery.report(.open)
    private let top = ReportQuery.top(.open, count: 10)

    private func request(_ slot: UInt64, _ query: ReportQuery, afterSeconds: Int = 60) -> ReportRequest {
        ReportRequest(
            query: query,
            returnAddress: ReturnAddress(mailboxIndex: 0, connection: 0, slot: slot),
            deadline: start + .seconds(afterSeconds)
        )
    }

    private func slots(_ completions: [Completion]) -> [UInt64] { completions.map(\.returnAddress.slot) }

    private let outcome = Outcome.periodUsages([])

    @Test("runs one scan after the other, in the order of the first requests")
    func order() {
        var queue = ReportQueue(capacity: 100)
        for (slot, query) in [report, top, report].enumerated() {
            #expect(queue.enqueue(request(UInt64(slot), query)) == nil)
        }
        #expect(queue.next() == .start(report))
        #expect(queue.next() == .proceed(report), "until it is complete")
        #expect(slots(queue.finish(outcome)) == [0, 2], "requests for the same report share the scan")
        #expect(queue.next() == .start(top))
        #expect(slots(queue.finish(outcome)) == [1])
        #expect(queue.next() == nil)
    }

    @Test("a request never joins a running scan")
    func joining() {
        var queue = ReportQueue(capacity: 100)
        _ = queue.enqueue(request(0, report))
        _ = queue.next()
        _ = queue.enqueue(request(1, report))
        #expect(slots(queue.finish(outcome)) == [0])
        #expect(queue.next() == .start(report))
        #expect(slots(queue.finish(outcome)) == [1])
    }

    @Test("requests wait until their deadline; a scan without requests is abandoned")
    func expiry() {
        var queue = ReportQueue(capacity: 100)
        _ = queue.enqueue(request(0, report, afterSeconds: 5))
        _ = queue.enqueue(request(1, report, afterSeconds: 6))
        _ = queue.enqueue(request(2, top, afterSeconds: 7))
        #expect(queue.next() == .start(report))
        #expect(queue.nextDeadline == start + .seconds(5))
        let late = queue.expire(at: start + .seconds(5))
        #expect(slots(late) == [0])
        #expect(late.first?.outcome == .failure(.reportTimedOut))
        #expect(queue.next() == .proceed(report), "the other request still waits")
        _ = queue.enqueue(request(3, report))
        #expect(slots(queue.expire(at: start + .seconds(6))) == [1])
        #expect(queue.next() == .start(top))
        #expect(slots(queue.expire(at: start + .seconds(8))) == [2])
        #expect(queue.next() == .start(report), "again, for the request that arrived during the scan")
        #expect(slots(queue.finish(outcome)) == [3])
        #expect(queue.next() == nil && queue.nextDeadline == nil)
    }

    @Test("accepts requests up to its capacity")
    func capacity() {
        var queue = ReportQueue(capacity: 2)
        #expect(queue.enqueue(request(0, report)) == nil)
        _ = queue.next()
        #expect(queue.enqueue(request(1, top)) == nil)
        #expect(queue.enqueue(request(2, report)) == .tooManyReports)
        _ = queue.finish(outcome)
        #expect(queue.enqueue(request(3, report)) == nil)
    }

    @Test("all requests fail when the database stays unavailable")
    func refusal() {
        var queue = ReportQueue(capacity: 100)
        for slot in 0..<3 { _ = queue.enqueue(request(UInt64(slot), slot == 1 ? top : report)) }
        _ = queue.next()
        let failed = queue.failAll(.reportsUnavailable)
        #expect(slots(failed).sorted() == [0, 1, 2])
        #expect(queue.next() == nil && queue.count == 0)
    }

    @Test("requests fail at the drain deadline, and a closed queue accepts none")
    func draining() {
        var queue = ReportQueue(capacity: 100)
        _ = queue.enqueue(request(0, report))
        _ = queue.enqueue(request(1, top, afterSeconds: 1))
        _ = queue.next()
        queue.drain(by: start + .seconds(3))
        #expect(queue.nextDeadline == start + .seconds(1))
        #expect(slots(queue.expire(at: start + .seconds(1))) == [1])
        #expect(queue.nextDeadline == start + .seconds(3))
        queue.close()
        #expect(!queue.isDrained, "a request waits")
        let cut = queue.expire(at: start + .seconds(3))
        #expect(slots(cut) == [0] && cut.first?.outcome == .failure(.reportInterrupted))
        #expect(queue.isDrained)
        #expect(queue.enqueue(request(2, report)) == .reportInterrupted)
    }
}
