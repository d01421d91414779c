import TestSupport
import Testing
import Usage

private let now = at("2026-11-10T09:30:00Z")
private let end = at("2026-11-13T09:30:00Z")

@Suite("Reference model: trials and unknown users")
struct ReferenceModelTrialTests {
    @Test("starts the trial of an unknown user with the first counted message")
    func trialBegins() {
        var model = ReferenceModel()
        let asked = model.check(ada, messages: 1, at: at("2026-11-01"))
        #expect(asked.status == .allowed)
        #expect(asked.snapshot.state == .trial)
        #expect(asked.snapshot.startedAt == at("2026-11-01"))
        #expect(asked.snapshot.expiresAt == at("2026-11-04"))
        #expect(model.usage(ada, at: at("2026-11-02")).snapshot.expiresAt == at("2026-11-05"))
        #expect(model.consume(ada, messages: 101, at: at("2026-11-03")).status == .blocked(.exceedsRemaining))

        let first = model.consume(ada, messages: 1, at: now)
        #expect(first.status == .allowed)
        #expect(first.snapshot.plan == .trial)
        #expect(first.snapshot.period == billingPeriod("trial"))
        #expect(first.snapshot.expiresAt == end)
        #expect(first.snapshot.resetsAt == nil)
        #expect(first.snapshot.used == 1)
        #expect(first.snapshot.limit == 100)

        let later = model.consume(ada, messages: 1, at: end.justBefore)
        #expect(later.status == .allowed)
        #expect(later.snapshot.startedAt == now)
        #expect(later.snapshot.used == 2)
    }

    @Test("ends a trial after its days, and keeps its count")
    func trialEnds() {
        var model = ReferenceModel()
        _ = model.consume(ada, messages: 40, at: now)
        let answer = model.consume(ada, messages: 1, at: end)
        #expect(answer.status == .blocked(.trialEnded))
        #expect(answer.snapshot.state == .trial)
        #expect(answer.snapshot.used == 40)
        #expect(answer.snapshot.expiresAt == end)
        #expect(answer.retryAfterSeconds == nil)
        #expect(model.usage(ada, at: at("2030-01-01")).snapshot.denialReason == .trialEnded)
    }

    @Test("ends a trial for good when it is used up")
    func trialUsedUp() throws {
        var model = ReferenceModel()
        #expect(model.consume(ada, messages: 100, at: now).crossed == .blocked)
        #expect(model.consume(ada, messages: 1, at: now).status == .blocked(.trialLimitReached))
        _ = try model.setPlan(PlanChange(user: ada, plan: "trial", startedAt: now), at: now)
        #expect(model.consume(ada, messages: 1, at: now).status == .blocked(.trialLimitReached))
    }

    @Test("keeps what a forgotten user has spent when a grant brings the user back, whatever unknown users get")
    func grantAfterForget() throws {
        for policy in UnknownUsersPolicy.allCases {
            var model = ReferenceModel(unknownUsersPolicy: policy)
            model.setPlanDefinition(Plan(name: "free", label: "Free", cycle: .lifetime, allowance: 10))
            _ = try model.setPlan(PlanChange(user: ada, plan: "free"), at: now)
            _ = model.consume(ada, messages: 7, at: now)
            model.forget(ada)
            _ = try model.grant(ada, messages: 5, key: MessageKey("ticket 1"), at: now)
            _ = try model.setPlan(PlanChange(user: ada, plan: "free"), at: now)
            #expect(model.usage(ada, at: now).snapshot.used == 7, "\(policy)")
        }
    }

    @Test("never starts a trial again, neither by SETPLAN nor after a paid plan")
    func noSecondTrial() throws {
        var model = ReferenceModel()
        _ = model.consume(ada, messages: 1, at: now)
        let again = try model.setPlan(PlanChange(user: ada, plan: "trial"), at: end)
        #expect(again.snapshot.denialReason == .trialEnded)
        _ = try model.setPlan(PlanChange(user: ada, plan: "paid"), at: end)
        let back = try model.setPlan(PlanChange(user: ada, plan: "trial"), at: at("2027-01-01"))
        #expect(back.snapshot.startedAt == now)
        #expect(back.snapshot.denialReason == .trialEnded)
    }

    @Test("uses the start and end of a trial that an operator sets")
    func toldTrial() throws {
        var model = ReferenceModel()
        let plain = try model.setPlan(PlanChange(user: ada, plan: "trial"), at: now)
        #expect(plain.snapshot.startedAt == now)
        let started = try model.setPlan(PlanChange(user: ada, plan: "trial", startedAt: at("2026-11-09")), at: now)
        #expect(started.snapshot.expiresAt == at("2026-11-12"))
        let kept = try model.setPlan(PlanChange(user: ada, plan: "trial"), at: now)
        #expect(kept.snapshot.startedAt == at("2026-11-09"))
        let ends = PlanChange(user: ada, plan: "trial", expiresAt: at("2026-11-30"))
        let extended = try model.setPlan(ends, at: now)
        #expect(extended.snapshot.expiresAt == at("2026-11-30"))
        #expect(model.check(ada, messages: 1, at: at("2026-11-30").justBefore).status == .allowed)
        #expect(model.check(ada, messages: 1, at: at("2026-11-30")).status == .blocked(.trialEnded))
    }

    @Test("extends a trial when its plan is edited")
    func editedTrial() {
        var model = ReferenceModel()
        _ = model.consume(ada, messages: 1, at: now)
        model.setPlanDefinition(Plan(name: "trial", label: "Trial", cycle: .trial(days: 7), allowance: 10))
        let answer = model.consume(ada, messages: 1, at: end)
        #expect(answer.status == .allowed)
        #expect(answer.snapshot.limit == 10)
        #expect(answer.snapshot.trialDay.map { [$0.day, $0.days] } == [4, 7])
    }

    @Test("starts the first paid month at 0, and keeps the trial's row")
    func trialToPaid() throws {
        var model = ReferenceModel()
        _ = model.consume(ada, messages: 60, at: now)
        let change = try model.setPlan(PlanChange(user: ada, plan: "paid"), at: now)
        #expect(change.status == .ok)
        #expect(change.isDetailed == false)
        #expect(change.snapshot.used == 0)
        #expect(change.snapshot.limit == 800)
        #expect(change.snapshot.previousPlan == nil)
        _ = model.consume(ada, messages: 1, at: now.justAfter)
        let history = model.history(ada, months: 12, at: now)
        #expect(history.map(\.period.label) == ["2026-11", "trial"])
        #expect(history.map(\.used) == [1, 60])
    }

    @Test("gives an unknown user the free plan with unknown-users free, and stores only counted messages")
    func free() {
        let plans = [.paid, .trial, Plan(name: "free", label: "Free", cycle: .lifetime, allowance: 3)]
        var model = ReferenceModel(plans: plans, unknownUsersPolicy: .free)
        let answer = model.consume(ada, messages: 3, at: now)
        #expect(answer.status == .allowed)
        #expect(answer.snapshot.state == .free)
        #expect(answer.snapshot.period == billingPeriod("free"))
        #expect(answer.crossed == .blocked)
        #expect(model.consume(ada, messages: 1, at: at("2030-01-01")).status == .blocked(.limitReached))
        #expect(model.check(ben, messages: 4, at: now).status == .blocked(.exceedsRemaining))
        #expect(model.history(ben, months: 12, at: now).isEmpty)
    }

    @Test("still allows a trial after the free plan was used")
    func freeThenTrial() throws {
        let plans = [.paid, .trial, Plan(name: "free", label: "Free", cycle: .lifetime, allowance: 3)]
        var model = ReferenceModel(plans: plans, unknownUsersPolicy: .free)
        _ = model.consume(ada, messages: 1, at: now)
        let trial = try model.setPlan(PlanChange(user: ada, plan: "trial"), at: end)
        #expect(trial.snapshot.startedAt == end)
        #expect(trial.snapshot.denialReason == nil)
    }

    @Test("refuses an unknown user of the default free plan with no_subscription")
    func freeWithoutAllowance() {
        var model = ReferenceModel(unknownUsersPolicy: .free)
        let answer = model.consume(ada, messages: 1, at: now)
        #expect(answer.status == .blocked(.noSubscription))
        #expect(answer.snapshot.denialReason == nil)
        #expect(answer.snapshot.limit == 0)
    }

    @Test("denies an unknown user with unknown-users deny until a plan is set")
    func deny() throws {
        let plans = [.paid, .trial, Plan(name: "free", label: "Free", cycle: .lifetime, allowance: 3)]
        var model = ReferenceModel(plans: plans, unknownUsersPolicy: .deny)
        let answer = model.consume(ada, messages: 1, at: now)
        #expect(answer.status == .blocked(.noSubscription))
        #expect(answer.snapshot.plan.name == "free")
        #expect(answer.snapshot.state == .free)
        #expect(answer.snapshot.limit == 0)
        #expect(answer.snapshot.denialReason == .noSubscription)
        #expect(model.history(ada, months: 12, at: now).isEmpty)
        _ = try model.setPlan(PlanChange(user: ada, plan: "free"), at: now)
        #expect(model.consume(ada, messages: 1, at: now).snapshot.remaining == 2)
    }
}
