import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("A lane's cache of users")
struct UserCacheTests {
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

    @Test("users are expected in the calendar month until seen in another period")
    func calendarMonth() {
        var users = UserCache(today: at("2026-11-10").date)
        #expect(users.period(of: user(1)) == november)
        users.learn(user(1), snapshot("trial"))
        users.learn(user(2), snapshot("2026-10"))
        #expect(users.period(of: user(1)).label == "trial")
        #expect(users.period(of: user(2)).label == "2026-10")
        users.learn(user(1), snapshot("2026-11"))
        #expect(users.period(of: user(1)) == november)
    }

    @Test("the database's clock moves the calendar month, in which users that are not cached are expected")
    func newMonth() {
        var users = UserCache(today: at("2026-11-10").date)
        users.learn(user(1), snapshot("2026-10"))
        users.observe(at("2026-12-01"))
        #expect(users.today == at("2026-12-01").date)
        #expect(users.period(of: user(2)).label == "2026-12")
        #expect(users.period(of: user(1)).label == "2026-10")
        users.observe(at("2027-12-01"))
        #expect(users.period(of: user(2)).label == "2027-12")
    }

    @Test("an entitlement keeps its version until another entitlement is seen")
    func versions() {
        var users = UserCache(today: at("2026-11-10").date)
        let entitlement = snapshot("2026-11").entitlement
        users.learn(user(1), entitlement, version: 7)
        #expect(users.entry(of: user(1))?.version == 7)
        // The same entitlement, from a statement that returns no version.
        users.learn(user(1), snapshot("2026-11", used: 3))
        #expect(users.entry(of: user(1))?.version == 7)
        #expect(users.entry(of: user(1))?.entitlement === entitlement)
        // The answer to a request that named a model: the next one may name none.
        var ofModel = snapshot("2026-11", used: 4)
        ofModel.parts = [PartUsage(.model("large"), limit: PlanLimit(.model, "large", allowance: 3))]
        users.learn(user(1), ofModel)
        #expect(users.entry(of: user(1))?.entitlement === entitlement)
        users.learn(user(1), snapshot("2026-11", limit: 20))
        #expect(users.entry(of: user(1))?.version == nil)
        #expect(users.entry(of: user(1))?.entitlement.limit == 20)
    }

    @Test("an entry is outdated once its period has ended, or the plans have another revision, until it is seen again")
    func outdated() {
        var users = UserCache(today: at("2026-11-10").date)
        let trial = snapshot("trial")
        let monthly = Entitlement(
            plan: .paid,
            state: .active,
            period: november,
            limit: 10,
            startedAt: at("2026-11-01"),
            resetsAt: at("2026-12-01")
        )
        users.learn(user(1), trial)
        users.learn(user(2), monthly, version: 7)
        func areOutdated() -> [Bool] {
            [user(1), user(2)].map { user in
                let entry = users.entry(of: user)
                return entry.map { users.isOutdated($0) } ?? false
            }
        }
        #expect(areOutdated() == [false, false])
        users.observe(at("2026-12-01"))
        #expect(areOutdated() == [false, true])
        users.observe(at("2026-11-30"))
        users.planRevision += 1
        #expect(areOutdated() == [true, true])
        users.learn(user(1), trial)
        users.learn(user(2), monthly, version: 8)
        #expect(areOutdated() == [false, false])
    }

    @Test("a user with nothing left is exhausted until something is left, or the day is new")
    func exhausted() {
        var users = UserCache(today: at("2026-11-10").date)
        #expect(!users.isExhausted(user(1)))
        users.learn(user(1), snapshot("2026-11", used: 10))
        users.learn(user(2), snapshot("trial", used: 9))
        users.learn(user(3), snapshot("2026-11", denialReason: .revoked))
        #expect(users.isExhausted(user(1)))
        #expect(!users.isExhausted(user(2)))
        #expect(users.isExhausted(user(3)))
        users.learn(user(1), snapshot("2026-11", used: 10, limit: nil))
        #expect(!users.isExhausted(user(1)))
        users.observe(at("2026-11-10T23:59:59Z"))
        #expect(users.isExhausted(user(3)))
        users.observe(at("2026-11-11"))
        #expect(!users.isExhausted(user(3)))
    }

    @Test("the latest users stay, at least half of the capacity and at most all of it")
    func capacity() {
        var users = UserCache(today: at("2026-11-10").date, capacity: 8)
        for number: UInt64 in 1...100 { users.learn(user(number), snapshot("trial")) }
        let cached = (1...100 as ClosedRange<UInt64>).filter { users.period(of: user($0)).label == "trial" }
        #expect(cached.count <= 8)
        #expect(cached.suffix(4) == [97, 98, 99, 100])
    }

    @Test("a user that is looked up again and again is not evicted")
    func lookedUpAgain() {
        var users = UserCache(today: at("2026-11-10").date, capacity: 8)
        users.learn(user(1), snapshot("trial"))
        for number: UInt64 in 2...100 {
            users.learn(user(number), snapshot("trial"))
            #expect(users.entry(of: user(1)) != nil, "after \(number)")
        }
    }

    @Test("each user's period is named by its ordinal among the few there are; 0 for a user that is not cached")
    func periodOrdinals() throws {
        let entitlement = ["trial", "trial", "2026-10", "trial"].map { snapshot($0).entitlement }
        var cached: [UserCache.Entry?] = entitlement.map { UserCache.Entry(entitlement: $0, version: nil) }
        cached.insert(nil, at: 1)
        let periods = PeriodOrdinals(cached, usual: [november, BillingPeriod(planNamed: "trial")])
        #expect(periods.labels == ["trial", "2026-10", "2026-11"])
        #expect(periods.ordinals == [1, 0, 1, 2, 1])
        let last = try periods.period(3)
        #expect(last == november)
        for unknown in [0, 4] {
            let period = try? periods.period(unknown)
            #expect(period == nil)
        }
        #expect(PeriodOrdinals([cached[0]], usual: [november]).labels == ["trial"])
    }
}
