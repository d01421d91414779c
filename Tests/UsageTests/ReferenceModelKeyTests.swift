import TestSupport
import Testing
import Usage

private let noon = at("2026-11-10T12:00:00Z")
private let december = at("2026-12-10T12:00:00Z")
private let november = billingPeriod("2026-11")

@Suite("Reference model: keys")
struct ReferenceModelKeyTests {
    private let key = messageKey("first")

    @Test("counts a key once, and replays the first outcome without a crossed tier")
    func replay() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: noon)
        let first = try model.consume(ada, messages: 640, key: key, at: noon)
        #expect(first.crossed == .gentle)
        #expect(!first.isRepeated)
        _ = model.consume(ada, messages: 60, at: noon)
        let again = try model.consume(ada, messages: 640, key: key, at: noon)
        #expect(again.status == .allowed)
        #expect(again.isRepeated)
        #expect(again.crossed == nil)
        #expect(again.snapshot == first.snapshot)
        #expect(model.usage(ada, at: noon).snapshot.used == 700)
    }

    @Test("rejects a key with another number of messages")
    func otherMessages() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: noon)
        _ = try model.consume(ada, messages: 2, key: key, at: noon)
        #expect(throws: ReferenceModel.Failure.conflict) { try model.consume(ada, messages: 3, key: key, at: noon) }
        #expect(model.usage(ada, at: noon).snapshot.used == 2)
    }

    @Test("rejects a key that was used with another verb")
    func otherVerb() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: noon)
        let held = messageKey("held")
        _ = try model.consume(ada, key: key, at: noon)
        _ = try model.reserve(ada, key: held, at: noon)
        #expect(throws: ReferenceModel.Failure.conflict) { try model.reserve(ada, key: key, at: noon) }
        #expect(throws: ReferenceModel.Failure.conflict) { try model.consume(ada, key: held, at: noon) }
        #expect(throws: ReferenceModel.Failure.conflict) { try model.commit(ada, key: key, at: noon) }
        #expect(model.usage(ada, at: noon).snapshot.used == 1)
        #expect(model.usage(ada, at: noon).snapshot.held == 1)
    }

    @Test("has separate keys for each user")
    func twoUsers() throws {
        var model = ReferenceModel()
        _ = try model.consume(ada, key: key, at: noon)
        let other = try model.consume(ben, messages: 2, key: key, at: noon)
        #expect(!other.isRepeated)
        #expect(other.snapshot.used == 2)
    }

    @Test("does not store a refusal")
    func refusal() throws {
        var model = try ReferenceModel.subscribed(to: "free", at: noon)
        #expect(try model.consume(ada, key: key, at: noon).status == .blocked(.noSubscription))
        #expect(try model.reserve(ada, key: key, at: noon).status == .blocked(.noSubscription))
        _ = try model.setPlan(PlanChange(user: ada, plan: "paid"), at: noon)
        let counted = try model.consume(ada, key: key, at: noon)
        #expect(counted.status == .allowed)
        #expect(!counted.isRepeated)
    }

    @Test("replays a message of the previous period")
    func nextPeriod() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: noon)
        _ = try model.consume(ada, messages: 7, key: key, at: noon)
        _ = model.consume(ada, messages: 3, at: december)
        let again = try model.consume(ada, messages: 7, key: key, at: december)
        #expect(again.isRepeated)
        #expect(again.snapshot.period == november)
        #expect(again.snapshot.used == 7)
        #expect(model.usage(ada, at: december).snapshot.used == 3)
    }

    @Test("replays the first period after its row was deleted")
    func deletedRowReplay() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: noon)
        let first = try model.consume(ada, messages: 7, key: key, at: noon)
        model.deleteRow(ada, period: november)
        let again = try model.consume(ada, messages: 7, key: key, at: december)
        #expect(again.snapshot.period == november)
        #expect(again.snapshot.used == first.snapshot.used)
        #expect(model.usage(ada, at: december).snapshot.used == 0)
    }

    @Test("replays an allowed message after access has ended")
    func lapsedReplay() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: noon)
        _ = try model.consume(ada, key: key, at: noon)
        _ = try model.setPlan(PlanChange(user: ada, plan: "paid", state: .expired), at: noon)
        let again = try model.consume(ada, key: key, at: noon)
        #expect(again.status == .allowed)
        #expect(again.snapshot.remaining == 799)
    }

    @Test("releases a counted message once, and accepts its key for no other attempt")
    func release() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: noon)
        _ = try model.consume(ada, messages: 5, key: key, at: noon)
        _ = model.consume(ada, messages: 2, at: noon)
        let release = try model.release(ada, key: key, at: noon)
        #expect(release.status == .ok)
        #expect(release.released == 5)
        #expect(!release.isRepeated)
        #expect(release.snapshot.used == 2)
        let again = try model.release(ada, key: key, at: noon)
        #expect(again.released == 0)
        #expect(again.isRepeated)
        for later in [noon, december] {
            #expect(throws: ReferenceModel.Failure.released) {
                try model.consume(ada, messages: 5, key: key, at: later)
            }
            #expect(throws: ReferenceModel.Failure.released) { try model.reserve(ada, key: key, at: later) }
        }
        #expect(model.usage(ada, at: noon).snapshot.used == 2)
        #expect(model.usage(ada, at: noon).snapshot.held == 0)
    }

    @Test("releases in the period in which the message was counted")
    func releaseInNextPeriod() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: noon)
        _ = try model.consume(ada, messages: 5, key: key, at: noon)
        _ = model.consume(ada, messages: 3, at: december)
        #expect(try model.release(ada, key: key, at: december).released == 5)
        #expect(model.usage(ada, at: december).snapshot.used == 3)
        #expect(model.usage(ada, period: november, at: december)?.snapshot.used == 0)
    }

    @Test("releases nothing after a reset by RESETUSAGE or by a plain UPDATE", arguments: [true, false])
    func releaseAfterReset(isPlain: Bool) throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: noon)
        _ = try model.consume(ada, messages: 5, key: key, at: noon)
        if isPlain {
            model.setCount(ada, period: november, count: 4)
        } else {
            _ = model.resetUsage(ada, at: noon)
            _ = model.consume(ada, messages: 4, at: noon)
        }
        let release = try model.release(ada, key: key, at: noon)
        #expect(release.released == 0)
        #expect(!release.isRepeated)
        #expect(release.snapshot.used == 4)
    }

    @Test("releases after a plain UPDATE that raised the count")
    func releaseAfterRaise() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: noon)
        _ = try model.consume(ada, messages: 5, key: key, at: noon)
        model.setCount(ada, period: november, count: 100)
        #expect(try model.release(ada, key: key, at: noon).released == 5)
        #expect(model.usage(ada, at: noon).snapshot.used == 95)
    }

    @Test("releases nothing after the row was deleted, also if there is a new one")
    func releaseAfterDelete() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: noon)
        let other = messageKey("other")
        _ = try model.consume(ada, messages: 5, key: key, at: noon)
        _ = try model.consume(ada, messages: 5, key: other, at: noon)
        model.deleteRow(ada, period: november)
        #expect(try model.release(ada, key: key, at: noon).released == 0)
        _ = model.consume(ada, messages: 9, at: noon)
        #expect(try model.release(ada, key: other, at: noon).released == 0)
        #expect(model.usage(ada, at: noon).snapshot.used == 9)
    }

    @Test("has no key that was never used or only refused")
    func unknownKey() throws {
        var model = try ReferenceModel.subscribed(to: "free", at: noon)
        _ = try model.consume(ada, key: key, at: noon)
        #expect(throws: ReferenceModel.Failure.unknownKey) { try model.commit(ada, key: key, at: noon) }
        #expect(throws: ReferenceModel.Failure.unknownKey) { try model.release(ada, key: key, at: noon) }
    }
}
