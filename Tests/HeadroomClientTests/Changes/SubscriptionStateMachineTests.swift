import TestSupport
import Testing

@testable import HeadroomClient

@Suite("Following users, whatever becomes of the connection")
struct SubscriptionStateMachineTests {
    private func status(_ user: UserID, used: Int) -> UsageStatus {
        var status = UsageStatus.degraded(user)
        status.used = used
        return status
    }

    /// Ada is followed by 1, and her state with `used: 3` was told.
    private func following() -> SubscriptionStateMachine {
        var machine = SubscriptionStateMachine()
        #expect(machine.added(1, of: ada) == [.connect])
        #expect(machine.connected() == [.subscribe(ada)])
        #expect(machine.confirmed(ada) == [.read(ada, reading: 1)])
        #expect(machine.hasRead(status(ada, used: 3), reading: 1) == [.deliver(status(ada, used: 3), to: [1])])
        return machine
    }

    @Test("First the state is told, then each change, and nothing twice")
    func changes() {
        var machine = following()
        #expect(machine.told(status(ada, used: 4)) == [.deliver(status(ada, used: 4), to: [1])])
        #expect(machine.told(status(ada, used: 4)) == [])
        #expect(machine.told(status(ben, used: 1)) == [])
    }

    @Test("A change that comes while the state is read is newer than what is read")
    func overtaken() {
        var machine = SubscriptionStateMachine()
        _ = machine.added(1, of: ada)
        _ = machine.connected()
        #expect(machine.confirmed(ada) == [.read(ada, reading: 1)])
        #expect(machine.told(status(ada, used: 5)) == [.deliver(status(ada, used: 5), to: [1])])
        #expect(machine.hasRead(status(ada, used: 4), reading: 1) == [])
    }

    @Test("After a loss it subscribes again, and tells the state where it differs")
    func reconnected() {
        var machine = following()
        #expect(machine.lost() == [.connect])
        #expect(machine.connected() == [.subscribe(ada)])
        #expect(machine.confirmed(ada) == [.read(ada, reading: 2)])
        #expect(machine.hasRead(status(ada, used: 3), reading: 2) == [])
        _ = machine.lost()
        _ = machine.connected()
        #expect(machine.confirmed(ada) == [.read(ada, reading: 3)])
        #expect(machine.hasRead(status(ada, used: 9), reading: 3) == [.deliver(status(ada, used: 9), to: [1])])
    }

    @Test("What was being read when the connection was lost is not told")
    func stale() {
        var machine = following()
        _ = machine.lost()
        #expect(machine.hasRead(status(ada, used: 8), reading: 1) == [])
    }

    @Test("A reading that failed is done again")
    func unread() {
        var machine = SubscriptionStateMachine()
        _ = machine.added(1, of: ada)
        _ = machine.connected()
        _ = machine.confirmed(ada)
        #expect(machine.couldNotRead(ada, reading: 1) == [.read(ada, reading: 2)])
        #expect(machine.couldNotRead(ada, reading: 1) == [])
    }

    @Test("Who follows later hears the state at once, and all hear what changes")
    func second() {
        var machine = following()
        #expect(machine.added(2, of: ada) == [.deliver(status(ada, used: 3), to: [2])])
        #expect(machine.told(status(ada, used: 4)) == [.deliver(status(ada, used: 4), to: [1, 2])])
        #expect(machine.added(3, of: ben) == [.subscribe(ben)])
    }

    @Test("Who follows while it connects again hears the state, also where it is what others heard before")
    func joiningALoss() {
        var machine = following()
        _ = machine.lost()
        #expect(machine.added(2, of: ada) == [])
        _ = machine.connected()
        #expect(machine.added(3, of: ada) == [])
        #expect(machine.confirmed(ada) == [.read(ada, reading: 2)])
        #expect(machine.hasRead(status(ada, used: 3), reading: 2) == [.deliver(status(ada, used: 3), to: [2, 3])])
        #expect(machine.told(status(ada, used: 3)) == [])
        #expect(machine.told(status(ada, used: 4)) == [.deliver(status(ada, used: 4), to: [1, 2, 3])])
    }

    @Test("Nobody is subscribed to whom nobody follows, and there is no connection without anybody")
    func leaving() {
        var machine = following()
        _ = machine.added(2, of: ben)
        #expect(machine.removed(1, of: ada) == [.unsubscribe(ada)])
        #expect(machine.told(status(ada, used: 7)) == [])
        #expect(machine.removed(2, of: ben) == [.disconnect])
        #expect(machine.lost() == [])
        #expect(machine.added(3, of: ada) == [.connect])
    }

    @Test("Who comes back while a user is left is subscribed again afterwards, not before")
    func comingBack() {
        var machine = following()
        _ = machine.added(2, of: ben)
        #expect(machine.removed(1, of: ada) == [.unsubscribe(ada)])
        #expect(machine.added(3, of: ada) == [])
        #expect(machine.unsubscribed(ada) == [.subscribe(ada)])
        #expect(machine.unsubscribed(ada) == [])
        // Who leaves before the confirmation is unsubscribed from once it comes.
        #expect(machine.removed(2, of: ben) == [])
        #expect(machine.confirmed(ben) == [.unsubscribe(ben)])
        #expect(machine.unsubscribed(ben) == [])
    }

    @Test("Who leaves while it connects needs no connection")
    func leftEarly() {
        var machine = SubscriptionStateMachine()
        _ = machine.added(1, of: ada)
        #expect(machine.removed(1, of: ada) == [])
        #expect(machine.connected() == [.disconnect])
    }

    @Test("A refusal ends what it is about")
    func refused() {
        var machine = following()
        _ = machine.added(2, of: ben)
        #expect(machine.refused(ada) == [.finish([1])])
        #expect(machine.refused() == [.finish([2])])
    }
}
