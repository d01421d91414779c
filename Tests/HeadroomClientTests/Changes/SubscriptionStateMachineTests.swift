import TestSupport
import Testing

@testable import HeadroomClient

@Suite("Following users over lost connections")
struct SubscriptionStateMachineTests {
    private func status(_ user: UserID, used: Int) -> UsageStatus {
        var status = UsageStatus.degraded(user)
        status.used = used
        return status
    }

    /// Follower 1 follows Ada and has received `used: 3`.
    private func following() -> SubscriptionStateMachine {
        var machine = SubscriptionStateMachine()
        #expect(machine.added(1, of: ada) == [.connect])
        #expect(machine.connected() == [.subscribe(ada)])
        #expect(machine.confirmed(ada) == [.read(ada, reading: 1)])
        #expect(machine.readCompleted(status(ada, used: 3), reading: 1) == [.deliver(status(ada, used: 3), to: [1])])
        return machine
    }

    @Test("The usage is delivered first, then each change, and nothing twice")
    func changes() {
        var machine = following()
        #expect(machine.received(status(ada, used: 4)) == [.deliver(status(ada, used: 4), to: [1])])
        #expect(machine.received(status(ada, used: 4)) == [])
        #expect(machine.received(status(ben, used: 1)) == [])
    }

    @Test("A change that arrives during a read replaces its result")
    func overtaken() {
        var machine = SubscriptionStateMachine()
        _ = machine.added(1, of: ada)
        _ = machine.connected()
        #expect(machine.confirmed(ada) == [.read(ada, reading: 1)])
        #expect(machine.received(status(ada, used: 5)) == [.deliver(status(ada, used: 5), to: [1])])
        #expect(machine.readCompleted(status(ada, used: 4), reading: 1) == [])
    }

    @Test("After a lost connection it subscribes again and delivers changed usage")
    func reconnected() {
        var machine = following()
        #expect(machine.lost() == [.connect])
        #expect(machine.connected() == [.subscribe(ada)])
        #expect(machine.confirmed(ada) == [.read(ada, reading: 2)])
        #expect(machine.readCompleted(status(ada, used: 3), reading: 2) == [])
        _ = machine.lost()
        _ = machine.connected()
        #expect(machine.confirmed(ada) == [.read(ada, reading: 3)])
        #expect(machine.readCompleted(status(ada, used: 9), reading: 3) == [.deliver(status(ada, used: 9), to: [1])])
    }

    @Test("The result of a read from before a lost connection is dropped")
    func stale() {
        var machine = following()
        _ = machine.lost()
        #expect(machine.readCompleted(status(ada, used: 8), reading: 1) == [])
    }

    @Test("A failed read is repeated")
    func unread() {
        var machine = SubscriptionStateMachine()
        _ = machine.added(1, of: ada)
        _ = machine.connected()
        _ = machine.confirmed(ada)
        #expect(machine.readFailed(ada, reading: 1) == [.read(ada, reading: 2)])
        #expect(machine.readFailed(ada, reading: 1) == [])
    }

    @Test("A later follower receives the usage at once, and all receive changes")
    func second() {
        var machine = following()
        #expect(machine.added(2, of: ada) == [.deliver(status(ada, used: 3), to: [2])])
        #expect(machine.received(status(ada, used: 4)) == [.deliver(status(ada, used: 4), to: [1, 2])])
        #expect(machine.added(3, of: ben) == [.subscribe(ben)])
    }

    @Test("A follower that joins during a reconnect receives the usage, also if it is unchanged")
    func joiningALoss() {
        var machine = following()
        _ = machine.lost()
        #expect(machine.added(2, of: ada) == [])
        _ = machine.connected()
        #expect(machine.added(3, of: ada) == [])
        #expect(machine.confirmed(ada) == [.read(ada, reading: 2)])
        #expect(
            machine.readCompleted(status(ada, used: 3), reading: 2) == [.deliver(status(ada, used: 3), to: [2, 3])]
        )
        #expect(machine.received(status(ada, used: 3)) == [])
        #expect(machine.received(status(ada, used: 4)) == [.deliver(status(ada, used: 4), to: [1, 2, 3])])
    }

    @Test("Users without followers are unsubscribed, and without users the connection is closed")
    func leaving() {
        var machine = following()
        _ = machine.added(2, of: ben)
        #expect(machine.removed(1, of: ada) == [.unsubscribe(ada)])
        #expect(machine.received(status(ada, used: 7)) == [])
        #expect(machine.removed(2, of: ben) == [.disconnect])
        #expect(machine.lost() == [])
        #expect(machine.added(3, of: ada) == [.connect])
    }

    @Test("Following again during an unsubscription subscribes after it")
    func comingBack() {
        var machine = following()
        _ = machine.added(2, of: ben)
        #expect(machine.removed(1, of: ada) == [.unsubscribe(ada)])
        #expect(machine.added(3, of: ada) == [])
        #expect(machine.unsubscribed(ada) == [.subscribe(ada)])
        #expect(machine.unsubscribed(ada) == [])
        // An unfollowed user is unsubscribed when the confirmation arrives.
        #expect(machine.removed(2, of: ben) == [])
        #expect(machine.confirmed(ben) == [.unsubscribe(ben)])
        #expect(machine.unsubscribed(ben) == [])
    }

    @Test("Without followers the new connection is closed")
    func leftEarly() {
        var machine = SubscriptionStateMachine()
        _ = machine.added(1, of: ada)
        #expect(machine.removed(1, of: ada) == [])
        #expect(machine.connected() == [.disconnect])
    }

    @Test("A refusal ends the streams of its users")
    func refused() {
        var machine = following()
        _ = machine.added(2, of: ben)
        #expect(machine.refused(ada) == [.finish([1])])
        #expect(machine.refused() == [.finish([2])])
    }
}
