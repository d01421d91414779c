import TestSupport
import Testing
import Usage

@testable import Billing

@Suite("Reduction of trials")
struct TrialReductionTests {
    private let spent = UserRecord.Trial(startedAt: day("2026-01-01"), endsAt: day("2026-01-04"))
    private let toBen = event("2026-03-05", by: [], .transferred(from: ["\(ada)"], to: ["\(ben)"]))

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

    /// Whatever the store's clock says: the user has no messages when the trial arrives.
    @Test("A trial that arrives after the messages of an earlier one were used up has the product's regular plan")
    func usedUp() {
        func customer(_ record: UserRecord, applied: String? = nil) -> ReducedCustomer {
            ReducedCustomer(event("2026-01-03", trial(until: "2026-01-10"), applied: applied), users: [ada: record])
        }
        #expect(customer(UserRecord(trial: spent)).subscription()?.plan == "trial")
        for usedUpAt in [day("2026-01-02"), day("2026-01-05")] {
            let arriving = customer(UserRecord(trial: spent, presentTrialUsedUpAt: usedUpAt))
            #expect(arriving.subscription()?.plan == "paid")
            #expect(arriving.state.users[ada]?.trialUsedUpAt == usedUpAt, "is recorded")
        }
        let unknownStart = customer(UserRecord(presentTrialUsedUpAt: day("2026-01-02")))
        #expect(unknownStart.subscription()?.plan == "paid", "counted by an older client, which began no trial")
    }

    @Test("Whether an earlier trial was used up is decided once, when the trial arrives")
    func decidedOnArrival() {
        func plan(recorded: String?, present: String?, applied: String?) -> String? {
            let record = UserRecord(
                trial: spent,
                trialUsedUpAt: recorded.map(day),
                presentTrialUsedUpAt: present.map(day)
            )
            let bought = event("2026-01-02", trial(until: "2026-01-10"), applied: applied)
            return ReducedCustomer(bought, users: [ada: record]).subscription()?.plan
        }
        #expect(plan(recorded: nil, present: "2026-01-03", applied: "2026-01-02") == "trial", "used up later")
        #expect(plan(recorded: "2026-01-02", present: nil, applied: "2026-01-02") == "paid", "reset later")
        #expect(plan(recorded: "2026-01-03", present: nil, applied: "2026-01-02") == "trial", "before another one")
        #expect(plan(recorded: "2026-01-01", present: nil, applied: nil) == "paid", "spent stays spent")
    }

    @Test("A trial whose store counted its messages up is spent as well, before its days are over")
    func storeTrialUsedUp() {
        let customer = ReducedCustomer(
            event("2026-02-01", trial("T1", until: "2026-02-08"), applied: "2026-02-01"),
            event("2026-02-03", trial("T2", until: "2026-02-10")),
            users: [ada: UserRecord(presentTrialUsedUpAt: day("2026-02-02"))]
        )
        #expect(customer.subscription(of: ada, "T1")?.plan == "trial")
        #expect(customer.subscription(of: ada, "T2")?.plan == "paid")
    }

    @Test("A trial transferred to a user whose messages are used up has ended, unless they were used after that")
    func transferToUsedUp() {
        func expiry(applied: String?) -> Instant? {
            var transfer = toBen
            transfer.appliedAt = applied.map(day)
            return ReducedCustomer(
                event("2026-03-01", trial(until: "2026-03-08"), applied: "2026-03-01"),
                transfer,
                users: [ben: UserRecord(presentTrialUsedUpAt: day("2026-03-04"))]
            ).subscription(of: ben)?.expiresAt
        }
        #expect(expiry(applied: nil) == day("2026-03-04"))
        #expect(expiry(applied: "2026-03-05") == day("2026-03-08"))
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
