import TestSupport
import Testing
import Usage

@testable import Billing

/// Unicode has two spellings of "é". Swift's strings are equal, the rows in the database are not.
@Suite("Reduction of ids that differ only by Unicode normalization")
struct ExactIdTests {
    private let composed = "\u{E9}"
    private let decomposed = "e\u{301}"

    private func state(_ events: RecordedEvent...) -> CustomerState {
        CustomerReducer.reduce(CustomerHistory(events: events, plans: CustomerHistories.plans), at: day("2026-12-31"))
    }

    private func purchase(_ transaction: String, by user: UserID) -> RecordedEvent {
        event("2026-02-01", by: ["\(user)"], effect(.purchased, transaction, plan: "paid", until: "2027-03-01"))
    }

    @Test("A refund of one transaction does not revoke the other, of another user or of the same one")
    func refunds() {
        for other in [ben, ada] {
            var second = purchase(decomposed, by: other)
            second.key.id = "second"
            let state = state(
                purchase(composed, by: ada),
                second,
                event("2026-02-10", by: ["\(ada)"], effect(.revoked, composed))
            )
            let all = state.subscriptions.values.joined()
            #expect(all.count == 2)
            for subscription in all {
                let isRefunded = ExactText(subscription.transaction) == ExactText(composed)
                #expect((subscription.revokedAt != nil) == isRefunded)
            }
            #expect(state.results.values.allSatisfy { $0.outcome == .applied })
        }
    }

    @Test("Two such events are two")
    func events() {
        var (first, second) = (purchase("T1", by: ada), purchase("T2", by: ada))
        (first.key.id, second.key.id) = (composed, decomposed)
        let state = state(first, second)
        #expect(state.results.count == 2)
        #expect(state.subscriptions[ada]?.count == 2)
    }

    @Test("Two such purchases of messages are granted each, and refunded each")
    func purchasesOfMessages() {
        func bought(_ transaction: String, _ id: String) -> RecordedEvent {
            var event = event("2026-02-01", effect(.granted, transaction, messages: 50))
            event.key.id = id
            return event
        }
        let state = state(
            bought(composed, "1"),
            bought(decomposed, "2"),
            event("2026-02-10", effect(.revoked, decomposed))
        )
        #expect(state.purchases.map(\.isRefunded).sorted { !$0 && $1 } == [false, true])
        #expect(state.purchases.first(where: \.isRefunded).map { Array($0.transaction.utf8) } == Array(decomposed.utf8))
    }

    @Test("Two such products have a plan each")
    func products() throws {
        let plans = [ExactText(composed): "paid", ExactText(decomposed): "pro"]
        let mapping = ProductMapping(products: plans.mapValues { ProductMapping.Target(plan: $0) })
        for (product, plan) in [(composed, "paid"), (decomposed, "pro")] {
            let bought = effect(.purchased, product: product, until: "2027-01-01")
            let resolved = bought.resolved(by: mapping, at: day("2026-02-01"))
            #expect(try resolved.get().plan == plan)
        }
    }

    @Test("Two such transactions are two names of the customer")
    func names() {
        let event = BillingEvent(
            source: BillingEvent.Source(rawValue: "chargebee"),
            id: "1",
            type: "purchased",
            at: day("2026-02-01"),
            effects: [effect(.purchased, composed), effect(.purchased, decomposed), effect(.purchased, composed)],
            payload: .null
        )
        #expect(event.customerNames.count == 2)
    }
}
