import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("The users that connections watch")
struct WatchListTests {
    private let start = ContinuousClock.now
    private let now = at("2026-11-21T09:30:00Z")

    private func request(_ slot: UInt64, _ users: [UserID], connection: Int = 1, afterSeconds: Int = 5) -> WatchRequest
    {
        WatchRequest(
            users: users,
            returnAddress: ReturnAddress(mailbox: 0, connection: connection, slot: slot),
            deadline: start + .seconds(afterSeconds)
        )
    }

    private func subscriber(_ connection: Int) -> Subscriber { Subscriber(mailbox: 0, connection: connection) }

    private func reading(used: Int, observed: Instant? = nil, changesAt: Instant? = nil) -> WatchList.Reading {
        WatchList.Reading(
            snapshot: UsageSnapshot(
                plan: .paid,
                state: .active,
                period: billingPeriod("2026-11"),
                used: used,
                limit: 800,
                startedAt: at("2026-11-01"),
                observedAt: observed ?? now
            ),
            fingerprint: "\(used)",
            changesAt: changesAt
        )
    }

    private func slots(_ completions: [Completion]) -> [UInt64] { completions.map(\.returnAddress.slot) }

    /// Reads everybody who is to be read.
    private func read(_ list: inout WatchList, used: Int) -> [Publication] {
        list.takeUnread(atMost: 1_000).flatMap { list.learn($0.user, reading(used: used)) }
    }

    @Test("are confirmed when all of a request have been read, and told nothing for that")
    func confirmation() {
        var list = WatchList(usersMaximum: 100)
        #expect(list.watch(request(0, [user(1), user(2)])) == nil)
        #expect(list.takeConfirmed().isEmpty)
        #expect(list.takeUnread(atMost: 1).map(\.user) == [user(1)])
        #expect(list.learn(user(1), reading(used: 1)).isEmpty)
        #expect(list.takeConfirmed().isEmpty, "one of two")
        #expect(read(&list, used: 1).isEmpty)
        let confirmed = list.takeConfirmed()
        #expect(slots(confirmed) == [0] && confirmed.first?.outcome == .watching)
        let again = list.watch(request(1, [user(2)], connection: 2))
        #expect(again?.outcome == .watching, "read already, for somebody else")
        #expect(!list.hasUnread)
    }

    @Test("are told to everybody who watches, once for each change of what is said")
    func publishing() {
        var list = WatchList(usersMaximum: 100)
        _ = list.watch(request(0, [user(1)], connection: 1))
        _ = list.watch(request(1, [user(1), user(2)], connection: 2))
        _ = read(&list, used: 1)
        list.markUnread([user(1)])
        #expect(list.takeUnread(atMost: 10).map(\.period) == ["2026-11"], "where the row was found")
        let told = list.learn(user(1), reading(used: 2))
        #expect(Set(told.map(\.subscriber)) == [subscriber(1), subscriber(2)])
        #expect(told.allSatisfy { $0.answer.snapshot.used == 2 && $0.answer.isDetailed })
        #expect(
            list.learn(user(1), reading(used: 2, observed: at("2026-11-22"))).isEmpty,
            "written again, or observed later, but it says the same"
        )
    }

    @Test("are forgotten with their last watcher")
    func leaving() {
        var list = WatchList(usersMaximum: 100)
        _ = list.watch(request(0, [user(1), user(2)], connection: 1))
        _ = list.watch(request(1, [user(1)], connection: 2))
        _ = read(&list, used: 1)
        list.unwatch(user(1), subscriber(1))
        #expect(list.learn(user(1), reading(used: 2)).map(\.subscriber) == [subscriber(2)])
        list.leave(subscriber(2))
        #expect(list.count == 1)
        list.leave(subscriber(1))
        #expect(list.count == 0)
        #expect(list.learn(user(1), reading(used: 3)).isEmpty)
        _ = list.takeConfirmed()
        #expect(list.isEmpty)
    }

    @Test("are given up for a request whose time passes, but not for another one that waits for them too")
    func expiry() {
        var list = WatchList(usersMaximum: 100)
        _ = list.watch(request(0, [user(1)], afterSeconds: 1))
        _ = list.watch(request(1, [user(1), user(2)], afterSeconds: 2))
        #expect(list.nextDeadline == start + .seconds(1))
        let expired = list.expire(at: start + .seconds(1))
        #expect(slots(expired) == [0] && expired.first?.outcome == .failure(.cannotWatch))
        #expect(list.count == 2)
        #expect(slots(list.expire(at: start + .seconds(2))) == [1])
        #expect(list.isEmpty)
    }

    @Test("stay watched for those who were confirmed, when a later request for them fails")
    func expiryOfOneOfTwo() {
        var list = WatchList(usersMaximum: 100)
        _ = list.watch(request(0, [user(1)]))
        _ = read(&list, used: 1)
        _ = list.takeConfirmed()
        _ = list.watch(request(1, [user(1), user(2)]))
        _ = list.expire(at: start + .seconds(10))
        #expect(list.count == 1)
        #expect(list.learn(user(1), reading(used: 2)).map(\.subscriber) == [subscriber(1)])
    }

    @Test("need no reading for a request that gave them up meanwhile")
    func unwatchingEarly() {
        var list = WatchList(usersMaximum: 100)
        _ = list.watch(request(0, [user(1)]))
        list.unwatch(user(1), subscriber(1))
        #expect(slots(list.takeConfirmed()) == [0])
        #expect(list.takeUnread(atMost: 10).isEmpty && list.isEmpty)
    }

    @Test("are limited in number")
    func limit() {
        var list = WatchList(usersMaximum: 2)
        _ = list.watch(request(0, [user(1), user(2)]))
        let refused = list.watch(request(1, [user(2), user(3)]))
        #expect(refused?.outcome == .failure(.tooManyWatched))
        #expect(list.count == 2)
        #expect(list.watch(request(2, [user(2)])) == nil)
    }

    @Test("are read again when time changes their standing, and when they could not be read")
    func time() {
        var list = WatchList(usersMaximum: 100)
        _ = list.watch(request(0, [user(1), user(2)]))
        let taken = list.takeUnread(atMost: 10)
        #expect(!list.hasUnread)
        list.putBack(taken)
        #expect(list.takeUnread(atMost: 10).map(\.user) == taken.map(\.user))
        _ = list.learn(user(1), reading(used: 1, changesAt: at("2026-12-01")))
        _ = list.learn(user(2), reading(used: 1))
        #expect(list.due(at: at("2026-11-30T23:59:59Z")).isEmpty)
        #expect(list.due(at: at("2026-12-01")) == [user(1)])
    }
}
