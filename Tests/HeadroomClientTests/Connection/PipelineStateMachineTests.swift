import NIOCore
import Testing

@testable import HeadroomClient

@Suite("Matching replies to requests")
struct PipelineStateMachineTests {
    private typealias Machine = PipelineStateMachine<String>

    private static func at(_ milliseconds: Int64) -> NIODeadline { .uptimeNanoseconds(0) + .milliseconds(milliseconds) }

    private static func machine(_ waiters: String...) -> Machine {
        var machine = Machine(now: at(0))
        for (index, waiter) in waiters.enumerated() {
            #expect(machine.append(waiter, id: UInt64(index), now: at(1), deadline: at(100)) == true)
        }
        machine.flushed()
        return machine
    }

    private static func delivered(_ action: Machine.ReplyAction) -> String? {
        if case .deliver(let waiter) = action { waiter } else { nil }
    }

    @Test("Replies resume the waiters in the order of their requests")
    func order() {
        var machine = Self.machine("a", "b", "c")
        let delivered = (0..<3).map { _ in Self.delivered(machine.received(now: Self.at(2))) }
        #expect(delivered == ["a", "b", "c"])
        guard case .unexpected = machine.received(now: Self.at(2)) else {
            Issue.record("a fourth reply has no request")
            return
        }
    }

    @Test("A cancelled request keeps its slot until its reply arrives")
    func cancelled() {
        var machine = Self.machine("a", "b")
        #expect(machine.cancel(0) == "a")
        #expect(machine.cancel(0) == nil)
        guard case .ignore = machine.received(now: Self.at(2)) else {
            Issue.record("the reply to a cancelled request is ignored")
            return
        }
        #expect(Self.delivered(machine.received(now: Self.at(2))) == "b")
    }

    @Test("A reply without a request is unexpected")
    func unsent() {
        var machine = Machine(now: Self.at(0))
        _ = machine.append("a", id: 1, now: Self.at(1), deadline: Self.at(100))
        guard case .unexpected = machine.received(now: Self.at(2)) else {
            Issue.record("a request that has not left was answered")
            return
        }
    }

    @Test("Late requests time out, and the next deadline is that of the others")
    func expiry() {
        var machine = Self.machine("a")
        _ = machine.append("b", id: 7, now: Self.at(50), deadline: Self.at(300))
        machine.flushed()
        let expired = machine.expire(now: Self.at(100))
        #expect(expired.waiters == ["a"] && expired.isSilent)
        #expect(machine.earliestDeadline == Self.at(300))
        #expect(machine.expire(now: Self.at(200)).waiters.isEmpty)
    }

    @Test("A connection that received something is slow, not silent")
    func slow() {
        var machine = Self.machine("a", "b")
        _ = machine.received(now: Self.at(50))
        let expired = machine.expire(now: Self.at(100))
        #expect(expired.waiters == ["b"] && !expired.isSilent)
    }

    @Test("Cancellations do not hide a silent connection")
    func impatient() {
        var machine = Self.machine("a")
        #expect(machine.cancel(0) == "a")
        let expired = machine.expire(now: Self.at(100))
        #expect(expired.waiters.isEmpty && expired.isSilent)
    }

    @Test("A retiring connection does not wait for replies to cancelled requests")
    func retiringWithoutWaiters() {
        var machine = Self.machine("a", "b")
        _ = machine.cancel(0)
        #expect(machine.retire() == false && !machine.isDone)
        _ = machine.expire(now: Self.at(100))
        #expect(machine.isDone)
        var given = Self.machine("a")
        _ = given.cancel(0)
        #expect(given.retire() == true)
    }

    @Test("When the connection ends, all waiters learn whether their requests were sent")
    func lost() {
        var machine = Self.machine("a", "b")
        _ = machine.append("c", id: 9, now: Self.at(2), deadline: Self.at(100))
        _ = machine.cancel(1)
        let lost = machine.close()
        #expect(lost.map(\.waiter) == ["a", "c"] && lost.map(\.wasSent) == [true, false])
        #expect(machine.append("d", id: 10, now: Self.at(3), deadline: Self.at(100)) == false)
    }

    @Test("A retiring connection delivers replies and accepts no requests")
    func retiring() {
        var machine = Self.machine("a")
        #expect(machine.retire() == false)
        #expect(machine.append("b", id: 5, now: Self.at(2), deadline: Self.at(100)) == false)
        #expect(!machine.isDone)
        #expect(Self.delivered(machine.received(now: Self.at(2))) == "a")
        #expect(machine.isDone)
        var idle = Self.machine()
        #expect(idle.retire() == true)
    }
}
