import TestSupport
import Testing
import Usage

@testable import Billing

@Suite("Reduction of ownership")
struct OwnershipReductionTests {
    private let anonymousId = "sha256:aa"
    private let other = "sha256:bb"
    private let eve = TestSupport.user(3)

    private func purchase(_ identities: String...) -> RecordedEvent {
        event("2026-02-01", by: identities, effect(.purchased, plan: "paid", until: "2026-03-01"))
    }

    @Test("An anonymous purchase waits for an event that identifies its user, earlier or later")
    func anonymous() {
        let anonymous = ReducedCustomer(purchase(anonymousId))
        #expect(anonymous.result("2026-02-01")?.problem == .unknownUser)
        #expect(anonymous.state.subscriptions.isEmpty)
        for date in ["2026-01-15", "2026-02-15"] {
            let customer = ReducedCustomer(purchase(anonymousId), event(date, by: [anonymousId, "\(ada)"]))
            #expect(customer.subscription()?.plan == "paid")
            #expect(customer.result("2026-02-01") == EventResult(outcome: .applied, problem: nil, user: ada))
            #expect(customer.outcome(date) == .ignored)
            #expect(customer.state.transfers.isEmpty)
        }
    }

    @Test("A subscription of a forgotten user has no effect, and no user is missing")
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

    @Test("A digest belongs to the user that the newest event of its source names with it")
    func newestNames() {
        let customer = ReducedCustomer(
            purchase(anonymousId),
            event("2026-02-15", by: [anonymousId, "\(ben)"]),
            event("2026-01-15", by: ["\(ada)", anonymousId]),
            event("2026-02-20", by: [anonymousId, "\(eve)"], source: "revenuecat")
        )
        #expect(customer.subscription(of: ben)?.plan == "paid")
        #expect(customer.subscription(of: ada) == nil)
        #expect(customer.subscription(of: eve) == nil)
    }

    @Test("The first list in an event that names a user with a digest counts")
    func firstListNames() {
        let customer = ReducedCustomer(
            purchase(anonymousId),
            event("2026-02-15", by: [anonymousId, "\(ada)"], .transferred(from: [other], to: [anonymousId, "\(ben)"]))
        )
        #expect(customer.subscription(of: ada)?.plan == "paid")
    }

    @Test("A transfer moves only transactions owned at that instant")
    func purchaseAfterTransfer() {
        let transfer = event("2026-01-10", by: [], .transferred(from: ["\(ada)"], to: ["\(ben)"]))
        let customer = ReducedCustomer(purchase("\(ada)"), transfer)
        #expect(customer.subscription(of: ada)?.plan == "paid")
        #expect(customer.subscription(of: ben) == nil)
        #expect(customer.outcome("2026-01-10") == .waiting)
        let late = event("2026-01-05", effect(.purchased, "T1", plan: "pro"), received: "2026-03-01")
        #expect(ReducedCustomer(transfer, late).subscription(of: ben, "T1")?.plan == "pro")
    }

    @Test("A transfer moves only subscriptions of its own source")
    func transferOfAnotherSource() {
        let customer = ReducedCustomer(
            purchase("\(ada)"),
            event("2026-02-10", by: [], .transferred(from: ["\(ada)"], to: ["\(ben)"]), source: "revenuecat")
        )
        #expect(customer.subscription(of: ada)?.plan == "paid")
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

    @Test("A transfer back moves only what came from its receiver", arguments: [false, true])
    func wayBack(isThroughNames: Bool) {
        func owners(_ names: [String]) -> [UserID?] {
            var events = [
                event("2026-02-01", by: ["\(ada)"], effect(.purchased, "T1", plan: "paid")),
                event("2026-02-02", by: ["\(ben)"], effect(.purchased, "T2", plan: "paid")),
            ]
            for (index, (from, to)) in zip(names, names.dropFirst()).enumerated() {
                events.append(event("2026-02-1\(index)", by: [], .transferred(from: [from], to: [to])))
            }
            let state = ReducedCustomer(events).state
            return ["T1", "T2"].map { name in
                state.subscriptions.first { $0.value.contains { $0.transaction == name } }?.key
            }
        }
        let (first, second) = ("\(ada)", "\(ben)")
        let there = isThroughNames ? [first, anonymousId, second] : [first, second]
        let back = isThroughNames ? [other, first] : [first]
        #expect(owners(there + back) == [ada, ben])
        #expect(owners(there + back + there.dropFirst()) == [ben, ben], "and there again")
        #expect(owners([second, first]) == [ada, ada], "the first way moves everything")
    }

    @Test("A purchase by a name without a user goes to whoever signs in, also on a way back")
    func anonymousPurchaseOnWayBack() {
        let customer = ReducedCustomer(
            purchase("\(ada)"),
            event("2026-02-10", by: [], .transferred(from: ["\(ada)"], to: [anonymousId])),
            event("2026-02-11", by: [anonymousId], effect(.purchased, "T2", plan: "pro")),
            event("2026-02-12", by: [], .transferred(from: [anonymousId], to: ["\(ada)"]))
        )
        #expect(customer.subscription()?.plan == "paid")
        #expect(customer.subscription(of: ada, "T2")?.plan == "pro")
        #expect(customer.state.transfers.isEmpty)
    }

    @Test("The giver is the last user, also through names without a user, but not through a forgotten user")
    func lastUser() {
        let forgotten = "forgotten:" + String(repeating: "0a", count: 32)
        for (name, givers) in [(anonymousId, [ada]), (forgotten, [])] {
            let customer = ReducedCustomer(
                purchase("\(ada)"),
                event("2026-02-10", by: [], .transferred(from: ["\(ada)"], to: [name])),
                event("2026-02-11", by: [], .transferred(from: [name], to: ["\(ben)"]))
            )
            #expect(customer.state.transfers.map(\.giver) == givers)
            #expect(customer.state.transfers.allSatisfy { $0.receiver == ben && $0.plans == ["paid"] })
        }
    }

    @Test("Usage is raised only where the transferred subscription is what gives access")
    func giftedAccess() {
        func transfer(_ own: RecordedEvent..., record: UserRecord = UserRecord()) -> UsageTransfer? {
            let given = event("2026-02-10", by: [], .transferred(from: ["\(ada)"], to: ["\(ben)"]))
            return ReducedCustomer([purchase("\(ada)"), given] + own, users: [ben: record]).state.transfers.first
        }
        func bought(_ plan: String, _ date: String = "2026-02-02") -> RecordedEvent {
            event(date, by: ["\(ben)"], effect(.purchased, "T2", plan: plan, until: "2026-03-02"))
        }
        #expect(transfer()?.plans == ["paid"])
        #expect(transfer(bought("pro"))?.keepsOwnCount == true)
        #expect(transfer(bought("paid"))?.keepsOwnCount == true)
        #expect(transfer(bought("paid"))?.plans == [])
        #expect(transfer(bought("trial"))?.plans == ["paid"], "a smaller allowance")
        #expect(transfer(bought("paid", "2026-02-11"))?.plans == ["paid"], "bought later")
        let refund = event("2026-02-05", by: ["\(ben)"], effect(.revoked, "T2"))
        #expect(transfer(bought("paid"), refund)?.plans == ["paid"], "refunded before")
        let refundOfTransferred = event("2026-02-05", effect(.revoked))
        #expect(transfer(refundOfTransferred)?.plans == [], "nothing gives access")
        #expect(transfer(refundOfTransferred)?.keepsOwnCount == false)
        var declared = StoreSubscription(transaction: "operator")
        declared.plan = "paid"
        declared.startedAt = day("2026-02-03")
        #expect(transfer(record: UserRecord(otherSubscriptions: [declared]))?.keepsOwnCount == true)
    }

    @Test("Usage is raised while a renewal is awaited, but not after a report that there is none")
    func awaitedRenewal() {
        func plans(_ date: String, after report: BillingEffect...) -> [String]? {
            let given = event(date, by: [], .transferred(from: ["\(ada)"], to: ["\(ben)"]))
            let reports = report.map { event("2026-02-20", $0) }
            return ReducedCustomer([purchase("\(ada)"), given] + reports).state.transfers.first?.plans
        }
        #expect(plans("2026-03-01") == ["paid"])
        #expect(plans("2026-03-02") == [], "after the leeway")
        for kind in [BillingEffect.Kind.cancelled, .expired, .revoked] {
            #expect(plans("2026-03-01", after: effect(kind, until: "2026-03-01")) == [], "\(kind)")
        }
    }

    @Test("An alias of unknown customers waits")
    func mergedUnknown() {
        let customer = ReducedCustomer(event("2026-02-10", by: [], .merged([anonymousId, other])))
        #expect(customer.outcome("2026-02-10") == .waiting)
        #expect(customer.state.transfers.isEmpty)
    }

    @Test("An event with a problem has no effect, but its identities and claims count")
    func problem() {
        let problem = BillingProblem.unmappedProduct("large")
        let customer = ReducedCustomer(
            purchase(anonymousId),
            event(
                "2026-02-05",
                by: [anonymousId, "\(ada)"],
                effect(.productChanged, plan: "pro"),
                .transferred(from: [anonymousId], to: ["\(ben)"]),
                problem: problem
            )
        )
        #expect(customer.subscription(of: ben)?.plan == "paid")
        #expect(customer.result("2026-02-05")?.outcome == .failed)
        #expect(customer.result("2026-02-05")?.problem == problem)
        #expect(customer.state.transfers.map(\.receiver) == [ben])
    }

    @Test("An event has all of its effects or none")
    func allOrNone() {
        let customer = ReducedCustomer(
            event("2026-02-01", by: [anonymousId], effect(.purchased, "T1", plan: "paid")),
            event("2026-02-02", by: [], effect(.cancelled, "T1"), effect(.renewed, plan: "pro")),
            event("2026-02-03", effect(.cancelled, plan: "paid"))
        )
        #expect(customer.result("2026-02-02")?.problem == .unknownUser)
        #expect(customer.subscription()?.plan == "paid")
    }
}
