import TestSupport
import Testing
import Usage

private let now = at("2026-11-10T12:00:00Z")

private func paid(allowance: Int?) -> Plan {
    Plan(name: "paid", label: "Premium", cycle: .monthly, allowance: allowance)
}

@Suite("Reference model: counting")
struct ReferenceModelTests {
    @Test("counts each message in its month, and starts the next month at 0")
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

    @Test("counts the messages of each user separately")
    func twoUsers() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: now)
        _ = model.consume(ada, messages: 10, at: now)
        #expect(model.usage(ben, at: now).snapshot.used == 0)
        #expect(model.history(ben, months: 12, at: now).isEmpty)
    }

    @Test("creates a row with the first counted message, not with CHECK or a refusal")
    func rowCreation() throws {
        var model = ReferenceModel()
        #expect(model.check(ada, messages: 1, at: now).status == .allowed)
        #expect(model.consume(ada, messages: 101, at: now).status == .blocked(.exceedsRemaining))
        #expect(model.usage(ada, at: now).snapshot.used == 0)
        #expect(model.history(ada, months: 12, at: now).isEmpty)
        _ = model.consume(ada, messages: 1, at: now)
        #expect(model.history(ada, months: 12, at: now).count == 1)
    }

    @Test("unblocks a user at once by an upgrade, and keeps the count")
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

    @Test("blocks a user after a downgrade below the count, and keeps the count")
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

    @Test("shows an edited plan at once, and writes it with the next message")
    func editedPlan() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: now)
        _ = model.consume(ada, messages: 10, at: now)
        model.setPlanDefinition(paid(allowance: 1_000))
        #expect(model.check(ada, messages: 1, at: now).snapshot.limit == 1_000)
        #expect(model.usage(ada, at: now).snapshot.limit == 1_000)
        #expect(model.history(ada, months: 1, at: now).map(\.limit) == [1_000])
        _ = model.consume(ada, messages: 1, at: now)
        #expect(model.history(ada, months: 1, at: now).map(\.limit) == [1_000])
    }

    @Test("keeps an operator's limit until the plan changes, and only for its period")
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

    @Test("keeps an operator's limit after a change to a plan with the same allowance")
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

    @Test("keeps an operator's limit that was set after a downgrade and a refused message")
    func operatorLimitAfterRefusal() throws {
        var model = try ReferenceModel.subscribed(to: "pro", at: now)
        _ = model.consume(ada, messages: 900, at: now)
        _ = try model.setPlan(PlanChange(user: ada, plan: "paid"), at: now)
        #expect(model.consume(ada, messages: 1, at: now).status == .blocked(.limitReached))
        model.setLimit(ada, period: billingPeriod("2026-11"), limit: 950)
        #expect(model.consume(ada, messages: 50, at: now).status == .allowed)
    }

    @Test("writes nothing for a message without access")
    func nothingWrittenWithoutAccess() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: now)
        _ = model.consume(ada, messages: 10, at: now)
        _ = try model.setPlan(PlanChange(user: ada, plan: "paid", state: .expired), at: now)
        model.setPlanDefinition(paid(allowance: 1_000))
        #expect(model.consume(ada, messages: 1, at: now).snapshot.limit == 1_000)
        #expect(model.history(ada, months: 1, at: now).map(\.limit) == [1_000])
    }

    @Test("changes no limit without a row")
    func limitWithoutRow() throws {
        var model = ReferenceModel()
        model.setLimit(ada, period: billingPeriod("trial"), limit: 5)
        #expect(model.usage(ada, at: now).snapshot.limit == 100)
        #expect(model.history(ada, months: 12, at: now).isEmpty)
    }

    @Test("starts months on the subscriber's anchor day")
    func anchor() throws {
        var model = try ReferenceModel.subscribed(to: "paid", anchorDay: 31, at: now)
        let answer = model.consume(ada, messages: 1, at: now)
        #expect(answer.snapshot.period == billingPeriod("2026-10"))
        #expect(answer.snapshot.startedAt == at("2026-10-31"))
        #expect(answer.snapshot.resetsAt == at("2026-11-30"))
        #expect(model.usage(ada, at: at("2026-11-30")).snapshot.period == billingPeriod("2026-11"))
    }

    @Test("never returns to an earlier month after a change of the anchor day")
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
        #expect(model.consume(ada, messages: 101, at: now).status == .blocked(.exceedsRemaining))
        #expect(model.usage(ada, at: at("2026-12-15").justBefore).snapshot.used == 700)
        let next = model.consume(ada, messages: 1, at: at("2026-12-15"))
        #expect(next.snapshot.period == billingPeriod("2026-12"))
        #expect(next.snapshot.used == 1)
    }

    @Test("keeps the anchor day after changes without one")
    func anchorKept() throws {
        var model = try ReferenceModel.subscribed(to: "paid", anchorDay: 20, at: now)
        _ = try model.setPlan(PlanChange(user: ada, plan: "free"), at: now)
        let back = try model.setPlan(PlanChange(user: ada, plan: "pro"), at: now)
        #expect(back.snapshot.startedAt == at("2026-10-20"))
    }
}
