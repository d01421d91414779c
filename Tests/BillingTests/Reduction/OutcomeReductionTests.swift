import TestSupport
import Testing
import Usage

@testable import Billing

@Suite("Reduction of purchases, set plans and outcomes")
struct OutcomeReductionTests {
    private let anonymousId = "sha256:aa"
    private let pack = event("2026-02-01", effect(.granted, "G", messages: 100))

    private func set(_ date: String) -> [UserID: UserRecord] {
        var record = UserRecord(declaredAt: day(date), declaredPlan: "paid", declaredAnchorDay: 9)
        record.declaredPreviousPlan = "pro"
        return [ada: record]
    }

    // MARK: One-time purchases of messages

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

    // MARK: Set plans

    @Test("Without store events, a user has the plan of an operator")
    func set() {
        let customer = ReducedCustomer(event("2026-02-20", effect(.cancelled, plan: "free")), users: set("2026-02-15"))
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

    // MARK: Outcomes

    @Test("An event is waiting if one effect waits and another has no effect")
    func waitingBesideIgnored() {
        let nothing = effect(.granted, "G", messages: 0)
        #expect(ReducedCustomer(event("2026-02-01", effect(.cancelled), nothing)).outcome("2026-02-01") == .waiting)
        let transfer = BillingEffect.transferred(from: ["\(ben)"], to: ["\(ada)"])
        #expect(ReducedCustomer(event("2026-02-01", transfer, effect(.cancelled))).outcome("2026-02-01") == .waiting)
    }

    @Test("An event is applied if one effect is applied")
    func appliedBesideWaiting() {
        let customer = ReducedCustomer(event("2026-02-01", effect(.cancelled, "T1"), effect(.purchased, plan: "paid")))
        #expect(customer.outcome("2026-02-01") == .applied)
        #expect(customer.subscription(of: ada, "T1") == nil)
    }
}
