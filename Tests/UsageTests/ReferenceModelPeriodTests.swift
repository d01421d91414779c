import TestSupport
import Testing
import Usage

private let now = at("2026-11-20T12:00:00Z")

@Suite("Reference model: rows after changes of the plan")
struct ReferenceModelPeriodTests {
    private func periods(_ model: ReferenceModel) -> [String] {
        model.history(ada, at: now).map { "\($0.period) \($0.used) of \($0.limit.map(String.init) ?? "unlimited")" }
    }

    private func change(_ plan: String, _ state: SubscriptionState? = nil, anchorDay: Int? = nil) -> PlanChange {
        PlanChange(user: ada, plan: plan, state: state, anchorDay: anchorDay)
    }

    @Test("creates a row for the period of a new plan beside the used trial")
    func opened() throws {
        var model = ReferenceModel()
        _ = model.consume(ada, messages: 100, at: now)
        _ = try model.setPlan(change("paid"), at: now)
        #expect(periods(model) == ["2026-11 0 of 800", "trial 100 of 100"])
    }

    @Test("updates an unused row with the plan, the anchor day and the access")
    func follows() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: now)
        #expect(periods(model) == ["2026-11 0 of 800"])
        _ = try model.setPlan(change("pro"), at: now)
        #expect(periods(model) == ["2026-11 0 of unlimited"])
        _ = try model.setPlan(change("paid", anchorDay: 25), at: now)
        #expect(periods(model) == ["2026-10 0 of 800"])
        _ = try model.setPlan(change("paid", .revoked), at: now)
        #expect(periods(model) == [])
        _ = try model.setPlan(change("free"), at: now)
        #expect(periods(model) == [], "a plan that allows nothing")
    }

    @Test(
        "keeps a used row",
        arguments: ["message", "grant", "reset", "limit", "hold", "release"]
    )
    func used(what: String) throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: now)
        switch what {
        case "message": _ = model.consume(ada, at: now)
        case "grant": _ = try model.grant(ada, messages: 5, key: messageKey("ticket"), at: now)
        case "reset":
            _ = model.consume(ada, at: now)
            _ = model.resetUsage(ada, at: now)
        case "limit": model.setLimit(ada, period: billingPeriod("2026-11"), limit: 900)
        case "hold": _ = try model.reserve(ada, key: messageKey("k"), ttlSeconds: 60, at: now)
        default:
            _ = try model.consume(ada, key: messageKey("k"), at: now)
            _ = try model.release(ada, key: messageKey("k"), at: now)
        }
        _ = try model.setPlan(change("trial"), at: now)
        #expect(model.history(ada, at: now).map(\.period.label).sorted() == ["2026-11", "trial"])
        if what == "hold" {
            _ = try model.setPlan(change("trial"), at: now.advanced(bySeconds: 60))
            #expect(periods(model) == ["trial 0 of 100"], "it has ended by itself")
        }
    }
}
