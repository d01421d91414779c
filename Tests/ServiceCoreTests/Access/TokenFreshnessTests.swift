import Postgres
import Testing

@testable import ServiceCore

@Suite("The age of the tokens in memory")
struct TokenFreshnessTests {
    private let start = ContinuousClock.now
    private let lost = PostgresError(.connectFailed, "connection to server at \"10.1.2.3\" failed")

    private func at(_ seconds: Int) -> ContinuousClock.Instant { start + .seconds(seconds) }

    @Test("is a problem from ten seconds on, and is logged once until they are read again")
    func limit() {
        var freshness = TokenFreshness(since: start)
        var wasReported = freshness.read(at: at(1))
        #expect(!wasReported)
        var report = freshness.failed(lost, at: at(10))
        #expect(report == nil && freshness.problem(at: at(10)) == nil)
        #expect(freshness.problem(at: at(11)) == "the tokens were last read 10 s ago: \(lost.summary)")
        report = freshness.failed(lost, at: at(11))
        #expect(report?.contains("the last ones stay valid") == true)
        report = freshness.failed(lost, at: at(13))
        #expect(report == nil && freshness.age(at: at(13)) == .seconds(12))
        wasReported = freshness.read(at: at(14))
        #expect(wasReported && freshness.problem(at: at(14)) == nil)
        wasReported = freshness.read(at: at(15))
        #expect(!wasReported)
        report = freshness.failed(lost, at: at(26))
        #expect(report != nil)
    }

    @Test("is a problem from the start if they were never read")
    func never() {
        var freshness = TokenFreshness(since: start)
        #expect(freshness.problem(at: at(0))?.contains("never read") == true)
        var report = freshness.failed(lost, at: at(0))
        #expect(report?.contains("connections are refused until they can") == true)
        report = freshness.failed(lost, at: at(20))
        #expect(report == nil && freshness.age(at: at(20)) == .seconds(20))
        #expect(freshness.problem(at: at(20))?.contains("10.1.2.3") == false, "the page is public")
        let wasReported = freshness.read(at: at(21))
        #expect(wasReported)
    }

    @Test("is a problem also while the first read is still running")
    func hung() {
        var freshness = TokenFreshness(since: start)
        _ = freshness.read(at: start)
        #expect(freshness.problem(at: at(12)) == "the tokens were last read 12 s ago: no answer from the database yet")
    }
}
