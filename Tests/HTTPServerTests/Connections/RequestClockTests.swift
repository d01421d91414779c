import NIOCore
import Testing

@testable import HTTPServer

@Suite("The time of a connection of the HTTP port")
struct RequestClockTests {
    private let limits = RequestClock.Limits(
        firstHead: .seconds(10),
        head: .seconds(5),
        output: .seconds(20),
        idle: .seconds(60)
    )

    private func at(_ seconds: Double) -> NIODeadline {
        .uptimeNanoseconds(1_000_000_000) + .nanoseconds(Int64(seconds * 1e9))
    }

    private func connected() -> RequestClock {
        var clock = RequestClock(limits)
        clock.connected(at: at(0))
        return clock
    }

    @Test("gives the first head its time from connecting, and single bytes do not extend it")
    func firstHead() {
        var clock = connected()
        for second in 1...9 { clock.bytesCame(at: at(Double(second))) }
        #expect(clock.awaitedBy == at(10))
        #expect(clock.expired(at: at(9.9)) == nil)
        #expect(clock.expired(at: at(10)) == .head)
    }

    @Test("gives each further head its time from its first byte, and silence before it none")
    func laterHead() {
        var clock = connected()
        clock.headCame()
        clock.requestEnded()
        clock.answerWritten(at: at(1))
        clock.answerSent(at: at(1))
        #expect(clock.awaitedBy == nil)
        clock.bytesCame(at: at(40))
        clock.bytesCame(at: at(44))
        #expect(clock.awaitedBy == at(45))
        #expect(clock.expired(at: at(45)) == .head)
        clock.headCame()
        #expect(clock.awaitedBy == nil, "its body has a time of its own")
        clock.bytesCame(at: at(46))
        #expect(clock.awaitedBy == nil, "those are its body's")
    }

    @Test("counts no time of a head that began while its peer waited for an answer")
    func pipelined() {
        var clock = connected()
        clock.headCame()
        clock.requestEnded()
        clock.bytesCame(at: at(1))
        #expect(clock.awaitedBy == nil)
        #expect(clock.expired(at: at(100)) == nil)
        clock.answerWritten(at: at(100))
        clock.answerSent(at: at(100))
        #expect(clock.awaitedBy == at(105))
        #expect(clock.expired(at: at(105)) == .head)
    }

    @Test("ends a peer that does not take its answer, from when that is written")
    func unsent() {
        var clock = connected()
        clock.headCame()
        clock.requestEnded()
        clock.answerWritten(at: at(3))
        #expect(clock.unanswered == 1)
        clock.answerWritten(at: at(9))
        #expect(clock.awaitedBy == at(23))
        #expect(clock.expired(at: at(22.9)) == nil)
        #expect(clock.expired(at: at(23)) == .output)
        clock.answerSent(at: at(12))
        #expect(clock.awaitedBy == at(32), "it took one of two")
        clock.answerSent(at: at(13))
        #expect(clock.awaitedBy == nil)
    }

    @Test("ends a peer that lets a long answer stand, and not one that goes on reading")
    func unwritable() {
        var clock = connected()
        clock.headCame()
        clock.writabilityChanged(false, at: at(1))
        clock.writabilityChanged(false, at: at(9))
        #expect(clock.expired(at: at(21)) == .output)
        clock.writabilityChanged(true, at: at(10))
        #expect(clock.awaitedBy == nil)
        clock.writabilityChanged(false, at: at(11))
        #expect(clock.awaitedBy == at(31))
        clock.answerWritten(at: at(12))
        clock.answerSent(at: at(14))
        clock.writabilityChanged(true, at: at(14))
        #expect(clock.awaitedBy == nil)
        #expect(clock.unanswered == 0)
    }

    @Test("ends silence, and not while an answer is due")
    func idle() {
        var clock = connected()
        clock.bytesCame(at: at(9))
        clock.headCame()
        #expect(clock.next == at(69), "a body is due")
        clock.requestEnded()
        #expect(clock.next == nil && !clock.isIdle(at: at(1_000)))
        clock.answerWritten(at: at(70))
        clock.answerSent(at: at(71))
        #expect(clock.next == at(131))
        #expect(!clock.isIdle(at: at(130.9)) && clock.isIdle(at: at(131)))
        clock.bytesCame(at: at(130))
        #expect(!clock.isIdle(at: at(189)) && clock.isIdle(at: at(190)))
        #expect(clock.next == at(135), "its head is due before")
    }

    @Test("takes an answer to what was no request")
    func noRequest() {
        var clock = connected()
        clock.bytesCame(at: at(1))
        clock.answerWritten(at: at(1))
        clock.answerSent(at: at(1))
        #expect(clock.unanswered == 0)
        clock.headCame()
        #expect(clock.unanswered == 1)
    }
}

@Suite("What the log is told of connections that are turned away")
struct TurnedAwayTallyTests {
    private func at(_ seconds: Int64) -> NIODeadline { .uptimeNanoseconds(1_000_000_000) + .seconds(seconds) }

    @Test("is one line for a burst, and one a minute with the number while it goes on")
    func lines() {
        var tally = TurnedAwayTally()
        #expect(tally.count(.all, at: at(0)) == at(1))
        for _ in 0..<99 { #expect(tally.count(.all, at: at(0)) == nil) }
        #expect(tally.count(.head, at: at(1)) == nil)
        let first = tally.tell(at: at(1))
        #expect(first.number == 101 && first.reasons == "all=100 head=1")
        #expect(tally.count(.busy, at: at(2)) == at(61), "not within the minute")
        #expect(tally.count(.busy, at: at(60)) == nil)
        let second = tally.tell(at: at(61))
        #expect(second.number == 2 && second.reasons == "busy=2")
        #expect(tally.count(.all, at: at(500)) == at(501))
    }
}
