import TestSupport
import Testing
import Usage

@Suite("A plan whose limit is not enforced")
struct ShadowPlanTests {
    private let plan = Plan(name: "new", label: "New", cycle: .monthly, allowance: 10, isEnforced: false)

    private func snapshot(_ plan: Plan, used: Int, held: Int = 0) -> UsageSnapshot {
        UsageSnapshot(
            plan: plan,
            state: .active,
            period: billingPeriod("2026-11"),
            used: used,
            held: held,
            limit: plan.allowance,
            startedAt: at("2026-11-01"),
            resetsAt: at("2026-12-01"),
            observedAt: at("2026-11-10")
        )
    }

    @Test("counts, holds and allows beyond the limit, and says so")
    func beyond() {
        var snapshot = snapshot(plan, used: 9)
        let fits = snapshot.consume(1, of: user(1))
        #expect(fits.status == .allowed && !fits.isShadow)
        #expect(snapshot.check(1, of: user(1)).isShadow)
        let beyond = snapshot.consume(3, of: user(1))
        #expect(beyond.status == .allowed && beyond.isShadow && beyond.reason == nil && beyond.retryAfterSeconds == nil)
        #expect(snapshot.used == 13 && snapshot.remaining == 0 && snapshot.isBeyondUnenforcedLimit)
        let held = snapshot.reserve(2, of: user(1))
        #expect(held.status == .held && held.isShadow && snapshot.held == 2)
        let committed = snapshot.commit(2, ofHeld: 2, of: user(1))
        #expect(!committed.isShadow, "a commit is never refused for the limit")
        #expect(!snapshot.usage(of: user(1)).isShadow)
    }

    @Test("more than remain is allowed too")
    func moreThanRemain() {
        var snapshot = snapshot(plan, used: 5)
        #expect(snapshot.check(6, of: user(1)).isShadow && !snapshot.check(5, of: user(1)).isShadow)
        #expect(snapshot.reserve(6, of: user(1)).isShadow)
    }

    @Test("blocks nobody, and says nothing about messages that are used up")
    func tier() {
        var snapshot = snapshot(plan, used: 8)
        #expect(snapshot.consume(1, of: user(1)).crossed == nil && snapshot.tier == .gentle && snapshot.banner != nil)
        #expect(snapshot.consume(1, of: user(1)).crossed == .prominent)
        #expect(snapshot.tier == .prominent && snapshot.display == .compact && snapshot.banner == nil)
        #expect(snapshot.consume(100, of: user(1)).crossed == nil && snapshot.tier == .prominent)
    }

    @Test("keeps every other reason")
    func otherReasons() {
        var snapshot = snapshot(plan, used: 20)
        snapshot.denialReason = .expired
        #expect(snapshot.check(1, of: user(1)).status == .blocked(.expired))
        #expect(snapshot.tier == .blocked && snapshot.banner != nil)
    }

    @Test("may be a lifetime plan without messages")
    func nothing() {
        let free = Plan(name: "free", label: "Free", cycle: .lifetime, allowance: 0, isEnforced: false)
        var snapshot = snapshot(free, used: 0)
        #expect(snapshot.accessDenialReason == nil && snapshot.tier == .prominent)
        #expect(snapshot.consume(1, of: user(1)).isShadow)
        #expect(snapshot.check(1, of: user(1)).status == .allowed)
    }
}
