import TestSupport
import Testing
import Usage

@testable import Billing

@Suite("Reduction of who owns a subscription")
struct OwnershipReductionTests {
    private let somebody = "sha256:aa"
    private let other = "sha256:bb"
    private let eve = TestSupport.user(3)

    private func purchase(_ identities: String...) -> RecordedEvent {
        event("2026-02-01", by: identities, effect(.purchased, plan: "paid", until: "2026-03-01"))
    }

    @Test("An anonymous purchase waits for its user, who comes by a sign-in before or after it")
    func anonymous() {
        let anonymous = ReducedCustomer(purchase(somebody))
        #expect(anonymous.result("2026-02-01")?.problem == .unknownUser)
        #expect(anonymous.state.subscriptions.isEmpty)
        for date in ["2026-01-15", "2026-02-15"] {
            let customer = ReducedCustomer(purchase(somebody), event(date, by: [somebody, "\(ada)"]))
            #expect(customer.subscription()?.plan == "paid")
            #expect(customer.result("2026-02-01") == EventResult(outcome: .applied, problem: nil, user: ada))
            #expect(customer.outcome(date) == .ignored)
            #expect(customer.state.transfers.isEmpty)
        }
    }

    @Test("What was given to somebody who is forgotten has no effect, and no user is missing")
    func forgottenOwner() {
        let forgotten = "forgotten:" + String(repeating: "0a", count: 32)
        let customer = ReducedCustomer(
            purchase("\(ada)"),
            event("2026-02-10", by: [], .transferred(from: ["\(ada)"], to: [forgotten])),
            event("2026-02-12", by: [], effect(.cancelled))
        )
        #expect(customer.state.subscriptions.isEmpty)
        for date in ["2026-02-01", "2026-02-12"] {
            #expect(customer.result(date)?.problem == nil && customer.outcome(date) == .ignored)
        }
    }

    @Test("A digest is the user whom the newest event names beside it, in its own source")
    func newestNames() {
        let customer = ReducedCustomer(
            purchase(somebody),
            event("2026-02-15", by: [somebody, "\(ben)"]),
            event("2026-01-15", by: ["\(ada)", somebody]),
            event("2026-02-20", by: [somebody, "\(eve)"], source: "revenuecat")
        )
        #expect(customer.subscription(of: ben)?.plan == "paid")
        #expect(customer.subscription(of: ada) == nil)
        #expect(customer.subscription(of: eve) == nil)
    }

    @Test("Of one event's lists, the first that names a user beside a digest counts")
    func firstListNames() {
        let customer = ReducedCustomer(
            purchase(somebody),
            event("2026-02-15", by: [somebody, "\(ada)"], .transferred(from: [other], to: [somebody, "\(ben)"]))
        )
        #expect(customer.subscription(of: ada)?.plan == "paid")
    }

    @Test("A transfer takes the subscription along, with all of its events")
    func transferred() {
        let customer = ReducedCustomer(
            purchase("\(ada)"),
            event("2026-02-02", effect(.cancelled)),
            event("2026-02-10", by: [], .transferred(from: ["\(ada)"], to: ["\(ben)"])),
            event("2026-03-01", by: [], effect(.renewed, until: "2026-04-01"))
        )
        #expect(customer.subscription(of: ada) == nil)
        #expect(customer.subscription(of: ben)?.startedAt == day("2026-02-01"))
        #expect(customer.subscription(of: ben)?.expiresAt == day("2026-04-01"))
        #expect(customer.outcome("2026-02-10") == .applied)
        #expect(customer.result("2026-02-01")?.user == ben)
        #expect(customer.state.transfers.map(\.giver) == [ada])
        #expect(customer.state.transfers.map(\.receiver) == [ben])
    }

    @Test("A transfer takes only what was owned then: a late purchase is its buyer's")
    func purchaseAfterTransfer() {
        let transfer = event("2026-01-10", by: [], .transferred(from: ["\(ada)"], to: ["\(ben)"]))
        let customer = ReducedCustomer(purchase("\(ada)"), transfer)
        #expect(customer.subscription(of: ada)?.plan == "paid")
        #expect(customer.subscription(of: ben) == nil)
        #expect(customer.outcome("2026-01-10") == .waiting)
        let late = event("2026-01-05", effect(.purchased, "T1", plan: "pro"), received: "2026-03-01")
        #expect(ReducedCustomer(transfer, late).subscription(of: ben, "T1")?.plan == "pro")
    }

    @Test("A transfer reaches only subscriptions of its own source")
    func transferOfAnotherSource() {
        let customer = ReducedCustomer(
            purchase("\(ada)"),
            event("2026-02-10", by: [], .transferred(from: ["\(ada)"], to: ["\(ben)"]), source: "revenuecat")
        )
        #expect(customer.subscription(of: ada)?.plan == "paid")
    }

    @Test("A transfer comes after what its own event says of owners")
    func claimBeforeTransfer() {
        let customer = ReducedCustomer(
            event(
                "2026-02-01",
                .transferred(from: ["\(ada)"], to: ["\(ben)"]),
                effect(.purchased, plan: "paid", until: "2026-03-01")
            )
        )
        #expect(customer.subscription(of: ben)?.plan == "paid")
        #expect(customer.subscription(of: ada) == nil)
    }

    @Test("Events at one instant count in the order of their ids")
    func sameInstant() {
        var events = [
            event("2026-02-01", by: ["\(ada)"], effect(.purchased, plan: "paid")),
            event("2026-02-01", by: ["\(ben)"], effect(.renewed, plan: "pro")),
        ]
        #expect(ReducedCustomer(events[0], events[1]).subscription(of: ben)?.plan == "pro")
        events[1].key.id = "2026-01 before the purchase"
        #expect(ReducedCustomer(events[0], events[1]).subscription(of: ada)?.plan == "paid")
    }

    @Test("Who reports a renewal has the subscription from then on")
    func claimed() {
        let customer = ReducedCustomer(
            purchase("\(ada)"),
            event("2026-03-01", by: ["\(ben)"], effect(.renewed, until: "2026-04-01"))
        )
        #expect(customer.subscription(of: ben)?.startedAt == day("2026-02-01"))
        let transfer = customer.state.transfers.first
        #expect(transfer?.event.id == "2026-03-01 renewed")
        #expect(transfer?.giver == ada)
    }

    @Test("What is given to an unknown customer waits there")
    func givenToSomebody() {
        let transfer = event("2026-02-10", by: [], .transferred(from: ["\(ada)"], to: [somebody]))
        let lost = ReducedCustomer(purchase("\(ada)"), transfer)
        #expect(lost.state.subscriptions[ada, default: []].isEmpty)
        #expect(lost.result("2026-02-01")?.problem == .unknownUser)
        #expect(lost.outcome("2026-02-10") == .applied)
        let found = ReducedCustomer(purchase("\(ada)"), transfer, event("2026-02-11", by: ["\(ben)", somebody]))
        #expect(found.subscription(of: ben)?.plan == "paid")
        #expect(found.state.transfers.count == 1)
    }

    @Test("An alias gives all to the person that it names, and every other user's counts, once")
    func merged() {
        let alias = event("2026-02-10", by: [], .merged([somebody, "\(ben)", "\(ada)", "\(eve)", "\(ada)"]))
        let customer = ReducedCustomer(purchase("\(ada)"), alias)
        #expect(customer.subscription(of: ben)?.plan == "paid")
        #expect(customer.state.transfers.map(\.giver) == [ada, eve])
        #expect(Set(customer.state.transfers.map(\.receiver)) == [ben])
        #expect(customer.result("2026-02-10") == EventResult(outcome: .applied, problem: nil, user: ben))
        // The alias also says who the digest is.
        #expect(ReducedCustomer(purchase(somebody), alias).subscription(of: ben)?.plan == "paid")
    }

    @Test("An alias of nobody known waits")
    func mergedUnknown() {
        let customer = ReducedCustomer(event("2026-02-10", by: [], .merged([somebody, other])))
        #expect(customer.outcome("2026-02-10") == .waiting)
        #expect(customer.state.transfers.isEmpty)
    }

    @Test("An event with a problem takes no effect, but says who is who and who owns what")
    func problem() {
        let problem = BillingProblem.unmappedProduct("large")
        let customer = ReducedCustomer(
            purchase(somebody),
            event(
                "2026-02-05",
                by: [somebody, "\(ada)"],
                effect(.productChanged, plan: "pro"),
                .transferred(from: [somebody], to: ["\(ben)"]),
                problem: problem
            )
        )
        #expect(customer.subscription(of: ben)?.plan == "paid")
        #expect(customer.result("2026-02-05")?.outcome == .failed)
        #expect(customer.result("2026-02-05")?.problem == problem)
        #expect(customer.state.transfers.map(\.receiver) == [ben])
    }

    @Test("An event of more than a day ahead says nothing until then")
    func future() {
        let future = event("2026-03-03", by: ["\(ben)"], effect(.renewed, plan: "pro", until: "2026-04-01"))
        let before = ReducedCustomer(purchase("\(ada)"), future, now: "2026-03-01")
        #expect(before.subscription(of: ada)?.plan == "paid")
        #expect(before.result("2026-03-03") == EventResult(outcome: .failed, problem: .inTheFuture, user: ben))
        let after = ReducedCustomer(purchase("\(ada)"), future, now: "2026-03-02")
        #expect(after.subscription(of: ben)?.plan == "pro")
        #expect(after.outcome("2026-03-03") == .applied)
    }

    @Test("An event has all of its effects or none")
    func allOrNone() {
        let customer = ReducedCustomer(
            event("2026-02-01", by: [somebody], effect(.purchased, "T1", plan: "paid")),
            event("2026-02-02", by: [], effect(.cancelled, "T1"), effect(.renewed, plan: "pro")),
            event("2026-02-03", effect(.cancelled, plan: "paid"))
        )
        #expect(customer.result("2026-02-02")?.problem == .unknownUser)
        #expect(customer.subscription()?.plan == "paid")
    }
}
