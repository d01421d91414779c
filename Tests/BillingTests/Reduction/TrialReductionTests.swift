import TestSupport
import Testing
import Usage

@testable import Billing

@Suite("Reduction of trials")
struct TrialReductionTests {
    private let spent = UserRecord.Trial(startedAt: day("2026-01-01"), endsAt: day("2026-01-04"))
    private let toBen = event("2026-03-05", by: [], .transferred(from: ["\(ada)"], to: ["\(ben)"]))

    @Test("A first trial runs as the store says")
    func first() {
        let customer = ReducedCustomer(event("2026-03-01", trial(until: "2026-03-08")))
        #expect(customer.subscription()?.plan == "trial")
        #expect(customer.subscription()?.startedAt == day("2026-03-01"))
        #expect(customer.subscription()?.expiresAt == day("2026-03-08"))
        #expect(customer.state.users[ada]?.trialStartedAt == day("2026-03-01"))
    }

    @Test("A trial that is bought after a trial by messages runs on the product's own plan")
    func afterMessages() {
        let customer = ReducedCustomer(
            event("2026-03-01", trial(until: "2026-03-08")),
            users: [ada: UserRecord(trial: spent)]
        )
        #expect(customer.subscription()?.plan == "paid")
        #expect(customer.subscription()?.expiresAt == day("2026-03-08"))
        #expect(customer.subscription()?.anchorDay == 1)
        #expect(customer.state.users[ada]?.trialStartedAt == day("2026-03-01"))
    }

    @Test("A trial by messages is over when it is used up, and not before it began")
    func usedUp() {
        let bought = event("2026-01-03", trial(until: "2026-01-10"))
        var early = spent
        early.usedUpAt = day("2026-01-02")
        #expect(ReducedCustomer(bought, users: [ada: UserRecord(trial: spent)]).subscription()?.plan == "trial")
        #expect(ReducedCustomer(bought, users: [ada: UserRecord(trial: early)]).subscription()?.plan == "paid")
        let later = UserRecord.Trial(
            startedAt: day("2026-01-03"),
            endsAt: day("2026-01-06"),
            usedUpAt: day("2026-01-03")
        )
        #expect(ReducedCustomer(bought, users: [ada: UserRecord(trial: later)]).subscription()?.plan == "trial")
    }

    @Test("A trial that is bought after an ended one runs on the product's own plan, with its renewals")
    func afterPurchase() {
        let customer = ReducedCustomer(
            event("2026-02-01", trial("T1", until: "2026-02-08")),
            event("2026-02-08", trial("T2", until: "2026-02-15")),
            event("2026-02-15", effect(.renewed, "T2", plan: "taste", until: "2026-02-22"))
        )
        #expect(customer.subscription(of: ada, "T1")?.plan == "trial")
        #expect(customer.subscription(of: ada, "T2")?.plan == "paid")
        #expect(customer.subscription(of: ada, "T2")?.startedAt == day("2026-02-08"))
        #expect(customer.subscription(of: ada, "T2")?.expiresAt == day("2026-02-22"))
    }

    @Test("A trial beside one that still runs is a trial")
    func beside() {
        let customer = ReducedCustomer(
            event("2026-02-01", trial("T1", until: "2026-02-08")),
            event("2026-02-07", trial("T2", until: "2026-02-14"))
        )
        #expect(customer.subscription(of: ada, "T2")?.plan == "trial")
    }

    @Test("A trial without an end ends after the plan's days")
    func withoutEnd() {
        func plan(_ second: String) -> String? {
            ReducedCustomer(
                event("2026-02-01", effect(.purchased, "T1", plan: "trial")),
                event(second, trial("T2", until: "2026-02-14"))
            ).subscription(of: ada, "T2")?.plan
        }
        #expect(plan("2026-02-03") == "trial")
        #expect(plan("2026-02-04") == "paid")
    }

    @Test("A second trial of a product without a plan of its own shows the first one's dates")
    func withoutPlan() {
        let customer = ReducedCustomer(
            event("2026-03-01", trial(until: "2026-03-08", regularPlan: nil)),
            users: [ada: UserRecord(trial: spent)]
        )
        #expect(customer.subscription()?.plan == "trial")
        #expect(customer.subscription()?.startedAt == day("2026-01-01"))
        #expect(customer.subscription()?.expiresAt == day("2026-01-04"))
    }

    @Test("A trial that comes to somebody whose own is over is over too")
    func transferToSpent() {
        let customer = ReducedCustomer(
            event("2026-03-01", trial(until: "2026-03-08")),
            toBen,
            users: [ben: UserRecord(trial: spent)]
        )
        #expect(customer.subscription(of: ben)?.plan == "trial")
        #expect(customer.subscription(of: ben)?.startedAt == day("2026-01-01"))
        #expect(customer.subscription(of: ben)?.expiresAt == day("2026-01-04"))
    }

    @Test("A trial that comes to somebody without one runs on, and both have had it")
    func transfer() {
        let customer = ReducedCustomer(
            event("2026-03-01", trial(until: "2026-03-08")),
            toBen,
            event("2026-03-09", trial("T2", until: "2026-03-16"))
        )
        #expect(customer.subscription(of: ben)?.expiresAt == day("2026-03-08"))
        #expect(customer.subscription(of: ada, "T2")?.plan == "paid")
        #expect(customer.state.users[ada]?.trialStartedAt == day("2026-03-01"))
        #expect(customer.state.users[ben]?.trialStartedAt == day("2026-03-01"))
    }

    @Test("Of somebody whom no event is about in the end, only what an operator declared is left")
    func neverOwned() {
        let eve = TestSupport.user(3)
        let customer = ReducedCustomer(
            event("2026-03-01", trial(until: "2026-03-08")),
            event("2026-03-02", by: ["sha256:1"], effect(.cancelled)),
            toBen,
            event("2026-03-06", by: ["\(eve)"], effect(.cancelled)),
            users: [ben: UserRecord(declaredAnchorDay: 9, declaredPreviousPlan: "pro")]
        )
        #expect(customer.state.users[ben] == UserState(anchorDay: 9, previousPlan: "pro", trialStartedAt: nil))
        #expect(customer.state.users[eve]?.trialStartedAt == day("2026-03-01"))
    }

    @Test("A second trial without a plan of its own stays spent for whom it is given to")
    func transferOfSpent() {
        let customer = ReducedCustomer(
            event("2026-03-01", trial(until: "2026-03-08", regularPlan: nil)),
            toBen,
            users: [ada: UserRecord(trial: spent)]
        )
        #expect(customer.subscription(of: ben)?.plan == "trial")
        #expect(customer.subscription(of: ben)?.startedAt == day("2026-01-01"))
        #expect(customer.subscription(of: ben)?.expiresAt == day("2026-01-04"))
    }

    /// Whatever the order in which a dictionary of their names is read.
    @Test("The first trial of those that ended is shown, and of those that began alike the first to end")
    func firstOfMany() {
        for number in 0..<8 {
            let customer = ReducedCustomer(
                event("2026-02-01", trial("A\(number)", until: "2026-02-04"), trial("B\(number)", until: "2026-02-05")),
                event("2026-02-02", trial("C\(number)", until: "2026-02-03")),
                event("2026-03-01", trial(until: "2026-03-08", regularPlan: nil))
            )
            #expect(customer.subscription()?.startedAt == day("2026-02-01"))
            #expect(customer.subscription()?.expiresAt == day("2026-02-04"))
        }
    }

    @Test("A second trial that another source reports under the same name shows the first one's dates")
    func twoSources() {
        for number in 0..<8 {
            let name = "T\(number)"
            let customer = ReducedCustomer(
                event("2026-03-01", trial(name, until: "2026-03-04")),
                event("2026-03-09", trial(name, until: "2026-03-12", regularPlan: nil), source: "revenuecat")
            )
            #expect(customer.subscription(of: ada, name)?.startedAt == day("2026-03-01"))
            #expect(customer.subscription(of: ada, name)?.expiresAt == day("2026-03-04"))
        }
    }
}
