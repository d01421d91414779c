import LineProtocol
import NIOCore
import Testing

@testable import LineServer
@testable import ServiceCore

@Suite("A connection's timeouts")
struct ConnectionTimeoutsTests {
    private let limits = ConnectionLimits(
        request: RequestLimits(bytesMaximum: 1_024, tokensMaximum: 16),
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

    private func started() -> ConnectionTimeouts {
        var timeouts = ConnectionTimeouts()
        timeouts.start(at: at(0), limits)
        return timeouts
    }

    @Test("close a connection without a complete request in time")
    func firstRequest() {
        var timeouts = started()
        #expect(timeouts.nextDeadline == at(10))
        #expect(timeouts.expire(at: at(9.9), isIdle: true) == nil)
        #expect(timeouts.expire(at: at(10), isIdle: true) == .noFirstRequest)
    }

    @Test("close a connection without further requests for the idle time")
    func idle() {
        var timeouts = started()
        timeouts.requestsReceived(at: at(5))
        #expect(timeouts.nextDeadline == at(305))
        #expect(timeouts.expire(at: at(304.9), isIdle: true) == nil)
        #expect(timeouts.expire(at: at(305), isIdle: true) == .idle)
        timeouts.requestsReceived(at: at(305))
        #expect(timeouts.expire(at: at(305), isIdle: true) == nil)
    }

    @Test("keep a silent connection with subscriptions open beyond the idle time")
    func subscribed() {
        var timeouts = started()
        timeouts.requestsReceived(at: at(0))
        #expect(timeouts.expire(at: at(300), isIdle: true, isSubscribed: true) == nil)
        #expect(timeouts.nextDeadline == at(600))
        #expect(timeouts.expire(at: at(600), isIdle: true, isSubscribed: false) == .idle)
    }

    @Test("close a connection that does not complete a request in time, however many parts it sends")
    func incompleteRequest() {
        var timeouts = started()
        timeouts.requestsReceived(at: at(5))
        #expect(timeouts.incompleteRequestReceived(at: at(6)) == true)
        #expect(timeouts.incompleteRequestReceived(at: at(20)) == false, "another part gives it no more time")
        #expect(timeouts.nextDeadline == at(21))
        #expect(timeouts.expire(at: at(20.9), isIdle: true, isSubscribed: true) == nil)
        #expect(timeouts.expire(at: at(21), isIdle: true, isSubscribed: true) == .incompleteRequest)
    }

    @Test("give each request its own time to be completed")
    func completedRequest() {
        var timeouts = started()
        #expect(timeouts.incompleteRequestReceived(at: at(1)) == true)
        timeouts.requestsReceived(at: at(9))
        #expect(timeouts.nextDeadline == at(309))
        #expect(timeouts.incompleteRequestReceived(at: at(9)) == true)
        #expect(timeouts.expire(at: at(23.9), isIdle: true) == nil)
        #expect(timeouts.expire(at: at(24), isIdle: false) == nil, "it waits for a reply")
        #expect(timeouts.expire(at: at(38.9), isIdle: true) == nil)
        #expect(timeouts.expire(at: at(39), isIdle: true) == .incompleteRequest)
    }

    @Test("do not apply to a connection that waits for a reply")
    func busy() {
        var timeouts = started()
        timeouts.requestsReceived(at: at(0))
        #expect(timeouts.expire(at: at(300), isIdle: false) == nil)
        #expect(timeouts.nextDeadline == at(600), "looked at again, not at once")
        #expect(timeouts.expire(at: at(301), isIdle: true) == nil)
        #expect(timeouts.expire(at: at(600), isIdle: true) == .idle)
    }

    @Test("close a connection, idle or not, whose peer does not read its replies", arguments: [true, false])
    func stuckOutput(isIdle: Bool) {
        var timeouts = started()
        timeouts.requestsReceived(at: at(1))
        timeouts.writabilityChanged(to: false, at: at(2), limits)
        timeouts.writabilityChanged(to: false, at: at(15), limits)
        #expect(timeouts.nextDeadline == at(22), "from when it began")
        #expect(timeouts.expire(at: at(21.9), isIdle: isIdle) == nil)
        #expect(timeouts.expire(at: at(22), isIdle: isIdle) == .outputTimeout)
    }

    @Test("start anew once the peer reads its replies again")
    func unstuckOutput() {
        var timeouts = started()
        timeouts.requestsReceived(at: at(1))
        timeouts.writabilityChanged(to: false, at: at(2), limits)
        timeouts.writabilityChanged(to: true, at: at(3), limits)
        #expect(timeouts.expire(at: at(22), isIdle: true) == nil)
        timeouts.writabilityChanged(to: false, at: at(30), limits)
        #expect(timeouts.nextDeadline == at(50))
    }

    @Test("keep a lingering connection open for a moment")
    func lingering() {
        var timeouts = started()
        timeouts.requestsReceived(at: at(1))
        timeouts.bytesReceived(at: at(1.9), limits)
        #expect(!timeouts.isLingering)
        timeouts.linger(from: at(2), limits)
        #expect(timeouts.nextDeadline == at(2.25))
        #expect(timeouts.expire(at: at(2.2), isIdle: true) == nil)
        #expect(timeouts.expire(at: at(2.25), isIdle: true) == .lingered)
    }

    @Test("keep a lingering connection open while its peer sends, up to the maximum")
    func lingeringWhileBytesCome() {
        var timeouts = started()
        timeouts.requestsReceived(at: at(1))
        timeouts.linger(from: at(2), limits)
        for seconds in [2.2, 2.4, 2.6, 2.8, 2.9] {
            timeouts.bytesReceived(at: at(seconds), limits)
            let end = min(at(seconds) + .milliseconds(250), at(3))
            #expect(timeouts.nextDeadline == end)
            #expect(timeouts.expire(at: end - .milliseconds(1), isIdle: true) == nil)
        }
        #expect(timeouts.expire(at: at(3), isIdle: true) == .lingered)
        timeouts.linger(from: at(2.875), limits)
        #expect(timeouts.expire(at: at(3), isIdle: true) == nil, "the last reply was sent then")
        #expect(timeouts.nextDeadline == at(3.125))
    }

    @Test("keep a lingering connection open until its requests are answered")
    func lingeringBusy() {
        var timeouts = started()
        timeouts.requestsReceived(at: at(1))
        timeouts.linger(from: at(2), limits)
        #expect(timeouts.expire(at: at(2.25), isIdle: false) == nil)
        #expect(timeouts.nextDeadline == at(2.3))
        #expect(timeouts.expire(at: at(2.3), isIdle: true) == .lingered)
    }
}
