import Billing
import Logging
import TestSupport
import Testing
import Usage

@testable import HTTPServer

@Suite("Recording webhook requests")
struct WebhookRecorderTests {
    private let counters = WebhookCounters()
    private let recorded = RecordingLog()

    private var recorder: WebhookRecorder { WebhookRecorder(counters: counters, logger: recorded.logger) }

    private func event(_ type: String) -> BillingEvent {
        BillingEvent(
            source: .revenuecat,
            id: "E1",
            type: type,
            at: at("2026-11-21T17:00:00Z"),
            environment: .production,
            identities: ["7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11"],
            payload: .object([:])
        )
    }

    @Test("requests are counted by source, type and outcome")
    func counting() {
        let recorder = recorder
        for answer in [#"{"outcome":"applied"}"#, #"{"outcome":"applied"}"#, #"{"outcome":"failed"}"#] {
            recorder.stored(event("CANCELLATION: UNSUBSCRIBE"), answer: answer)
        }
        recorder.stored(event("A_TYPE_TO_COME"), answer: #"{"outcome":"ignored"}"#)
        recorder.rejected(.appstore, outcome: "unverified", "no")
        typealias Key = WebhookCounters.Key
        let snapshot = counters.snapshot
        #expect(
            snapshot.map(\.key) == [
                Key(source: "appstore", type: "none", outcome: "unverified"),
                Key(source: "revenuecat", type: "CANCELLATION", outcome: "applied"),
                Key(source: "revenuecat", type: "CANCELLATION", outcome: "failed"),
                Key(source: "revenuecat", type: "other", outcome: "ignored"),
            ]
        )
        #expect(snapshot.map(\.requests) == [1, 2, 1, 1])
    }

    @Test("the log has an event's id, type and outcome, but not its user")
    func logging() {
        let answer = #"{"outcome":"applied","user":"7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11"}"#
        recorder.stored(event("RENEWAL"), answer: answer)
        recorder.stored(event("RENEWAL"), answer: #"{"outcome":"failed","problem":"7f1c0a52"}"#)
        let lines = recorded.events.map(\.description)
        #expect(lines.count == 2)
        #expect(lines[0].hasPrefix("info ") && lines[1].hasPrefix("notice "))
        for line in lines {
            #expect(line.contains("E1") && line.contains("RENEWAL"))
            #expect(!line.contains("7f1c0a52"))
        }
    }

    @Test("each internal error is logged")
    func internalErrors() {
        let recorder = recorder
        for _ in 0..<3 { recorder.failed(event("RENEWAL"), "why") }
        #expect(
            recorded.events.map(\.description).count {
                $0.hasPrefix("error ") && $0.contains("E1") && $0.contains("why")
            } == 3
        )
        #expect(counters.snapshot.map(\.key.outcome) == ["error"] && counters.snapshot.map(\.requests) == [3])
    }

    @Test("one rejection a minute and store is logged at level notice")
    func rejections() {
        let recorder = recorder
        let start = ContinuousClock.now
        for second in [0, 1, 59, 60, 61] {
            recorder.rejected(.revenuecat, outcome: "unverified", "no", now: start + .seconds(second))
        }
        recorder.rejected(.appstore, outcome: "unverified", "no", now: start + .seconds(61))
        #expect(recorded.events.map(\.level) == [.notice, .debug, .debug, .notice, .debug, .notice])
    }
}
