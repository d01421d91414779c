import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("Connections that subscribe to changes of users")
struct ChangeSubscriberListTests {
    private let start = ContinuousClock.now
    private let now = at("2026-11-21T09:30:00Z")

    private func request(
        _ slot: UInt64,
        _ users: [UserID],
        connection: Int = 1,
        afterSeconds: Int = 5
    ) -> SubscribeRequest {
        SubscribeRequest(
            users: users,
            returnAddress: ReturnAddress(mailboxIndex: 0, connection: connection, slot: slot),
            deadline: start + .seconds(afterSeconds)
        )
    }

    private func subscriber(_ connection: Int) -> ChangeSubscriber {
        ChangeSubscriber(mailboxIndex: 0, connection: connection)
    }

    private func observation(
        used: Int,
        observed: Instant? = nil,
        changesAt: Instant? = nil
    ) -> ChangeSubscriberList.Observation {
        ChangeSubscriberList.Observation(
            snapshot: .monthly(used: used, observedAt: observed ?? now),
            fingerprint: "\(used)",
            changesAt: changesAt
        )
    }

    private func slots(_ completions: [Completion]) -> [UInt64] { completions.map(\.returnAddress.slot) }

    /// Reads all stale users.
    private func read(_ list: inout ChangeSubscriberList, used: Int) -> [Publication] {
        list.takeStale(atMost: 1_000).flatMap { list.update($0.user, observation(used: used)) }
    }

    @Test("a request completes once all its users have been read; the first read publishes nothing")
    func confirmation() {
        var list = ChangeSubscriberList(usersMaximum: 100)
        #expect(list.subscribe(request(0, [user(1), user(2)])) == nil)
        #expect(list.takeCompletions().isEmpty)
        #expect(list.takeStale(atMost: 1).map(\.user) == [user(1)])
        #expect(list.update(user(1), observation(used: 1)).isEmpty)
        #expect(list.takeCompletions().isEmpty, "one of two")
        #expect(read(&list, used: 1).isEmpty)
        let confirmed = list.takeCompletions()
        #expect(slots(confirmed) == [0] && confirmed.first?.outcome == .subscribed)
        let again = list.subscribe(request(1, [user(2)], connection: 2))
        #expect(again?.outcome == .subscribed, "the user was read for another connection")
        #expect(!list.hasStale)
    }

    @Test("each change that subscribers can see is published once to each of them")
    func publishing() {
        var list = ChangeSubscriberList(usersMaximum: 100)
        _ = list.subscribe(request(0, [user(1)], connection: 1))
        _ = list.subscribe(request(1, [user(1), user(2)], connection: 2))
        _ = read(&list, used: 1)
        list.markStale([user(1)])
        #expect(list.takeStale(atMost: 10).map(\.period) == ["2026-11"], "the period of the last observation")
        let publications = list.update(user(1), observation(used: 2))
        #expect(Set(publications.map(\.subscriber)) == [subscriber(1), subscriber(2)])
        #expect(publications.allSatisfy { $0.answer.snapshot.used == 2 && $0.answer.isDetailed })
        #expect(
            list.update(user(1), observation(used: 2, observed: at("2026-11-22"))).isEmpty,
            "a row that was written or read again without a visible change"
        )
    }

    @Test("a user is removed with its last subscriber")
    func leaving() {
        var list = ChangeSubscriberList(usersMaximum: 100)
        _ = list.subscribe(request(0, [user(1), user(2)], connection: 1))
        _ = list.subscribe(request(1, [user(1)], connection: 2))
        _ = read(&list, used: 1)
        list.unsubscribe(user(1), subscriber(1))
        #expect(list.update(user(1), observation(used: 2)).map(\.subscriber) == [subscriber(2)])
        list.disconnect(subscriber(2))
        #expect(list.count == 1)
        list.disconnect(subscriber(1))
        #expect(list.count == 0)
        #expect(list.update(user(1), observation(used: 3)).isEmpty)
        _ = list.takeCompletions()
        #expect(list.isEmpty)
    }

    @Test("a request that expires removes its users, except those that another request waits for")
    func expiry() {
        var list = ChangeSubscriberList(usersMaximum: 100)
        _ = list.subscribe(request(0, [user(1)], afterSeconds: 1))
        _ = list.subscribe(request(1, [user(1), user(2)], afterSeconds: 2))
        #expect(list.nextDeadline == start + .seconds(1))
        let expired = list.expire(at: start + .seconds(1))
        #expect(slots(expired) == [0] && expired.first?.outcome == .failure(.subscribeFailed))
        #expect(list.count == 2)
        #expect(slots(list.expire(at: start + .seconds(2))) == [1])
        #expect(list.isEmpty)
    }

    @Test("existing subscriptions survive when a later request expires")
    func expiryOfOneOfTwo() {
        var list = ChangeSubscriberList(usersMaximum: 100)
        _ = list.subscribe(request(0, [user(1)]))
        _ = read(&list, used: 1)
        _ = list.takeCompletions()
        _ = list.subscribe(request(1, [user(1), user(2)]))
        _ = list.expire(at: start + .seconds(10))
        #expect(list.count == 1)
        #expect(list.update(user(1), observation(used: 2)).map(\.subscriber) == [subscriber(1)])
    }

    @Test("a request does not wait for users that were unsubscribed meanwhile")
    func unsubscribingEarly() {
        var list = ChangeSubscriberList(usersMaximum: 100)
        _ = list.subscribe(request(0, [user(1)]))
        list.unsubscribe(user(1), subscriber(1))
        #expect(slots(list.takeCompletions()) == [0])
        #expect(list.takeStale(atMost: 10).isEmpty && list.isEmpty)
    }

    @Test("the number of users is limited")
    func limit() {
        var list = ChangeSubscriberList(usersMaximum: 2)
        _ = list.subscribe(request(0, [user(1), user(2)]))
        let failed = list.subscribe(request(1, [user(2), user(3)]))
        #expect(failed?.outcome == .failure(.tooManySubscribedUsers))
        #expect(list.count == 2)
        #expect(list.subscribe(request(2, [user(2)])) == nil)
    }

    @Test("users are read again when time changes their snapshot, or when reading failed")
    func time() {
        var list = ChangeSubscriberList(usersMaximum: 100)
        _ = list.subscribe(request(0, [user(1), user(2)]))
        let taken = list.takeStale(atMost: 10)
        #expect(!list.hasStale)
        list.putBack(taken)
        #expect(list.takeStale(atMost: 10).map(\.user) == taken.map(\.user))
        _ = list.update(user(1), observation(used: 1, changesAt: at("2026-12-01")))
        _ = list.update(user(2), observation(used: 1))
        #expect(list.due(at: at("2026-11-30T23:59:59Z")).isEmpty)
        #expect(list.due(at: at("2026-12-01")) == [user(1)])
    }
}
