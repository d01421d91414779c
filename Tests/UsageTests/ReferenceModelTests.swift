import TestSupport
import Testing
import Usage

private let now = at("2026-11-10T12:00:00Z")

private func paid(allowance: Int?) -> Plan {
    Plan(name: "paid", label: "Premium", cycle: .monthly, allowance: allowance)
}

@Suite("The model, counting")
struct ReferenceModelTests {
    @Test("counts each message in the month in which it came, and begins the next one at 0")
    func months() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: now)
        let first = model.consume(ada, messages: 799, at: now)
        #expect(first.status == .allowed)
        #expect(first.snapshot.period == billingPeriod("2026-11"))
        #expect(first.snapshot.startedAt == at("2026-11-01"))
        #expect(first.snapshot.resetsAt == at("2026-12-01"))
        #expect(model.consume(ada, messages: 1, at: at("2026-12-01").justBefore).crossed == .blocked)
        #expect(model.consume(ada, messages: 1, at: at("2026-12-01").justBefore).status == .blocked(.limitReached))
        let second = model.consume(ada, messages: 1, at: at("2026-12-01"))
        #expect(second.status == .allowed)
        #expect(second.snapshot.period == billingPeriod("2026-12"))
        #expect(second.snapshot.used == 1)
    }

    @Test("keeps one user's messages from another's")
    func twoUsers() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: now)
        _ = model.consume(ada, messages: 10, at: now)
        #expect(model.usage(ben, at: now).snapshot.used == 0)
        #expect(model.history(ben, months: 12, at: now).isEmpty)
    }

    @Test("begins a row with the first counted message, not with a question or a refusal")
    func rowCreation() throws {
        var model = ReferenceModel()
        #expect(model.check(ada, messages: 1, at: now).status == .allowed)
        #expect(model.consume(ada, messages: 101, at: now).status == .blocked(.trialLimitReached))
        #expect(model.usage(ada, at: now).snapshot.used == 0)
        #expect(model.history(ada, months: 12, at: now).isEmpty)
        _ = model.consume(ada, messages: 1, at: now)
        #expect(model.history(ada, months: 12, at: now).count == 1)
    }

    @Test("lets an upgrade unblock at once, and keeps the count")
    func upgrade() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: now)
        _ = model.consume(ada, messages: 800, at: now)
        #expect(model.check(ada, messages: 1, at: now).status == .blocked(.limitReached))
        let change = try model.setPlan(PlanChange(user: ada, plan: "pro"), at: now)
        #expect(change.snapshot.limit == nil)
        let answer = model.consume(ada, messages: 1, at: now)
        #expect(answer.status == .allowed)
        #expect(answer.snapshot.used == 801)
        #expect(model.history(ada, months: 1, at: now).map(\.limit) == [nil])
    }

    @Test("lets a downgrade block what was used, and loses nothing")
    func downgrade() throws {
        var model = try ReferenceModel.subscribed(to: "pro", at: now)
        _ = model.consume(ada, messages: 900, at: now)
        _ = try model.setPlan(PlanChange(user: ada, plan: "paid"), at: now)
        let answer = model.consume(ada, messages: 1, at: now)
        #expect(answer.status == .blocked(.limitReached))
        #expect(answer.snapshot.used == 900)
        #expect(answer.snapshot.limit == 800)
        #expect(model.history(ada, months: 1, at: now).map(\.limit) == [800])
        _ = try model.setPlan(PlanChange(user: ada, plan: "pro"), at: now)
        #expect(model.consume(ada, messages: 1, at: now).snapshot.used == 901)
    }

    @Test("shows an edited plan at once and writes it with the next message")
    func editedPlan() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: now)
        _ = model.consume(ada, messages: 10, at: now)
        model.setPlanDefinition(paid(allowance: 1_000))
        #expect(model.check(ada, messages: 1, at: now).snapshot.limit == 1_000)
        #expect(model.usage(ada, at: now).snapshot.limit == 1_000)
        #expect(model.history(ada, months: 1, at: now).map(\.limit) == [800])
        _ = model.consume(ada, messages: 1, at: now)
        #expect(model.history(ada, months: 1, at: now).map(\.limit) == [1_000])
    }

    @Test("keeps an operator's limit while the plan stays as it is, and only for its period")
    func operatorLimit() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: now)
        _ = model.consume(ada, messages: 800, at: now)
        model.setLimit(ada, period: billingPeriod("2026-11"), limit: 900)
        #expect(model.check(ada, messages: 1, at: now).snapshot.remaining == 100)
        #expect(model.consume(ada, messages: 100, at: now).snapshot.limit == 900)
        #expect(model.consume(ada, messages: 1, at: now).status == .blocked(.limitReached))
        #expect(model.usage(ada, at: at("2026-12-01")).snapshot.limit == 800)
        model.setPlanDefinition(paid(allowance: 1_000))
        #expect(model.consume(ada, messages: 1, at: now).snapshot.limit == 1_000)
    }

    @Test("keeps an operator's limit through a plan change that leaves the allowance as it is")
    func operatorLimitAcrossPlans() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: now)
        model.setPlanDefinition(Plan(name: "team", label: "Team", cycle: .monthly, allowance: 800))
        _ = model.consume(ada, messages: 1, at: now)
        model.setLimit(ada, period: billingPeriod("2026-11"), limit: nil)
        _ = try model.setPlan(PlanChange(user: ada, plan: "team"), at: now)
        let answer = model.consume(ada, messages: 5_000, at: now)
        #expect(answer.status == .allowed)
        #expect(answer.snapshot.limit == nil)
    }

    @Test("keeps an operator's limit after a downgrade that a refused message has already met")
    func operatorLimitAfterRefusal() throws {
        var model = try ReferenceModel.subscribed(to: "pro", at: now)
        _ = model.consume(ada, messages: 900, at: now)
        _ = try model.setPlan(PlanChange(user: ada, plan: "paid"), at: now)
        #expect(model.consume(ada, messages: 1, at: now).status == .blocked(.limitReached))
        model.setLimit(ada, period: billingPeriod("2026-11"), limit: 950)
        #expect(model.consume(ada, messages: 50, at: now).status == .allowed)
    }

    @Test("writes nothing for a message that came without access")
    func nothingWrittenWithoutAccess() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: now)
        _ = model.consume(ada, messages: 10, at: now)
        _ = try model.setPlan(PlanChange(user: ada, plan: "paid", state: .expired), at: now)
        model.setPlanDefinition(paid(allowance: 1_000))
        #expect(model.consume(ada, messages: 1, at: now).snapshot.limit == 1_000)
        #expect(model.history(ada, months: 1, at: now).map(\.limit) == [800])
    }

    @Test("changes no limit where there is no row")
    func limitWithoutRow() throws {
        var model = ReferenceModel()
        model.setLimit(ada, period: billingPeriod("trial"), limit: 5)
        #expect(model.usage(ada, at: now).snapshot.limit == 100)
        #expect(model.history(ada, months: 12, at: now).isEmpty)
    }

    @Test("begins months on the subscriber's anchor day")
    func anchor() throws {
        var model = try ReferenceModel.subscribed(to: "paid", anchorDay: 31, at: now)
        let answer = model.consume(ada, messages: 1, at: now)
        #expect(answer.snapshot.period == billingPeriod("2026-10"))
        #expect(answer.snapshot.startedAt == at("2026-10-31"))
        #expect(answer.snapshot.resetsAt == at("2026-11-30"))
        #expect(model.usage(ada, at: at("2026-11-30")).snapshot.period == billingPeriod("2026-11"))
    }

    @Test("never goes back to an earlier month when the anchor day changes")
    func anchorChange() throws {
        var model = ReferenceModel()
        _ = model.consume(ada, messages: 1, at: at("2026-10-09"))
        _ = try model.setPlan(PlanChange(user: ada, plan: "paid"), at: at("2026-10-10"))
        _ = model.consume(ada, messages: 1, at: at("2026-10-10"))
        _ = model.consume(ada, messages: 700, at: now)
        let change = try model.setPlan(PlanChange(user: ada, plan: "paid", anchorDay: 15), at: now)
        #expect(change.snapshot.period == billingPeriod("2026-11"))
        #expect(change.snapshot.used == 700)
        #expect(change.snapshot.startedAt == at("2026-11-15"))
        #expect(change.snapshot.resetsAt == at("2026-12-15"))
        #expect(model.consume(ada, messages: 101, at: now).status == .blocked(.limitReached))
        #expect(model.usage(ada, at: at("2026-12-15").justBefore).snapshot.used == 700)
        let next = model.consume(ada, messages: 1, at: at("2026-12-15"))
        #expect(next.snapshot.period == billingPeriod("2026-12"))
        #expect(next.snapshot.used == 1)
    }

    @Test("keeps the anchor day through changes that do not name one")
    func anchorKept() throws {
        var model = try ReferenceModel.subscribed(to: "paid", anchorDay: 20, at: now)
        _ = try model.setPlan(PlanChange(user: ada, plan: "free"), at: now)
        let back = try model.setPlan(PlanChange(user: ada, plan: "pro"), at: now)
        #expect(back.snapshot.startedAt == at("2026-10-20"))
    }
}
