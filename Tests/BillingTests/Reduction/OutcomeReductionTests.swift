import TestSupport
import Testing
import Usage

@testable import Billing

@Suite("Reduction of purchases, set plans and outcomes")
struct OutcomeReductionTests {
    private let anonymousId = "sha256:aa"
    private let pack = event("2026-02-01", effect(.granted, "G", messages: 100))

    private func set(_ date: String, plan: String? = "paid") -> [UserID: UserRecord] {
        [ada: UserRecord(declaredAt: day(date), declaredPlan: plan, declaredAnchorDay: 9, declaredPreviousPlan: "pro")]
    }

    // MARK: One-time purchases of messages

    @Test("Purchased messages are granted once, to the buyer in the first event")
    func granted() {
        let customer = ReducedCustomer(
            pack,
            event("2026-02-02", by: ["\(ben)"], effect(.granted, "G", messages: 50)),
            event("2026-02-03", effect(.granted, "G2", messages: 0)),
            event("2026-02-04", by: [], .transferred(from: ["\(ada)"], to: ["\(ben)"]))
        )
        let purchase = MessagePurchase(
            source: "appstore",
            transaction: "G",
            user: ada,
            at: day("2026-02-01"),
            messages: 100,
            isRefunded: false
        )
        #expect(customer.state.purchases == [purchase])
        #expect(customer.outcome("2026-02-02") == .applied)
        #expect(customer.outcome("2026-02-03") == .ignored)
    }

    @Test("The newest refund or reversal of purchased messages counts")
    func refund() {
        let refund = event("2026-02-10", by: [], effect(.revoked, "G"))
        let reversal = event("2026-02-12", by: [], effect(.reinstated, "G"))
        let refunded = ReducedCustomer(pack, refund)
        #expect(refunded.state.purchases.map(\.isRefunded) == [true])
        #expect(refunded.result("2026-02-10") == EventResult(outcome: .applied, problem: nil, user: ada))
        #expect(ReducedCustomer(pack, refund, reversal).state.purchases.map(\.isRefunded) == [false])
        let failed = event("2026-02-12", by: [], effect(.reinstated, "G"), problem: .malformed("no date"))
        #expect(ReducedCustomer(pack, refund, failed).state.purchases.map(\.isRefunded) == [true])
    }

    @Test("A refund before its purchase arrived waits for a user, then counts")
    func refundFirst() {
        let refund = event("2026-01-10", by: [], effect(.revoked, "G"))
        #expect(ReducedCustomer(refund).result("2026-01-10")?.problem == .unknownUser)
        #expect(ReducedCustomer(refund, pack).state.purchases.map(\.isRefunded) == [true])
        #expect(ReducedCustomer(refund, pack).outcome("2026-01-10") == .applied)
    }

    @Test(
        "A refund of a sale of which nothing is known is ignored, until its purchase arrives",
        arguments: [true, false]
    )
    func refundOfSale(namesBuyer: Bool) {
        var refunded = effect(.revoked, "G")
        refunded.quantity = 1
        let refund = event("2026-02-10", by: namesBuyer ? ["\(ada)"] : [], refunded)
        #expect(ReducedCustomer(refund).outcome("2026-02-10") == .ignored)
        #expect(ReducedCustomer(refund).result("2026-02-10")?.problem == nil)
        #expect(ReducedCustomer(refund, pack).state.purchases.map(\.isRefunded) == [true])
        let pass = event("2026-02-01", effect(.purchased, "G", plan: "paid"))
        #expect(ReducedCustomer(refund, pass).subscription(of: ada, "G")?.revokedAt == day("2026-02-10"))
    }

    @Test("Messages are granted although their event also refunds a purchase of a later event")
    func purchaseBesideRefund() {
        let both = event("2026-01-10", by: [], effect(.granted, "T", messages: 50), effect(.reinstated, "G"))
        let owner = event("2026-02-03", by: ["\(ben)"], effect(.purchased, "T"))
        let customer = ReducedCustomer(both, pack, owner)
        #expect(customer.outcome("2026-01-10") == .applied)
        #expect(customer.state.purchases.map(\.transaction) == ["T", "G"])
        #expect(customer.state.purchases.map(\.user) == [ben, ada])
        #expect(ReducedCustomer(both, owner).state.purchases.isEmpty, "as long as G is not bought")
    }

    @Test("A refund counts together with another effect of its event on the same purchase")
    func refundInOneEvent() {
        let customer = ReducedCustomer(
            event("2026-02-01", effect(.revoked, "G"), effect(.granted, "G", messages: 100))
        )
        #expect(customer.state.purchases.map(\.isRefunded) == [true])
    }

    @Test("A refund of purchased messages counts although a plan was set since")
    func refundAfterSetPlan() {
        let customer = ReducedCustomer(
            pack,
            event("2026-02-10", by: [], effect(.revoked, "G")),
            users: set("2026-03-01")
        )
        #expect(customer.state.purchases.map(\.isRefunded) == [true])
        #expect(customer.outcome("2026-02-01") == .applied)
        #expect(customer.outcome("2026-02-10") == .applied)
    }

    @Test("Messages of an unknown buyer wait for a user")
    func unknownBuyer() {
        let anonymous = event("2026-02-01", by: [anonymousId], effect(.granted, "G", messages: 100))
        #expect(ReducedCustomer(anonymous).result("2026-02-01")?.problem == .unknownUser)
        #expect(ReducedCustomer(anonymous).state.purchases.isEmpty)
        let identified = ReducedCustomer(anonymous, event("2026-03-01", by: ["\(ben)", anonymousId]))
        #expect(identified.state.purchases.map(\.user) == [ben])
    }

    @Test("An event that fails grants no messages")
    func failedGrant() {
        let customer = ReducedCustomer(
            event("2026-02-02", by: [anonymousId], effect(.purchased, plan: "paid")),
            event("2026-02-01", effect(.granted, "G", messages: 100), effect(.cancelled))
        )
        #expect(customer.outcome("2026-02-01") == .failed)
        #expect(customer.state.purchases.isEmpty)
    }

    // MARK: Set plans

    @Test("Without store events, a user has the plan of an operator")
    func set() {
        let customer = ReducedCustomer(
            event("2026-02-20", effect(.cancelled, plan: "free")),
            users: set("2026-02-15")
        )
        #expect(customer.state.users[ada] == UserState(anchorDay: 9, previousPlan: "pro", trialStartedAt: nil))
    }

    @Test("Events that happened or arrived before an operator set a plan are outdated")
    func outdated() {
        func outcome(_ date: String, received: String) -> EventResult.Outcome? {
            let purchase = event(date, effect(.purchased, plan: "paid"), received: received)
            return ReducedCustomer(purchase, users: set("2026-02-15")).outcome(date)
        }
        #expect(outcome("2026-02-14", received: "2026-02-14") == .outdated)
        #expect(outcome("2026-02-14", received: "2026-02-16") == .outdated)
        #expect(outcome("2026-02-16", received: "2026-02-14") == .outdated)
        #expect(outcome("2026-02-15", received: "2026-02-15") == .applied)
    }

    @Test("A plan that differs from the set one makes it the previous plan")
    func afterSetPlan() {
        let purchase = event("2026-02-20", effect(.purchased, plan: "pro"))
        let customer = ReducedCustomer(purchase, users: set("2026-02-15"))
        #expect(customer.state.users[ada] == UserState(anchorDay: 20, previousPlan: "paid", trialStartedAt: nil))
        let alike = event("2026-02-20", effect(.purchased, plan: "paid"))
        #expect(ReducedCustomer(alike, users: set("2026-02-15")).state.users[ada]?.previousPlan == "pro")
        #expect(ReducedCustomer(alike, users: set("2026-02-15", plan: nil)).state.users[ada]?.previousPlan == "pro")
    }

    @Test("A subscription transferred since then counts with its earlier events")
    func transferPastSetPlan() {
        let purchase = event("2026-02-01", by: ["\(ben)"], effect(.purchased, plan: "pro", until: "2026-04-01"))
        func customer(_ date: String) -> ReducedCustomer {
            let transfer = event(date, by: [], .transferred(from: ["\(ben)"], to: ["\(ada)"]))
            return ReducedCustomer(purchase, transfer, users: set("2026-02-15"))
        }
        #expect(customer("2026-02-20").subscription()?.plan == "pro")
        #expect(customer("2026-02-20").outcome("2026-02-01") == .applied)
        #expect(customer("2026-02-10").subscription() == nil)
        #expect(customer("2026-02-10").outcome("2026-02-01") == .outdated)
    }

    // MARK: Outcomes

    @Test("An event without effects is ignored, and has the user that it names")
    func ignored() {
        let customer = ReducedCustomer(event("2026-02-01"))
        #expect(customer.result("2026-02-01") == EventResult(outcome: .ignored, problem: nil, user: ada))
    }

    @Test("An event is waiting if one effect waits and another has no effect")
    func waitingBesideIgnored() {
        let nothing = effect(.granted, "G", messages: 0)
        #expect(ReducedCustomer(event("2026-02-01", effect(.cancelled), nothing)).outcome("2026-02-01") == .waiting)
        let transfer = BillingEffect.transferred(from: ["\(ben)"], to: ["\(ada)"])
        #expect(ReducedCustomer(event("2026-02-01", transfer, effect(.cancelled))).outcome("2026-02-01") == .waiting)
    }

    @Test("An event is applied if one effect is applied")
    func appliedBesideWaiting() {
        let customer = ReducedCustomer(
            event("2026-02-01", effect(.cancelled, "T1"), effect(.purchased, plan: "paid"))
        )
        #expect(customer.outcome("2026-02-01") == .applied)
        #expect(customer.subscription(of: ada, "T1") == nil)
    }

    @Test("A transfer has its receiver as user, other effects the owner")
    func users() {
        let customer = ReducedCustomer(
            event("2026-02-01", effect(.purchased, plan: "paid")),
            event("2026-02-02", by: ["\(ada)"], .transferred(from: ["\(ada)"], to: ["\(ben)"])),
            event("2026-02-03", by: [], effect(.cancelled))
        )
        #expect(customer.result("2026-02-01")?.user == ben)
        #expect(customer.result("2026-02-02")?.user == ben)
        #expect(customer.result("2026-02-03")?.user == ben)
    }
}
