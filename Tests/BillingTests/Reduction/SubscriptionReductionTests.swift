import TestSupport
import Testing
import Usage

@testable import Billing

@Suite("Reduction of a subscription's events")
struct SubscriptionReductionTests {
    private let purchase = event(
        "2026-01-31",
        effect(.purchased, plan: "paid", product: "monthly", until: "2026-02-28")
    )

    @Test("A purchase starts the subscription on its plan, and its day is the anchor day")
    func purchased() {
        let customer = ReducedCustomer(purchase)
        let subscription = customer.subscription()
        #expect(subscription?.plan == "paid")
        #expect(subscription?.product == "monthly")
        #expect(subscription?.startedAt == day("2026-01-31"))
        #expect(subscription?.expiresAt == day("2026-02-28"))
        #expect(subscription?.environment == "production")
        #expect(subscription?.anchorDay == 31)
        #expect(customer.state.users[ada]?.anchorDay == 31)
        #expect(customer.outcome("2026-01-31") == .applied)
    }

    @Test("A renewal whose purchase is missing gives an anchor day only with the start")
    func renewalAlone() {
        let renewal = event("2026-02-15", effect(.renewed, plan: "paid", until: "2026-03-15"))
        let dated = event("2026-02-15", effect(.renewed, plan: "paid", started: "2026-01-20", until: "2026-03-15"))
        #expect(ReducedCustomer(renewal).subscription()?.startedAt == day("2026-02-15"))
        #expect(ReducedCustomer(renewal).subscription()?.anchorDay == nil)
        #expect(ReducedCustomer(dated).subscription()?.startedAt == day("2026-01-20"))
        #expect(ReducedCustomer(dated).subscription()?.anchorDay == 20)
    }

    @Test("Before the first payment, the first end in an event counts")
    func endBeforePayment() {
        let customer = ReducedCustomer(
            event("2026-02-01", effect(.revoked, plan: "paid", until: "2026-02-20")),
            event("2026-02-02", effect(.reinstated, until: "2026-03-20"))
        )
        #expect(customer.subscription()?.expiresAt == day("2026-02-20"))
        #expect(customer.subscription()?.startedAt == nil)
    }

    @Test("A grace period ends at the given date, also after a second event without a date")
    func grace() {
        let customer = ReducedCustomer(
            purchase,
            event("2026-02-28", effect(.gracePeriod, graceUntil: "2026-03-06")),
            event("2026-03-01", effect(.gracePeriod))
        )
        #expect(customer.subscription()?.graceUntil == day("2026-03-06"))
        #expect(customer.subscription()?.billingIssueAt == day("2026-02-28"))
    }

    @Test("An expiry ends the subscription and the issue, unless a later end is known")
    func expired() {
        let issue = event("2026-02-20", effect(.gracePeriod, graceUntil: "2026-03-16"))
        let customer = ReducedCustomer(purchase, issue, event("2026-03-16", effect(.expired)))
        #expect(customer.subscription()?.expiresAt == day("2026-03-16"))
        #expect(customer.subscription()?.graceUntil == nil)
        #expect(customer.subscription()?.billingIssueAt == nil)
        let late = ReducedCustomer(purchase, issue, event("2026-02-21", effect(.expired)))
        #expect(late.subscription()?.expiresAt == day("2026-02-28"))
        #expect(late.subscription()?.billingIssueAt == day("2026-02-20"))
        #expect(late.subscription()?.eventAt == day("2026-02-21"))
    }

    @Test("A period that nobody has paid for undoes no refund, and a paid one does")
    func unpaid() {
        func renewed(isUnpaid: Bool) -> StoreSubscription? {
            var renewal = effect(.renewed, until: "2026-03-31")
            renewal.isUnpaid = isUnpaid
            let refund = event("2026-02-03", effect(.revoked))
            return ReducedCustomer(purchase, refund, event("2026-02-28", renewal)).subscription()
        }
        #expect(renewed(isUnpaid: true)?.revokedAt == day("2026-02-03"))
        #expect(renewed(isUnpaid: true)?.expiresAt == day("2026-03-31"))
        #expect(renewed(isUnpaid: false)?.revokedAt == nil)
    }

    @Test("What is never renewed, such as a gift, can end before its end", arguments: [false, nil])
    func endOfGift(renews: Bool?) {
        var gift = effect(.purchased, plan: "paid", until: "2026-02-28")
        gift.sale = BillingEffect.Sale(renews: renews)
        let end = event("2026-02-10", effect(.expired, until: "2026-02-10"))
        let customer = ReducedCustomer(event("2026-01-31", gift), end)
        #expect(customer.subscription()?.expiresAt == day(renews == false ? "2026-02-10" : "2026-02-28"))
    }

    @Test("A later end in a cancellation, or in its reversal, is that of a renewal whose event was lost")
    func lostRenewal() {
        let (ended, ends) = (event("2026-02-28", effect(.expired, until: "2026-02-28")), "2026-03-31")
        func subscription(_ events: RecordedEvent...) -> StoreSubscription? {
            ReducedCustomer([purchase] + events).subscription()
        }
        for kind in [BillingEffect.Kind.cancelled, .uncancelled] {
            let report = event("2026-03-10", effect(kind, until: ends))
            let uncancelled = event("2026-03-11", effect(.uncancelled, until: ends))
            #expect(subscription(ended, report, uncancelled)?.renews == nil)
            let late = event("2026-03-12", effect(.expired, until: "2026-02-28"))
            #expect(subscription(ended, report, late)?.expiresAt == day(ends))
            let issue = event("2026-02-28", effect(.gracePeriod, graceUntil: "2026-03-16"))
            #expect(subscription(issue, report)?.billingIssueAt == nil)
            let inGrace = event("2026-03-10", effect(kind, until: "2026-03-16"))
            #expect(subscription(issue, inGrace)?.billingIssueAt == day("2026-02-28"))
        }
        #expect(subscription(ended, event("2026-03-10", effect(.uncancelled, until: "2026-02-28")))?.renews == false)
    }

    @Test("Another day of a cancellation moves the end only within a period that was paid")
    func dayOfCancellation() {
        func end(_ days: String..., start: String) -> Instant? {
            let changes = days.enumerated().map { index, until in
                var change = effect(.productChanged, plan: "paid", started: start, until: until)
                change.isUnpaid = true
                return event("2026-02-0\(3 + index)", change)
            }
            return ReducedCustomer([purchase] + changes).subscription()?.expiresAt
        }
        #expect(end("2026-02-20", start: "2026-01-31") == day("2026-02-20"))
        #expect(end("2026-02-20", "2026-02-28", start: "2026-01-31") == day("2026-02-28"), "taken back")
        #expect(end("2026-03-20", start: "2026-02-28") == day("2026-02-28"))
    }

    @Test("A pause of the collection neither extends the paid time nor ends it")
    func paused() {
        func end(_ until: String) -> Instant? {
            var pause = effect(.productChanged, plan: "paid", until: until)
            pause.isUnpaid = true
            return ReducedCustomer(purchase, event("2026-02-03", pause)).subscription()?.expiresAt
        }
        #expect(end("2026-03-31") == day("2026-02-28"), "a period that began during the pause")
        #expect(end("2026-02-20") == day("2026-02-20"))
    }

    @Test("The late payment of an earlier period keeps a cancellation, that of a later one ends it")
    func cancelledBeforePayment() {
        func renewed(from start: String?) -> Instant? {
            ReducedCustomer(
                purchase,
                event("2026-03-02", effect(.cancelled)),
                event("2026-03-03", effect(.renewed, started: start, until: "2026-03-31"))
            ).subscription()?.unsubscribedAt
        }
        #expect(renewed(from: "2026-03-01") == day("2026-03-02"))
        #expect(renewed(from: "2026-03-02") == nil)
        #expect(renewed(from: nil) == nil)
        let bought = event("2026-03-03", effect(.purchased, plan: "paid", started: "2026-03-01", until: "2026-03-31"))
        let customer = ReducedCustomer(purchase, event("2026-03-02", effect(.cancelled)), bought)
        #expect(customer.subscription()?.unsubscribedAt == nil)
    }

    @Test(
        "A payment that adds no time, such as that of a replaced item, begins no period",
        arguments: [("2026-04-05", "2026-03-05"), ("2026-04-20", "2026-03-20")]
    )
    func replacedItem(end: String, start: String) {
        let customer = ReducedCustomer(
            event("2026-03-05", effect(.purchased, plan: "paid", started: "2026-03-05", until: "2026-04-05")),
            event("2026-03-20", effect(.renewed, plan: "pro", started: "2026-03-20", until: end))
        )
        let period = customer.subscription()?.periods?.period(at: day("2026-03-21"), until: day(end))
        #expect(period?.start == day(start) && period?.end == day(end))
        #expect(customer.subscription()?.plan == "pro")
    }

    @Test("A trial that is extended stays one period")
    func longerTrial() {
        func dated(_ kind: BillingEffect.Kind, until end: String) -> BillingEffect {
            var trial = effect(kind, plan: "paid", started: kind == .purchased ? "2026-03-01" : nil, until: end)
            trial.period = .trial
            return trial
        }
        let customer = ReducedCustomer(
            event("2026-03-01", dated(.purchased, until: "2026-03-08")),
            event("2026-03-05", dated(.extended, until: "2026-03-15"), dated(.productChanged, until: "2026-03-15"))
        )
        let period = customer.subscription()?.periods?.period(at: day("2026-03-10"), until: day("2026-03-15"))
        #expect(period?.start == day("2026-03-01") && period?.end == day("2026-03-15"))
    }

    @Test(
        "An extension raises the end, but gives none to what never ends",
        arguments: [BillingEffect.Kind.extended, .temporary]
    )
    func extended(kind: BillingEffect.Kind) {
        let longer = ReducedCustomer(purchase, event("2026-02-03", effect(kind, until: "2026-03-05")))
        #expect(longer.subscription()?.expiresAt == day("2026-03-05"))
        let shorter = ReducedCustomer(purchase, event("2026-02-03", effect(kind, until: "2026-02-05")))
        #expect(shorter.subscription()?.expiresAt == day("2026-02-28"))
        let endless = ReducedCustomer(
            event("2026-01-31", effect(.purchased, plan: "paid")),
            event("2026-02-03", effect(kind, until: "2026-03-05"))
        )
        #expect(endless.subscription()?.expiresAt == nil)
    }

    @Test("A downgrade takes effect with the renewal, unless it is reversed before")
    func downgrade() {
        let bought = event("2026-01-31", effect(.purchased, plan: "pro", product: "large", until: "2026-02-28"))
        let change = event("2026-02-10", effect(.productChanged, nextPlan: "paid", nextProduct: "monthly"))
        let renewal = event("2026-02-28", effect(.renewed, until: "2026-03-31"))
        let pending = ReducedCustomer(bought, change)
        #expect(pending.subscription()?.plan == "pro")
        #expect(pending.subscription()?.nextPlan == "paid")
        #expect(pending.subscription()?.nextProduct == "monthly")
        let renewed = ReducedCustomer(bought, change, renewal)
        #expect(renewed.subscription()?.plan == "paid")
        #expect(renewed.subscription()?.product == "monthly")
        #expect(renewed.subscription()?.nextPlan == nil)
        #expect(renewed.state.users[ada]?.previousPlan == "pro")
        let stored = ReducedCustomer(bought, change, event("2026-02-11", effect(.productChanged)), renewal)
        #expect(stored.subscription()?.plan == "pro")
        #expect(stored.subscription()?.product == "large")
    }

    @Test("A promotion is not renewed, until it is bought")
    func promotion() {
        var given = effect(.purchased, plan: "paid", until: "2026-02-28")
        given.sale = BillingEffect.Sale(renews: false)
        let first = event("2026-01-31", given)
        #expect(ReducedCustomer(first).subscription()?.renews == false)
        let bought = event("2026-02-10", effect(.purchased, plan: "paid", until: "2026-03-10"))
        #expect(ReducedCustomer(first, bought).subscription()?.renews == nil)
    }

    @Test(
        "A refund, a cancellation or an end dated up to 60 s ahead of the database's clock takes effect at once",
        arguments: [(0, true), (1, true), (60, true), (61, false)]
    )
    func ahead(seconds: Int64, isAtOnce: Bool) {
        func dated(_ change: BillingEffect) -> StoreSubscription? {
            var ahead = event("2026-02-10", change)
            ahead.receivedAt = ahead.at.advanced(bySeconds: -seconds)
            return ReducedCustomer(purchase, ahead).subscription()
        }
        let instant = day("2026-02-10").advanced(bySeconds: isAtOnce ? -seconds : 0)
        #expect(dated(effect(.revoked))?.revokedAt == instant)
        #expect(dated(effect(.cancelled))?.unsubscribedAt == instant)
        #expect(dated(effect(.renewed, until: "2026-02-10"))?.expiresAt == day("2026-02-10"))
        var end = event("2026-02-10", effect(.renewed, until: "2026-02-10"), effect(.expired, until: "2026-02-10"))
        end.receivedAt = end.at.advanced(bySeconds: -seconds)
        #expect(ReducedCustomer(purchase, end).subscription()?.expiresAt == instant)
    }

    @Test("Two sources that report one transaction report one subscription")
    func twoSources() {
        let customer = ReducedCustomer(
            purchase,
            event("2026-02-28", effect(.renewed, until: "2026-03-31"), source: "revenuecat")
        )
        #expect(customer.state.subscriptions[ada]?.count == 1)
        #expect(customer.subscription()?.plan == "paid")
        #expect(customer.subscription()?.expiresAt == day("2026-03-31"))
    }
}
