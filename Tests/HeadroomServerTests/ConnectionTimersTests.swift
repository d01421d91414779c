import LineProtocol
import NIOCore
import Testing

@testable import HeadroomServer

@Suite("A connection's timers")
struct ConnectionTimersTests {
    private let limits = ConnectionLimits(
        request: RequestLimits(requestSizeBytes: 1_024, tokens: 16),
        inFlightMaximum: 10,
        outputBytesMaximum: 1_000,
        outputTimeout: .seconds(20),
        idleTimeout: .seconds(300),
        firstRequestTimeout: .seconds(10),
        incompleteRequestTimeout: .seconds(15),
        connectionsMaximum: 10,
        allowsWhenUnavailable: false,
        lingerTimeout: .milliseconds(250),
        lingerMaximum: .seconds(1)
    )

    private func at(_ seconds: Double) -> NIODeadline {
        .uptimeNanoseconds(1_000_000_000_000) + .nanoseconds(Int64(seconds * 1_000_000_000))
    }

    private func started() -> ConnectionTimers {
        var timers = ConnectionTimers()
        timers.start(at: at(0), limits)
        return timers
    }

    @Test("close a connection that makes no complete request in time")
    func firstRequest() {
        var timers = started()
        #expect(timers.next(isIdle: true) == at(10))
        #expect(timers.expired(at: at(9.9), isIdle: true) == nil)
        #expect(timers.expired(at: at(10), isIdle: true) == .noFirstRequest)
    }

    @Test("close a connection that made a request once, and then none for the idle time")
    func idle() {
        var timers = started()
        timers.requestsCame(at: at(5))
        #expect(timers.next(isIdle: true) == at(305))
        #expect(timers.expired(at: at(304.9), isIdle: true) == nil)
        #expect(timers.expired(at: at(305), isIdle: true) == .idle)
        timers.requestsCame(at: at(305))
        #expect(timers.expired(at: at(305), isIdle: true) == nil)
    }

    @Test("close a connection that does not complete a request it began, however its parts trickle")
    func incompleteRequest() {
        var timers = started()
        timers.requestsCame(at: at(5))
        #expect(timers.requestIsIncomplete(at: at(6)) == true)
        #expect(timers.requestIsIncomplete(at: at(20)) == false, "another part gives it no more time")
        #expect(timers.next(isIdle: true) == at(21))
        #expect(timers.expired(at: at(20.9), isIdle: true, listens: true) == nil)
        #expect(timers.expired(at: at(21), isIdle: true, listens: true) == .incompleteRequest)
    }

    @Test("give each request its own time to be completed")
    func completedRequest() {
        var timers = started()
        #expect(timers.requestIsIncomplete(at: at(1)) == true)
        timers.requestsCame(at: at(9))
        #expect(timers.next(isIdle: true) == at(309))
        #expect(timers.requestIsIncomplete(at: at(9)) == true)
        #expect(timers.expired(at: at(23.9), isIdle: true) == nil)
        #expect(timers.expired(at: at(24), isIdle: false) == nil, "it waits for an answer of ours")
        #expect(timers.expired(at: at(38.9), isIdle: true) == nil)
        #expect(timers.expired(at: at(39), isIdle: true) == .incompleteRequest)
    }

    @Test("do not call a connection idle that waits for our answer")
    func busy() {
        var timers = started()
        timers.requestsCame(at: at(0))
        #expect(timers.expired(at: at(300), isIdle: false) == nil)
        #expect(timers.next(isIdle: false) == at(600), "looked at again, not at once")
        #expect(timers.expired(at: at(301), isIdle: true) == nil)
        #expect(timers.expired(at: at(600), isIdle: true) == .idle)
    }

    @Test("close a connection whose peer takes no replies for too long, also a busy one", arguments: [true, false])
    func stuckOutput(isIdle: Bool) {
        var timers = started()
        timers.requestsCame(at: at(1))
        timers.writability(false, at: at(2), limits)
        timers.writability(false, at: at(15), limits)
        #expect(timers.next(isIdle: isIdle) == at(22), "from when it began")
        #expect(timers.expired(at: at(21.9), isIdle: isIdle) == nil)
        #expect(timers.expired(at: at(22), isIdle: isIdle) == .outputStuck)
    }

    @Test("forget a stuck output that has moved")
    func unstuckOutput() {
        var timers = started()
        timers.requestsCame(at: at(1))
        timers.writability(false, at: at(2), limits)
        timers.writability(true, at: at(3), limits)
        #expect(timers.expired(at: at(22), isIdle: true) == nil)
        timers.writability(false, at: at(30), limits)
        #expect(timers.next(isIdle: true) == at(50))
    }

    @Test("keep a connection that lingers open for a moment")
    func lingering() {
        var timers = started()
        timers.requestsCame(at: at(1))
        timers.bytesCame(at: at(1.9), limits)
        #expect(!timers.lingers)
        timers.lingers(from: at(2), limits)
        #expect(timers.next(isIdle: true) == at(2.25))
        #expect(timers.expired(at: at(2.2), isIdle: true) == nil)
        #expect(timers.expired(at: at(2.25), isIdle: true) == .lingered)
    }

    @Test("keep a connection that lingers open while its peer sends, up to the maximum")
    func lingeringWhileBytesCome() {
        var timers = started()
        timers.requestsCame(at: at(1))
        timers.lingers(from: at(2), limits)
        for seconds in [2.2, 2.4, 2.6, 2.8, 2.9] {
            timers.bytesCame(at: at(seconds), limits)
            let end = min(at(seconds) + .milliseconds(250), at(3))
            #expect(timers.next(isIdle: true) == end)
            #expect(timers.expired(at: end - .milliseconds(1), isIdle: true) == nil)
        }
        #expect(timers.expired(at: at(3), isIdle: true) == .lingered)
        timers.lingers(from: at(2.875), limits)
        #expect(timers.expired(at: at(3), isIdle: true) == nil, "the last reply was sent then")
        #expect(timers.next(isIdle: true) == at(3.125))
    }

    @Test("let a connection that lingers have its answers first")
    func lingeringBusy() {
        var timers = started()
        timers.requestsCame(at: at(1))
        timers.lingers(from: at(2), limits)
        #expect(timers.expired(at: at(2.25), isIdle: false) == nil)
        #expect(timers.next(isIdle: false) == at(2.3))
        #expect(timers.expired(at: at(2.3), isIdle: true) == .lingered)
    }
}
