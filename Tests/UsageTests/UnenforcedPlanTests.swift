import TestSupport
import Testing
import Usage

@Suite("An unenforced plan")
struct UnenforcedPlanTests {
    private let plan = Plan(name: "new", label: "New", cycle: .monthly, allowance: 10, isEnforced: false)

    private func snapshot(used: Int) -> UsageSnapshot {
        UsageSnapshot(
            plan: plan,
            state: .active,
            period: billingPeriod("2026-11"),
            used: used,
            limit: plan.allowance,
            startedAt: at("2026-11-01"),
            resetsAt: at("2026-12-01"),
            observedAt: at("2026-11-10")
        )
    }

    @Test("blocks nobody, and says nothing about messages that are used up")
    func tier() {
        var snapshot = snapshot(used: 8)
        #expect(snapshot.consume(1, of: user(1)).crossed == nil && snapshot.tier == .gentle && snapshot.banner != nil)
        #expect(snapshot.consume(1, of: user(1)).crossed == .prominent)
        #expect(snapshot.tier == .prominent && snapshot.display == .compact && snapshot.banner == nil)
        #expect(snapshot.consume(100, of: user(1)).crossed == nil && snapshot.tier == .prominent)
    }
}
