import Testing

@testable import HeadroomClient

@Suite("Following users, whatever becomes of the connection")
struct SubscriptionStateMachineTests {
    private let ann = UserID(high: 1, low: 1)
    private let bob = UserID(high: 2, low: 2)

    private func status(_ user: UserID, used: Int) -> UsageStatus {
        var status = UsageStatus.degraded(user)
        status.used = used
        return status
    }

    /// Ann is followed by 1, and her state with `used: 3` was told.
    private func following() -> SubscriptionStateMachine {
        var machine = SubscriptionStateMachine()
        #expect(machine.added(1, of: ann) == [.connect])
        #expect(machine.connected() == [.subscribe(ann)])
        #expect(machine.confirmed(ann) == [.read(ann, reading: 1)])
        #expect(machine.hasRead(status(ann, used: 3), reading: 1) == [.deliver(status(ann, used: 3), to: [1])])
        return machine
    }

    @Test("First the state is told, then each change, and nothing twice")
    func changes() {
        var machine = following()
        #expect(machine.told(status(ann, used: 4)) == [.deliver(status(ann, used: 4), to: [1])])
        #expect(machine.told(status(ann, used: 4)) == [])
        #expect(machine.told(status(bob, used: 1)) == [])
    }

    @Test("A change that comes while the state is read is newer than what is read")
    func overtaken() {
        var machine = SubscriptionStateMachine()
        _ = machine.added(1, of: ann)
        _ = machine.connected()
        #expect(machine.confirmed(ann) == [.read(ann, reading: 1)])
        #expect(machine.told(status(ann, used: 5)) == [.deliver(status(ann, used: 5), to: [1])])
        #expect(machine.hasRead(status(ann, used: 4), reading: 1) == [])
    }

    @Test("After a loss it subscribes again, and tells the state where it differs")
    func reconnected() {
        var machine = following()
        #expect(machine.lost() == [.connect])
        #expect(machine.connected() == [.subscribe(ann)])
        #expect(machine.confirmed(ann) == [.read(ann, reading: 2)])
        #expect(machine.hasRead(status(ann, used: 3), reading: 2) == [])
        _ = machine.lost()
        _ = machine.connected()
        #expect(machine.confirmed(ann) == [.read(ann, reading: 3)])
        #expect(machine.hasRead(status(ann, used: 9), reading: 3) == [.deliver(status(ann, used: 9), to: [1])])
    }

    @Test("What was being read when the connection was lost is not told")
    func stale() {
        var machine = following()
        _ = machine.lost()
        #expect(machine.hasRead(status(ann, used: 8), reading: 1) == [])
    }

    @Test("A reading that failed is done again")
    func unread() {
        var machine = SubscriptionStateMachine()
        _ = machine.added(1, of: ann)
        _ = machine.connected()
        _ = machine.confirmed(ann)
        #expect(machine.couldNotRead(ann, reading: 1) == [.read(ann, reading: 2)])
        #expect(machine.couldNotRead(ann, reading: 1) == [])
    }

    @Test("Who follows later hears the state at once, and all hear what changes")
    func second() {
        var machine = following()
        #expect(machine.added(2, of: ann) == [.deliver(status(ann, used: 3), to: [2])])
        #expect(machine.told(status(ann, used: 4)) == [.deliver(status(ann, used: 4), to: [1, 2])])
        #expect(machine.added(3, of: bob) == [.subscribe(bob)])
    }

    @Test("Who follows while it connects again hears the state, also where it is what others heard before")
    func joiningALoss() {
        var machine = following()
        _ = machine.lost()
        #expect(machine.added(2, of: ann) == [])
        _ = machine.connected()
        #expect(machine.added(3, of: ann) == [])
        #expect(machine.confirmed(ann) == [.read(ann, reading: 2)])
        #expect(machine.hasRead(status(ann, used: 3), reading: 2) == [.deliver(status(ann, used: 3), to: [2, 3])])
        #expect(machine.told(status(ann, used: 3)) == [])
        #expect(machine.told(status(ann, used: 4)) == [.deliver(status(ann, used: 4), to: [1, 2, 3])])
    }

    @Test("Nobody is subscribed to whom nobody follows, and there is no connection without anybody")
    func leaving() {
        var machine = following()
        _ = machine.added(2, of: bob)
        #expect(machine.removed(1, of: ann) == [.unsubscribe(ann)])
        #expect(machine.told(status(ann, used: 7)) == [])
        #expect(machine.removed(2, of: bob) == [.disconnect])
        #expect(machine.lost() == [])
        #expect(machine.added(3, of: ann) == [.connect])
    }

    @Test("Who comes back while a user is left is subscribed again afterwards, not before")
    func comingBack() {
        var machine = following()
        _ = machine.added(2, of: bob)
        #expect(machine.removed(1, of: ann) == [.unsubscribe(ann)])
        #expect(machine.added(3, of: ann) == [])
        #expect(machine.unsubscribed(ann) == [.subscribe(ann)])
        #expect(machine.unsubscribed(ann) == [])
        // Who leaves before the confirmation is unsubscribed from once it comes.
        #expect(machine.removed(2, of: bob) == [])
        #expect(machine.confirmed(bob) == [.unsubscribe(bob)])
        #expect(machine.unsubscribed(bob) == [])
    }

    @Test("Who leaves while it connects needs no connection")
    func leftEarly() {
        var machine = SubscriptionStateMachine()
        _ = machine.added(1, of: ann)
        #expect(machine.removed(1, of: ann) == [])
        #expect(machine.connected() == [.disconnect])
    }

    @Test("A refusal ends what it is about")
    func refused() {
        var machine = following()
        _ = machine.added(2, of: bob)
        #expect(machine.refused(ann) == [.finish([1])])
        #expect(machine.refused() == [.finish([2])])
    }
}
