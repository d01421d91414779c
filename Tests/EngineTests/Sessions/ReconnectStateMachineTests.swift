import Postgres
import TestSupport
import Testing

@testable import Engine

@Suite("The reconnect state machine")
struct ReconnectStateMachineTests {
    private let start = ContinuousClock.now

    private func fail(
        _ machine: inout ReconnectStateMachine,
        _ sqlState: SQLState? = nil,
        at now: ContinuousClock.Instant
    ) -> ReconnectStateMachine.Failure {
        var generator = SeededGenerator(seed: 1)
        return machine.failed(sqlState, at: now, using: &generator)
    }

    @Test("opens at once, and only once at a time")
    func opening() {
        var machine = ReconnectStateMachine(at: start)
        #expect(machine.startOpening(at: start) == true)
        #expect(machine.startOpening(at: start + .seconds(60)) == false)
        #expect(machine.opened(at: start) == nil, "no outage")
        #expect(machine.startOpening(at: start + .seconds(60)) == false)
        #expect(machine.reconnects == 0)
    }

    @Test("waits after each failure, and reports the length of the outage")
    func outage() {
        var machine = ReconnectStateMachine(at: start)
        #expect(fail(&machine, at: start) == .first)
        #expect(machine.startOpening(at: start + .milliseconds(20)) == false)
        #expect(machine.startOpening(at: start + .milliseconds(50)) == true)
        #expect(fail(&machine, at: start + .seconds(1)) == .repeated)
        #expect(machine.downSince == start)
        #expect(machine.startOpening(at: start + .seconds(2)) == true)
        #expect(machine.opened(at: start + .seconds(3)) == .seconds(3))
        #expect(machine.downSince == nil && machine.reconnects == 1)
    }

    @Test("tries again at once after an attempt that took longer than the pause")
    func longAttempt() {
        var machine = ReconnectStateMachine(at: start)
        #expect(machine.startOpening(at: start) == true)
        #expect(fail(&machine, at: start + .seconds(2)) == .first)
        #expect(machine.startOpening(at: start + .seconds(2)) == true)
        #expect(fail(&machine, at: start + .seconds(2)) == .repeated)
        #expect(machine.startOpening(at: start + .seconds(2)) == false)
    }

    @Test("distinguishes a new error of the server from a repeated one")
    func refusal() {
        var machine = ReconnectStateMachine(at: start)
        #expect(fail(&machine, at: start) == .first)
        #expect(fail(&machine, .insufficientPrivilege, at: start) == .refused)
        #expect(fail(&machine, .insufficientPrivilege, at: start) == .repeated)
        #expect(fail(&machine, at: start) == .repeated)
    }

    @Test("keeps a session whose statement is late, until its end or a failure")
    func late() {
        var machine = ReconnectStateMachine(at: start)
        machine.becameLate(until: start + .seconds(1))
        #expect(machine.state == .closed(retryAt: start), "there is no session")
        _ = (machine.startOpening(at: start), machine.opened(at: start))
        machine.becameLate(until: start + .seconds(1))
        #expect(machine.state == .late(until: start + .seconds(1)))
        #expect(machine.startOpening(at: start + .seconds(60)) == false)
        #expect(machine.downSince == nil)
        machine.settled()
        #expect(machine.state == .open && machine.reconnects == 0)
        machine.becameLate(until: start + .seconds(3))
        #expect(fail(&machine, at: start + .seconds(3)) == .first)
        machine.settled()
        #expect(machine.startOpening(at: start + .seconds(4)) == true)
    }

    @Test("forgets an outage when the session is closed on purpose, and opens again at once")
    func closing() {
        var machine = ReconnectStateMachine(at: start)
        _ = fail(&machine, at: start)
        machine.closed(at: start)
        #expect(machine.downSince == nil)
        #expect(machine.startOpening(at: start) == true)
    }
}
