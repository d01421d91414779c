import TestSupport
import Testing
import Usage

private let now = at("2026-11-10T12:00:00Z")

@Suite("Reference model: changes of plans")
struct ReferenceModelPlanTests {
    @Test("accepts only states that the plan can have", arguments: SubscriptionState.allCases)
    func states(state: SubscriptionState) throws {
        let admitted: [String: [SubscriptionState]] = [
            "trial": [.trial, .expired, .revoked],
            "free": [.free, .expired, .revoked],
            "paid": [.active, .cancelled, .gracePeriod, .billingRetry, .expired, .revoked],
            "pro": [.active, .cancelled, .gracePeriod, .billingRetry, .expired, .revoked],
        ]
        for (plan, states) in admitted {
            var model = ReferenceModel()
            let change = PlanChange(user: ada, plan: plan, state: state)
            if states.contains(state) {
                let answer = try model.setPlan(change, at: now)
                #expect(answer.snapshot.state == state, "\(plan)")
            } else {
                #expect(throws: ReferenceModel.Failure.stateDoesNotFit, "\(plan)") {
                    _ = try model.setPlan(change, at: now)
                }
                #expect(model.usage(ada, at: now) == ReferenceModel().usage(ada, at: now))
            }
        }
    }

    @Test(
        "derives state and access at each instant after a change",
        arguments: [
            // plan, state, expires, grace until, end of access, denial reason
            ("paid", .active, "2026-11-20", nil, "2026-11-20", .expired),
            ("paid", .cancelled, "2026-11-20", nil, "2026-11-20", .expired),
            ("paid", .cancelled, nil, nil, "2026-12-01", .expired),
            ("paid", .gracePeriod, "2026-11-09", "2026-11-12", "2026-11-12", .billingRetry),
            ("paid", .gracePeriod, nil, "2026-11-12", "2026-11-12", .billingRetry),
            ("paid", .gracePeriod, "2026-11-09", nil, "2026-11-25", .billingRetry),
            ("paid", .gracePeriod, nil, nil, "2026-11-26T12:00:00Z", .billingRetry),
            ("trial", .trial, nil, nil, "2026-11-13T12:00:00Z", .trialEnded),
            ("free", .free, "2026-11-20", nil, "2026-11-20", .expired),
        ] as [(String, SubscriptionState, String?, String?, String, DenialReason)]
    )
    func accessEnds(
        plan: String,
        state: SubscriptionState,
        expires: String?,
        grace: String?,
        end: String,
        why: DenialReason
    ) throws {
        var model = ReferenceModel()
        let change = PlanChange(
            user: ada,
            plan: plan,
            state: state,
            expiresAt: expires.map(at),
            graceUntil: grace.map(at)
        )
        let changed = try model.setPlan(change, at: now)
        #expect(changed.snapshot.state == state)
        let before = model.usage(ada, at: at(end).justBefore).snapshot
        #expect(before.denialReason == nil)
        #expect(before.state == state)
        #expect(model.usage(ada, at: at(end)).snapshot.denialReason == why)
    }

    @Test(
        "ends access at once in states without access, with any dates",
        arguments: [
            ("paid", .expired), ("paid", .billingRetry), ("paid", .revoked), ("trial", .expired), ("trial", .revoked),
            ("free", .expired), ("free", .revoked),
        ] as [(String, SubscriptionState)]
    )
    func noAccess(plan: String, state: SubscriptionState) throws {
        let dates = [nil, at("2026-11-02"), at("2027-06-01")]
        for expires in dates {
            for grace in dates {
                var model = ReferenceModel()
                _ = model.consume(ada, messages: 7, at: now)
                let change = PlanChange(user: ada, plan: plan, state: state, expiresAt: expires, graceUntil: grace)
                let snapshot = try model.setPlan(change, at: now).snapshot
                #expect(snapshot.state == state)
                #expect(snapshot.denialReason?.rawValue == state.rawValue)
                #expect(model.usage(ada, at: at("2027-07-01")).snapshot.state == state)
                let answer = model.consume(ada, messages: 1, at: now)
                #expect(answer.status == snapshot.denialReason.map { .blocked($0) })
                #expect(answer.snapshot.used == (plan == "trial" ? 7 : 0))
            }
        }
    }

    @Test("keeps the date of a past expiry, and replaces a future one with now")
    func expiredAt() throws {
        var model = ReferenceModel()
        var change = PlanChange(user: ada, plan: "paid", state: .expired, expiresAt: at("2026-11-02"))
        #expect(try expiry(of: change, in: &model) == at("2026-11-02"))
        change.expiresAt = at("2027-01-01")
        #expect(try expiry(of: change, in: &model) == now)
        change.expiresAt = nil
        #expect(try expiry(of: change, in: &model) == now)
    }

    private func expiry(of change: PlanChange, in model: inout ReferenceModel) throws -> Instant? {
        try model.setPlan(change, at: now).snapshot.expiresAt
    }

    @Test("keeps the last monthly plan as the previous plan")
    func previousPlan() throws {
        var model = try ReferenceModel.subscribed(to: "paid", at: now)
        #expect(model.usage(ada, at: now).snapshot.previousPlan == nil)
        let steps = [
            ("paid", nil), ("pro", "paid"), ("free", "pro"), ("trial", "pro"), ("pro", "pro"), ("paid", "pro"),
        ]
        for (plan, previous) in steps {
            let answer = try model.setPlan(PlanChange(user: ada, plan: plan), at: now)
            #expect(answer.snapshot.previousPlan == previous, "\(plan)")
        }
    }

    @Test(
        "reports the present plan as the previous plan while it gives no access",
        arguments: [SubscriptionState.expired, .revoked, .billingRetry]
    )
    func lostPlan(state: SubscriptionState) throws {
        var model = try ReferenceModel.subscribed(to: "pro", at: now)
        let lost = try model.setPlan(PlanChange(user: ada, plan: "paid", state: state), at: now)
        #expect(lost.snapshot.previousPlan == "paid")
        let back = try model.setPlan(PlanChange(user: ada, plan: "paid"), at: now)
        #expect(back.snapshot.previousPlan == "pro")
        let trial = try model.setPlan(PlanChange(user: ben, plan: "trial", state: .expired), at: now)
        #expect(trial.snapshot.previousPlan == nil)
    }
}
