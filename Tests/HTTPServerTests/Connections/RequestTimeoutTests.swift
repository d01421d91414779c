import NIOCore
import Testing

@testable import HTTPServer

@Suite("Timeouts of a connection")
struct RequestTimeoutTests {
    private let limits = RequestTimeoutStateMachine.Limits(
        firstHead: .seconds(10),
        head: .seconds(5),
        output: .seconds(20),
        idle: .seconds(60)
    )

    private func at(_ seconds: Double) -> NIODeadline {
        .uptimeNanoseconds(1_000_000_000) + .nanoseconds(Int64(seconds * 1e9))
    }

    private func connected() -> RequestTimeoutStateMachine {
        var timeouts = RequestTimeoutStateMachine(limits)
        timeouts.connected(at: at(0))
        return timeouts
    }

    @Test("the first head is due from connecting, and further bytes do not extend it")
    func firstHead() {
        var timeouts = connected()
        for second in 1...9 { timeouts.bytesReceived(at: at(Double(second))) }
        #expect(timeouts.peerDeadline == at(10))
        #expect(timeouts.expired(at: at(9.9)) == nil)
        #expect(timeouts.expired(at: at(10)) == .headTimeout)
    }

    @Test("a later head is due from its first byte")
    func laterHead() {
        var timeouts = connected()
        timeouts.headReceived()
        timeouts.requestEnded()
        timeouts.responseWritten(at: at(1))
        timeouts.responseSent(at: at(1))
        #expect(timeouts.peerDeadline == nil)
        timeouts.bytesReceived(at: at(40))
        timeouts.bytesReceived(at: at(44))
        #expect(timeouts.peerDeadline == at(45))
        #expect(timeouts.expired(at: at(45)) == .headTimeout)
        timeouts.headReceived()
        #expect(timeouts.peerDeadline == nil, "the body has its own timeout")
        timeouts.bytesReceived(at: at(46))
        #expect(timeouts.peerDeadline == nil, "these bytes are the body's")
    }

    @Test("a pipelined head is due from the previous response")
    func pipelined() {
        var timeouts = connected()
        timeouts.headReceived()
        timeouts.requestEnded()
        timeouts.bytesReceived(at: at(1))
        #expect(timeouts.peerDeadline == nil)
        #expect(timeouts.expired(at: at(100)) == nil)
        timeouts.responseWritten(at: at(100))
        timeouts.responseSent(at: at(100))
        #expect(timeouts.peerDeadline == at(105))
        #expect(timeouts.expired(at: at(105)) == .headTimeout)
    }

    @Test("a response has to be read in time from when it is written")
    func unsent() {
        var timeouts = connected()
        timeouts.headReceived()
        timeouts.requestEnded()
        timeouts.responseWritten(at: at(3))
        #expect(timeouts.unanswered == 1)
        timeouts.responseWritten(at: at(9))
        #expect(timeouts.peerDeadline == at(23))
        #expect(timeouts.expired(at: at(22.9)) == nil)
        #expect(timeouts.expired(at: at(23)) == .outputTimeout)
        timeouts.responseSent(at: at(12))
        #expect(timeouts.peerDeadline == at(32), "one of two was read")
        timeouts.responseSent(at: at(13))
        #expect(timeouts.peerDeadline == nil)
    }

    @Test("a peer that stops reading a long response times out")
    func unwritable() {
        var timeouts = connected()
        timeouts.headReceived()
        timeouts.writabilityChanged(false, at: at(1))
        timeouts.writabilityChanged(false, at: at(9))
        #expect(timeouts.expired(at: at(21)) == .outputTimeout)
        timeouts.writabilityChanged(true, at: at(10))
        #expect(timeouts.peerDeadline == nil)
        timeouts.writabilityChanged(false, at: at(11))
        #expect(timeouts.peerDeadline == at(31))
        timeouts.responseWritten(at: at(12))
        timeouts.responseSent(at: at(14))
        timeouts.writabilityChanged(true, at: at(14))
        #expect(timeouts.peerDeadline == nil)
        #expect(timeouts.unanswered == 0)
    }

    @Test("an idle connection times out, except while a response is due")
    func idle() {
        var timeouts = connected()
        timeouts.bytesReceived(at: at(9))
        timeouts.headReceived()
        #expect(timeouts.nextDeadline == at(69), "a body is due")
        timeouts.requestEnded()
        #expect(timeouts.nextDeadline == nil && !timeouts.isIdle(at: at(1_000)))
        timeouts.responseWritten(at: at(70))
        timeouts.responseSent(at: at(71))
        #expect(timeouts.nextDeadline == at(131))
        #expect(!timeouts.isIdle(at: at(130.9)) && timeouts.isIdle(at: at(131)))
        timeouts.bytesReceived(at: at(130))
        #expect(!timeouts.isIdle(at: at(189)) && timeouts.isIdle(at: at(190)))
        #expect(timeouts.nextDeadline == at(135), "the head is due earlier")
    }

    @Test("a response without a request, to malformed input, is not counted as unanswered")
    func noRequest() {
        var timeouts = connected()
        timeouts.bytesReceived(at: at(1))
        timeouts.responseWritten(at: at(1))
        timeouts.responseSent(at: at(1))
        #expect(timeouts.unanswered == 0)
        timeouts.headReceived()
        #expect(timeouts.unanswered == 1)
    }
}

@Suite("The log of rejections")
struct RejectionLogTests {
    private func at(_ seconds: Int64) -> NIODeadline { .uptimeNanoseconds(1_000_000_000) + .seconds(seconds) }

    @Test("has one line per burst, and then at most one line a minute")
    func lines() {
        var log = RejectionLogStateMachine()
        #expect(log.count(.connectionLimit, at: at(0)) == at(1))
        for _ in 0..<99 { #expect(log.count(.connectionLimit, at: at(0)) == nil) }
        #expect(log.count(.headTimeout, at: at(1)) == nil)
        let first = log.takeSummary(at: at(1))
        #expect(first.number == 101 && first.reasons == "all=100 head=1")
        #expect(log.count(.busy, at: at(2)) == at(61), "not within the minute")
        #expect(log.count(.busy, at: at(60)) == nil)
        let second = log.takeSummary(at: at(61))
        #expect(second.number == 2 && second.reasons == "busy=2")
        #expect(log.count(.connectionLimit, at: at(500)) == at(501))
    }
}
