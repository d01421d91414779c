import TestSupport
import Testing
import Usage

private let noon = at("2026-11-10T12:00:00Z")
private let november = billingPeriod("2026-11")

@Suite("Reference model: holds")
struct ReferenceModelHoldTests {
    private let key = messageKey("first")
    private let other = messageKey("other")

    @Test("holds messages in addition to counted ones, and crosses tiers")
    func reserve() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: noon)
        _ = model.consume(ada, messages: 600, at: noon)
        let held = try model.reserve(ada, messages: 40, key: key, at: noon)
        #expect(held.status == .held)
        #expect(held.crossed == .gentle)
        #expect(held.snapshot.used == 600)
        #expect(held.snapshot.held == 40)
        #expect(held.snapshot.remaining == 160)
        #expect(model.consume(ada, messages: 161, at: noon).status == .blocked(.exceedsRemaining))
        #expect(try model.reserve(ada, messages: 161, key: other, at: noon).status == .blocked(.exceedsRemaining))
        #expect(model.consume(ada, messages: 160, at: noon).status == .allowed)
    }

    @Test("starts the trial of an unknown user with a hold")
    func trialStart() throws {
        var model = ReferenceModel()
        _ = try model.reserve(ada, key: key, at: noon)
        let later = noon.advanced(bySeconds: oneDay)
        #expect(model.usage(ada, at: later).snapshot.trialDay?.day == 2)
    }

    @Test("replays a repeated RESERVE with any ttl while the hold lasts and after it was committed")
    func replay() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: noon)
        let first = try model.reserve(ada, messages: 2, key: key, ttlSeconds: 10, at: noon)
        let again = try model.reserve(ada, messages: 2, key: key, ttlSeconds: 1_000, at: noon)
        #expect(again.isRepeated)
        #expect(again.status == .held)
        #expect(again.snapshot == first.snapshot)
        _ = try model.commit(ada, key: key, at: noon)
        let late = try model.reserve(ada, messages: 2, key: key, at: noon.advanced(bySeconds: 10))
        #expect(late.status == .held && late.isRepeated)
        #expect(late.snapshot.used == first.snapshot.used && late.snapshot.held == first.snapshot.held)
    }

    @Test("rejects a repeated RESERVE with another number of messages")
    func otherMessages() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: noon)
        _ = try model.reserve(ada, messages: 2, key: key, at: noon)
        #expect(throws: ReferenceModel.Failure.conflict) { try model.reserve(ada, messages: 1, key: key, at: noon) }
    }

    @Test("counts a hold once with COMMIT without crossing a tier, and replays it with its own numbers")
    func commit() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: noon)
        _ = try model.reserve(ada, messages: 640, key: key, at: noon)
        _ = model.consume(ada, messages: 10, at: noon)
        let committed = try model.commit(ada, key: key, at: noon)
        #expect(committed.status == .allowed)
        #expect(committed.crossed == nil)
        #expect(!committed.isRepeated)
        #expect(committed.snapshot.used == 650)
        #expect(committed.snapshot.held == 0)
        _ = model.consume(ada, messages: 10, at: noon)
        model.setLimit(ada, period: november, limit: 900)
        let again = try model.commit(ada, key: key, at: noon)
        #expect(again.status == .allowed)
        #expect(again.isRepeated)
        #expect(again.snapshot == committed.snapshot, "the limit of then, too")
        #expect(model.usage(ada, at: noon).snapshot.used == 660)
    }

    @Test("ends a hold at its expiry, after which COMMIT fails")
    func expiry() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: noon)
        _ = try model.reserve(ada, messages: 2, key: key, ttlSeconds: 60, at: noon)
        let end = noon.advanced(bySeconds: 60)
        #expect(model.usage(ada, at: end.justBefore).snapshot.held == 2)
        #expect(model.usage(ada, at: end).snapshot.held == 0)
        #expect(throws: ReferenceModel.Failure.expired) { try model.commit(ada, key: key, at: end) }
        #expect(throws: ReferenceModel.Failure.expired) { try model.reserve(ada, messages: 2, key: key, at: end) }
        let release = try model.release(ada, key: key, at: end)
        #expect(release.released == 0)
        #expect(!release.isRepeated)
        #expect(throws: ReferenceModel.Failure.released) { try model.reserve(ada, messages: 2, key: key, at: end) }
        #expect(model.usage(ada, at: end).snapshot.used == 0)
        #expect(model.usage(ada, at: end).snapshot.held == 0)
    }

    @Test("commits until just before the expiry")
    func lastInstant() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: noon)
        _ = try model.reserve(ada, key: key, ttlSeconds: 60, at: noon)
        #expect(try model.commit(ada, key: key, at: noon.advanced(bySeconds: 60).justBefore).snapshot.used == 1)
        #expect(model.usage(ada, at: noon.advanced(bySeconds: 61)).snapshot.used == 1)
    }

    @Test("releases a hold once, after which COMMIT fails")
    func release() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: noon)
        _ = try model.reserve(ada, messages: 3, key: key, at: noon)
        let release = try model.release(ada, key: key, at: noon)
        #expect(release.released == 3)
        #expect(release.snapshot.held == 0)
        #expect(throws: ReferenceModel.Failure.released) { try model.commit(ada, key: key, at: noon) }
        #expect(throws: ReferenceModel.Failure.released) { try model.reserve(ada, messages: 3, key: key, at: noon) }
        let again = try model.release(ada, key: key, at: noon)
        #expect(again.released == 0)
        #expect(again.isRepeated)
    }

    @Test("releases a committed hold from the count")
    func releaseCommitted() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: noon)
        _ = try model.reserve(ada, messages: 3, key: key, at: noon)
        _ = try model.commit(ada, key: key, at: noon)
        let release = try model.release(ada, key: key, at: noon)
        #expect(release.released == 3)
        #expect(release.snapshot.used == 0)
        #expect(throws: ReferenceModel.Failure.released) { try model.commit(ada, key: key, at: noon) }
    }

    @Test("counts a hold in its own period when it is committed in the next one")
    func commitInNextPeriod() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: noon)
        let eve = at("2026-11-30T23:59:00Z")
        let after = at("2026-12-01T00:00:30Z")
        _ = model.consume(ada, messages: 5, at: eve)
        _ = try model.reserve(ada, messages: 2, key: key, at: eve)
        _ = try model.reserve(ada, messages: 4, key: other, ttlSeconds: 100, at: eve)
        _ = try model.reserve(ada, messages: 8, key: messageKey("short"), ttlSeconds: 10, at: eve)
        #expect(model.consume(ada, at: after).snapshot.held == 0, "holds of November take nothing from December")
        let committed = try model.commit(ada, key: key, at: after)
        #expect(committed.snapshot.period == november)
        #expect(committed.snapshot.used == 7)
        #expect(committed.snapshot.held == 4)
        #expect(try model.commit(ada, key: key, at: after).snapshot == committed.snapshot)
        #expect(model.usage(ada, at: after).snapshot.used == 1)
        #expect(try model.release(ada, key: other, at: after).released == 4)
        #expect(model.usage(ada, period: november, at: after)?.snapshot.held == 0)
    }

    @Test("keeps holds after a reset, and releases one that is committed after it")
    func reset() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: noon)
        _ = model.consume(ada, messages: 9, at: noon)
        _ = try model.reserve(ada, messages: 2, key: key, at: noon)
        #expect(model.resetUsage(ada, at: noon)?.snapshot.held == 2)
        #expect(try model.commit(ada, key: key, at: noon).snapshot.used == 2)
        #expect(try model.release(ada, key: key, at: noon).released == 2)
    }

    @Test("lets a user whose access has ended commit and release, but not reserve")
    func lapsed() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: noon)
        _ = try model.reserve(ada, messages: 2, key: key, at: noon)
        _ = try model.reserve(ada, messages: 3, key: other, at: noon)
        _ = try model.setPlan(PlanChange(user: ada, plan: "paid", state: .expired), at: noon)
        let committed = try model.commit(ada, key: key, at: noon)
        #expect(committed.status == .allowed)
        #expect(committed.snapshot.remaining == 795)
        #expect(try model.release(ada, key: other, at: noon).released == 3)
        #expect(try model.reserve(ada, key: messageKey("third"), at: noon).status == .blocked(.expired))
        #expect(model.usage(ada, at: noon).snapshot.used == 2)
    }

    @Test("ends holds when their usage row is deleted")
    func deletedRow() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: noon)
        _ = try model.reserve(ada, messages: 2, key: key, at: noon)
        model.deleteRow(ada, period: november)
        _ = model.consume(ada, at: noon)
        #expect(model.usage(ada, at: noon).snapshot.held == 0)
        #expect(throws: ReferenceModel.Failure.expired) { try model.commit(ada, key: key, at: noon) }
        #expect(throws: ReferenceModel.Failure.expired) { try model.reserve(ada, messages: 2, key: key, at: noon) }
    }
}
