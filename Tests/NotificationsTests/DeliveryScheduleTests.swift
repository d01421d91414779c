import Engine
import Testing

@testable import Notifications

@Suite("The schedule of attempts")
struct DeliveryScheduleTests {
    private func delays(retryAfter: Duration? = nil, jitter: Double = 0) -> [Duration?] {
        (1...11).map { DeliverySchedule.delay(afterAttempts: $0, retryAfter: retryAfter, jitter: jitter) }
    }

    @Test("ends after ten attempts, and three days and some hours")
    func end() {
        let delays = delays()
        #expect(delays.prefix(9).allSatisfy { $0 != nil } && delays.suffix(2) == [nil, nil])
        #expect(delays.compactMap(\.self).reduce(.zero, +) == .seconds(272_105))
    }

    @Test("adds a tenth of a delay at most")
    func jitter() {
        let most = delays(jitter: 1)
        for (delay, longest) in zip(delays().compactMap(\.self), most.compactMap(\.self)) {
            #expect(longest > delay && longest <= delay * 11 / 10 + .milliseconds(1))
        }
    }

    @Test("follows Retry-After as far as the schedule's next delay")
    func retryAfter() {
        #expect(delays(retryAfter: .seconds(60)).first == .seconds(60))
        #expect(delays(retryAfter: .seconds(86_400)).first == .seconds(300))
        #expect(delays(retryAfter: .seconds(1)).first == .seconds(5))
        #expect(delays(retryAfter: .seconds(600))[2] == .seconds(1_800))
    }

    @Test(
        "counts 2xx as delivered and nothing else",
        arguments: [
            (200, true), (204, true), (299, true), (301, false), (302, false), (400, false), (401, false), (404, false),
            (410, false), (429, false), (500, false), (503, false),
        ]
    )
    func status(_ status: Int, _ isDelivered: Bool) {
        #expect((AttemptResult(status: status, retryAfter: nil) == .delivered) == isDelivered)
    }

    @Test("reads Retry-After of 429 and 503 in seconds, and of nothing else")
    func header() {
        for status in [429, 503] {
            #expect(
                AttemptResult(status: status, retryAfter: "120")
                    == .failed(problem: "HTTP \(status)", retryAfter: .seconds(120))
            )
            for text in ["Fri, 31 Dec 1999 23:59:59 GMT", "-1", "999999999999", ""] {
                #expect(AttemptResult(status: status, retryAfter: text) == .failed(problem: "HTTP \(status)"))
            }
        }
        #expect(AttemptResult(status: 500, retryAfter: "120") == .failed(problem: "HTTP 500"))
    }

    @Test("makes of each result what is written")
    func attempts() {
        let due = NotificationOutbox.Due(id: "a", body: "{}", attempts: 9, sentAt: 0)
        let delivered = NotificationOutbox.Attempt(due, .delivered, jitter: 0)
        #expect(delivered == .init(id: "a", attemptsBefore: 9, problem: nil, delay: nil))
        let failed = NotificationOutbox.Attempt(due, .failed(problem: "HTTP 500"), jitter: 0)
        #expect(failed == .init(id: "a", attemptsBefore: 9, problem: "HTTP 500", delay: nil))
        var earlier = due
        earlier.attempts = 0
        #expect(NotificationOutbox.Attempt(earlier, .failed(problem: "HTTP 500"), jitter: 0).delay == .seconds(5))
    }
}
