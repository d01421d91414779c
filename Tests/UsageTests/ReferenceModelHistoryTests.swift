import TestSupport
import Testing
import Usage

private let november = at("2026-11-10T12:00:00Z")
private let december = at("2026-12-10T12:00:00Z")

@Suite("Reference model: usage of periods, history and resets")
struct ReferenceModelHistoryTests {
    @Test("answers a past period with its own numbers")
    func pastPeriod() throws {
        var model = try ReferenceModel.subscribed(to: "paid", anchorDay: 5, at: november)
        _ = model.consume(ada, messages: 650, at: november)
        model.setLimit(ada, period: billingPeriod("2026-11"), limit: 700)
        _ = model.consume(ada, messages: 1, at: december)
        let answer = try #require(model.usage(ada, period: billingPeriod("2026-11"), at: december))
        #expect(answer.status == .ok)
        #expect(answer.isDetailed)
        #expect(answer.snapshot.used == 650)
        #expect(answer.snapshot.limit == 700)
        #expect(answer.snapshot.startedAt == at("2026-11-05"))
        #expect(answer.snapshot.resetsAt == at("2026-12-05"))
        #expect(answer.snapshot.isPast)
        #expect(answer.snapshot.banner == nil)
    }

    @Test("answers the current period by name as without a name, and has no answer for a period without a row")
    func namedPeriod() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: november)
        #expect(model.usage(ada, period: billingPeriod("2026-11"), at: november) == model.usage(ada, at: november))
        _ = model.consume(ada, messages: 1, at: november)
        #expect(model.usage(ada, period: billingPeriod("2026-11"), at: november) == model.usage(ada, at: november))
        #expect(model.usage(ada, period: billingPeriod("2026-10"), at: november) == nil)
        #expect(model.usage(ada, period: billingPeriod("trial"), at: november) == nil)
        #expect(model.usage(ben, period: billingPeriod("2026-11"), at: november) == nil)
    }

    @Test("answers a trial that was followed by a paid plan as a trial")
    func pastTrial() throws {
        var model = ReferenceModel()
        _ = model.consume(ada, messages: 41, at: november)
        let paidAt = november.advanced(bySeconds: oneDay)
        _ = try model.setPlan(PlanChange(user: ada, plan: "paid"), at: paidAt)
        let snapshot = try #require(model.usage(ada, period: billingPeriod("trial"), at: paidAt)).snapshot
        #expect(snapshot.plan == .trial)
        #expect(snapshot.used == 41)
        #expect(snapshot.limit == 100)
        #expect(snapshot.startedAt == november)
        #expect(snapshot.expiresAt == november.advanced(bySeconds: 3 * oneDay))
        #expect(snapshot.accessible.text == "41 of 100 trial messages used")
        #expect(snapshot.isPast)
        #expect(snapshot.banner == nil)
    }

    @Test("answers this month as past after the user has left the monthly plan")
    func leftPlan() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: november)
        _ = model.consume(ada, messages: 10, at: november)
        _ = try model.setPlan(PlanChange(user: ada, plan: "free", state: .expired), at: november)
        let snapshot = try #require(model.usage(ada, period: billingPeriod("2026-11"), at: november)).snapshot
        #expect(snapshot.plan == .paid)
        #expect(snapshot.isPast)
        #expect(snapshot.tier == .silent)
    }

    @Test("lists periods newest first, each with its own limit and tier")
    func history() throws {
        var model = ReferenceModel()
        _ = model.consume(ada, messages: 95, at: at("2026-09-29"))
        _ = try model.setPlan(PlanChange(user: ada, plan: "paid"), at: at("2026-09-30"))
        _ = model.consume(ada, messages: 1, at: at("2026-09-30"))
        _ = model.consume(ada, messages: 640, at: at("2026-10-10"))
        _ = model.consume(ada, messages: 800, at: november)
        _ = model.consume(ada, messages: 3, at: december)
        model.setLimit(ada, period: billingPeriod("2026-12"), limit: 0)
        let history = model.history(ada, months: 12, at: december)
        // The trial would have ended on October 2, a day after the month in which the paid plan replaced it.
        #expect(history.map(\.period.label) == ["2026-12", "2026-11", "2026-10", "trial", "2026-09"])
        #expect(history.map(\.used) == [3, 800, 640, 95, 1])
        #expect(history.map(\.limit) == [0, 800, 800, 100, 800])
        #expect(history.map(\.tier) == [.blocked, .blocked, .gentle, .prominent, .silent])
        #expect(history.allSatisfy { $0.user == ada })
        #expect(model.history(ada, months: 2, at: december) == Array(history.prefix(2)))
    }

    @Test("keeps the order of periods when one is used again")
    func historyOfRepeatedPlan() throws {
        var model = ReferenceModel()
        model.setPlanDefinition(Plan(name: "free", label: "Free", cycle: .lifetime, allowance: 3))
        for (plan, day) in [("free", "2026-11-01"), ("paid", "2026-11-02"), ("free", "2026-11-03")] {
            _ = try model.setPlan(PlanChange(user: ada, plan: plan), at: at(day))
            _ = model.consume(ada, messages: 1, at: at(day))
        }
        let history = model.history(ada, months: 12, at: november)
        #expect(history.map(\.period.label) == ["2026-11", "free"])
        #expect(history.map(\.used) == [1, 2])
    }

    @Test("keeps the history of a user without access")
    func historyOfLapsed() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: november)
        _ = model.consume(ada, messages: 10, at: november)
        _ = try model.setPlan(PlanChange(user: ada, plan: "paid", state: .expired), at: november)
        #expect(model.history(ada, months: 12, at: november).map(\.tier) == [.blocked])
        #expect(model.history(ada, months: 12, at: november).map(\.used) == [10])
    }

    @Test("computes tiers in history by the percentages of the row's plan")
    func historyPercentages() throws {
        var model = ReferenceModel()
        model.setPlanDefinition(
            Plan(
                name: "early",
                label: "Early",
                cycle: .monthly,
                allowance: 100,
                gentlePercent: 50,
                prominentPercent: 60
            )
        )
        _ = try model.setPlan(PlanChange(user: ada, plan: "early"), at: november)
        _ = model.consume(ada, messages: 50, at: november)
        #expect(model.history(ada, months: 12, at: november).map(\.tier) == [.gentle])
    }

    @Test("resets the current period with or without a row")
    func resetCurrent() throws {
        var model = ReferenceModel()
        let untouched = model.resetUsage(ada, period: nil, at: november)
        #expect(untouched?.snapshot.used == 0)
        #expect(model.history(ada, months: 12, at: november).isEmpty)
        _ = try model.setPlan(PlanChange(user: ada, plan: "paid"), at: november)
        _ = model.consume(ada, messages: 800, at: november)
        model.setLimit(ada, period: billingPeriod("2026-11"), limit: 700)
        let reset = model.resetUsage(ada, period: nil, at: november)
        let answer = try #require(reset)
        #expect(answer.status == .ok)
        #expect(answer.isDetailed == false)
        #expect(answer.snapshot.used == 0)
        #expect(answer.snapshot.limit == 700)
        #expect(model.consume(ada, messages: 1, at: november).status == .allowed)
    }

    @Test("resets only the named period, and only if it has a row")
    func resetNamed() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: november)
        let missing = model.resetUsage(ada, period: billingPeriod("2026-12"), at: november)
        #expect(missing == nil)
        _ = model.consume(ada, messages: 10, at: november)
        _ = model.consume(ada, messages: 20, at: december)
        let reset = model.resetUsage(ada, period: billingPeriod("2026-11"), at: december)
        let answer = try #require(reset)
        #expect(answer.snapshot.period == billingPeriod("2026-11"))
        #expect(answer.snapshot.used == 0)
        #expect(model.history(ada, months: 12, at: december).map(\.used) == [20, 0])
    }

    @Test("reports crossed tiers again after a reset")
    func crossedAfterReset() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: november)
        #expect(model.consume(ada, messages: 640, at: november).crossed == .gentle)
        #expect(model.consume(ada, messages: 1, at: november).crossed == nil)
        _ = model.resetUsage(ada, period: nil, at: november)
        #expect(model.consume(ada, messages: 640, at: november).crossed == .gentle)
    }
}
