import TestSupport
import Testing
import Usage

@testable import Billing

@Suite("Reduction of trials")
struct TrialReductionTests {
    private let spent = UserRecord.Trial(startedAt: day("2026-01-01"), endsAt: day("2026-01-04"))
    private let toBen = event("2026-03-05", by: [], .transferred(from: ["\(ada)"], to: ["\(ben)"]))

    @Test("A first trial has the dates of the store")
    func first() {
        let customer = ReducedCustomer(event("2026-03-01", trial(until: "2026-03-08")))
        #expect(customer.subscription()?.plan == "trial")
        #expect(customer.subscription()?.startedAt == day("2026-03-01"))
        #expect(customer.subscription()?.expiresAt == day("2026-03-08"))
        #expect(customer.state.users[ada]?.trialStartedAt == day("2026-03-01"))
    }

    @Test("A trial bought after a trial by messages has the product's regular plan")
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

    @Test("A trial by messages ends when it is used up, and not before it began")
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

    @Test("A trial bought after an ended one has the product's regular plan, also its renewals")
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

    @Test("A trial bought while another one runs is a trial")
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

    @Test("A second trial of a product without a regular plan has the dates of the first")
    func withoutPlan() {
        let customer = ReducedCustomer(
            event("2026-03-01", trial(until: "2026-03-08", regularPlan: nil)),
            users: [ada: UserRecord(trial: spent)]
        )
        #expect(customer.subscription()?.plan == "trial")
        #expect(customer.subscription()?.startedAt == day("2026-01-01"))
        #expect(customer.subscription()?.expiresAt == day("2026-01-04"))
    }

    @Test("A trial transferred to a user whose own trial has ended has ended too")
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

    @Test("A trial transferred to a user without one continues, and both users have had it")
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

    @Test("A user without events keeps only what an operator declared")
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

    @Test("A second trial without a regular plan has ended for its new owner too")
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

    /// The result must not depend on the iteration order of a dictionary.
    @Test("Of several ended trials the first counts; of those that began together the first to end")
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

    @Test("A second trial that another source reports under the same name has the dates of the first")
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
