import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("What a lane remembers of users")
struct KnownUsersTests {
    private let november = billingPeriod("2026-11")

    private func snapshot(
        _ period: String,
        used: Int = 0,
        limit: Int? = 10,
        denialReason: DenialReason? = nil,
        at instant: String = "2026-11-10"
    ) -> UsageSnapshot {
        UsageSnapshot(
            plan: .paid,
            state: .active,
            period: billingPeriod(period),
            used: used,
            limit: limit,
            denialReason: denialReason,
            startedAt: at("2026-11-01"),
            observedAt: at(instant)
        )
    }

    @Test("users are expected in the calendar month until seen elsewhere")
    func calendarMonth() {
        var users = UserCache(calendarMonth: november)
        #expect(users.period(of: user(1)) == november)
        users.learn(user(1), snapshot("trial"))
        users.learn(user(2), snapshot("2026-10"))
        #expect(users.period(of: user(1)).label == "trial")
        #expect(users.period(of: user(2)).label == "2026-10")
        users.learn(user(1), snapshot("2026-11"))
        #expect(users.period(of: user(1)) == november)
    }

    @Test("the database's clock moves the calendar month, and who was not met is expected there")
    func newMonth() {
        var users = UserCache(calendarMonth: november)
        users.learn(user(1), snapshot("2026-10"))
        users.observe(at("2026-12-01"))
        #expect(users.calendarMonth.label == "2026-12")
        #expect(users.period(of: user(2)).label == "2026-12")
        #expect(users.period(of: user(1)).label == "2026-10")
        users.observe(at("2027-12-01"))
        #expect(users.calendarMonth.label == "2027-12")
    }

    @Test("terms that a row had under a version are known by it until other terms are seen")
    func versions() {
        var users = UserCache(calendarMonth: november)
        let entitlement = snapshot("2026-11").entitlement
        users.learn(user(1), entitlement, version: 7)
        #expect(users.known(user(1))?.version == 7)
        // The same entitlement, read by a statement that tells no version.
        users.learn(user(1), snapshot("2026-11", used: 3))
        #expect(users.known(user(1))?.version == 7)
        #expect(users.known(user(1))?.entitlement === entitlement)
        users.learn(user(1), snapshot("2026-11", limit: 20))
        #expect(users.known(user(1))?.version == nil)
        #expect(users.known(user(1))?.entitlement.limit == 20)
    }

    @Test("a user with nothing left is exhausted until something is left, or the month is new")
    func exhausted() {
        var users = UserCache(calendarMonth: november)
        #expect(!users.isExhausted(user(1)))
        users.learn(user(1), snapshot("2026-11", used: 10))
        users.learn(user(2), snapshot("trial", used: 9))
        users.learn(user(3), snapshot("2026-11", denialReason: .revoked))
        #expect(users.isExhausted(user(1)))
        #expect(!users.isExhausted(user(2)))
        #expect(users.isExhausted(user(3)))
        users.learn(user(1), snapshot("2026-11", used: 10, limit: nil))
        #expect(!users.isExhausted(user(1)))
        users.observe(at("2026-12-01"))
        #expect(!users.isExhausted(user(3)))
    }

    @Test("at least half of the capacity is remembered, whoever was met last, and never more than all of it")
    func capacity() {
        var users = UserCache(calendarMonth: november, capacity: 8)
        for number: UInt64 in 1...100 { users.learn(user(number), snapshot("trial")) }
        let remembered = (1...100 as ClosedRange<UInt64>).filter { users.period(of: user($0)).label == "trial" }
        #expect(remembered.count <= 8)
        #expect(remembered.suffix(4) == [97, 98, 99, 100])
    }

    @Test("who is met again while others come and go is not forgotten")
    func metAgain() {
        var users = UserCache(calendarMonth: november, capacity: 8)
        users.learn(user(1), snapshot("trial"))
        for number: UInt64 in 2...100 {
            users.learn(user(number), snapshot("trial"))
            #expect(users.known(user(1)) != nil, "after \(number)")
        }
    }

    @Test("each user's period is named by its place among the few there are")
    func places() {
        let entitlement = ["trial", "trial", "2026-10", "trial"].map { snapshot($0).entitlement }
        var known: [UserCache.Known?] = entitlement.map { UserCache.Known(entitlement: $0, version: nil) }
        known.insert(nil, at: 1)
        let places = PeriodPlaces(known, november)
        #expect(places.labels == ["trial", "2026-11", "2026-10"])
        #expect(places.places == [1, 2, 1, 3, 1])
        #expect(PeriodPlaces([], november).labels.isEmpty)
    }
}
