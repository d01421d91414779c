import TestSupport
import Testing
import Usage

/// What a subscription must say at one instant.
private struct Moment: CustomTestStringConvertible {
    var instant: Instant
    var state: SubscriptionState
    var denialReason: DenialReason?

    init(_ instant: Instant, _ state: SubscriptionState, _ denialReason: DenialReason? = nil) {
        self.instant = instant
        self.state = state
        self.denialReason = denialReason
    }

    var testDescription: String { "\(state) at \(instant)" }
}

private let start = at("2026-11-01T08:00:00Z")
private let expiry = at("2026-12-01T08:00:00Z")
private let graceEnd = at("2026-12-04T08:00:00Z")
private let refund = at("2026-11-20T08:00:00Z")
private let sixteenDaysAfterExpiry = at("2026-12-17T08:00:00Z")
private let trialEnd = at("2026-11-04T08:00:00Z")
private let farFuture = at("9999-12-31")

@Suite("A subscription")
struct SubscriptionTests {
    @Test("that is active has access until exactly its expiry, or for ever")
    func active() {
        expect(
            Subscription(plan: .paid, expiresAt: expiry),
            [
                Moment(start, .active), Moment(expiry.justBefore, .active), Moment(expiry, .expired, .expired),
                Moment(farFuture, .expired, .expired),
            ]
        )
        expect(Subscription(plan: .paid), [Moment(start, .active), Moment(farFuture, .active)])
        // The date of a grace that was overcome means nothing.
        expect(
            Subscription(plan: .paid, expiresAt: expiry, graceUntil: graceEnd),
            [
                Moment(expiry.justBefore, .active), Moment(expiry, .expired, .expired),
            ]
        )
    }

    @Test("that was cancelled keeps access until exactly its expiry")
    func cancelled() {
        expect(
            Subscription(plan: .paid, expiresAt: expiry, unsubscribedAt: start),
            [
                Moment(start, .cancelled), Moment(expiry.justBefore, .cancelled), Moment(expiry, .expired, .expired),
            ]
        )
    }

    @Test("with a billing issue keeps access until exactly the end of the grace that the store gave")
    func graceGiven() {
        expect(
            Subscription(plan: .paid, expiresAt: expiry, graceUntil: graceEnd, hasBillingIssue: true),
            [
                Moment(start, .gracePeriod), Moment(expiry, .gracePeriod), Moment(graceEnd.justBefore, .gracePeriod),
                Moment(graceEnd, .billingRetry, .billingRetry), Moment(farFuture, .billingRetry, .billingRetry),
            ]
        )
        expect(
            Subscription(plan: .paid, graceUntil: graceEnd, hasBillingIssue: true),
            [
                Moment(graceEnd.justBefore, .gracePeriod), Moment(graceEnd, .billingRetry, .billingRetry),
            ]
        )
    }

    @Test("with a billing issue and no date of its grace has 16 days of it after the expiry")
    func graceFallback() {
        expect(
            Subscription(plan: .paid, expiresAt: expiry, hasBillingIssue: true),
            [
                Moment(expiry, .gracePeriod), Moment(sixteenDaysAfterExpiry.justBefore, .gracePeriod),
                Moment(sixteenDaysAfterExpiry, .billingRetry, .billingRetry),
            ]
        )
    }

    @Test("with a billing issue and no date at all has no grace")
    func noGrace() {
        expect(
            Subscription(plan: .paid, hasBillingIssue: true),
            [
                Moment(at("2000-01-01"), .billingRetry, .billingRetry), Moment(start, .billingRetry, .billingRetry),
            ]
        )
    }

    @Test("whose grace ends before what was paid for keeps access for the paid time")
    func graceShorterThanPaidTime() {
        expect(
            Subscription(plan: .paid, expiresAt: graceEnd, graceUntil: expiry, hasBillingIssue: true),
            [
                Moment(expiry, .gracePeriod), Moment(graceEnd.justBefore, .gracePeriod),
                Moment(graceEnd, .billingRetry, .billingRetry),
            ]
        )
    }

    @Test("with a billing issue that was also cancelled counts as a billing issue")
    func billingIssueBeforeCancellation() {
        let both = Subscription(
            plan: .paid,
            expiresAt: expiry,
            graceUntil: graceEnd,
            hasBillingIssue: true,
            unsubscribedAt: start
        )
        expect(
            both,
            [
                Moment(start, .gracePeriod), Moment(expiry, .gracePeriod),
                Moment(graceEnd, .billingRetry, .billingRetry),
            ]
        )
    }

    @Test(
        "that was revoked has no access from exactly then on, whatever else holds",
        arguments: [
            (Subscription(plan: .paid), .active),
            (Subscription(plan: .paid, unsubscribedAt: start), .cancelled),
            (Subscription(plan: .paid, graceUntil: graceEnd, hasBillingIssue: true), .gracePeriod),
            (Subscription(plan: .trial, startedAt: start, expiresAt: graceEnd), .trial),
            (Subscription(plan: .free), .free),
        ] as [(Subscription, SubscriptionState)]
    )
    func revoked(subscription: Subscription, before: SubscriptionState) {
        var revoked = subscription
        revoked.revokedAt = refund
        expect(
            revoked,
            [
                Moment(refund.justBefore, before), Moment(refund, .revoked, .revoked),
                Moment(farFuture, .revoked, .revoked),
            ]
        )
    }

    @Test("to a trial has access for the plan's days of 24 hours, and stays a trial when they are over")
    func trial() {
        expect(
            Subscription(plan: .trial, startedAt: start),
            [
                Moment(start, .trial), Moment(trialEnd.justBefore, .trial), Moment(trialEnd, .trial, .trialEnded),
                Moment(farFuture, .trial, .trialEnded),
            ]
        )
        let week = Plan(name: "week", label: "Week", cycle: .trial(days: 7), allowance: 10)
        expect(
            Subscription(plan: week, startedAt: start),
            [
                Moment(at("2026-11-08T08:00:00Z").justBefore, .trial),
                Moment(at("2026-11-08T08:00:00Z"), .trial, .trialEnded),
            ]
        )
    }

    @Test(
        "to a trial ends when it was said to end, later or earlier than the plan's days",
        arguments: [
            expiry, at("2026-11-02T08:00:00Z"),
        ]
    )
    func trialWithExplicitEnd(end: Instant) {
        expect(
            Subscription(plan: .trial, startedAt: start, expiresAt: end),
            [
                Moment(end.justBefore, .trial), Moment(end, .trial, .trialEnded),
            ]
        )
    }

    @Test("to a trial that was declared over is expired from its end on")
    func trialDeclaredOver() {
        expect(
            Subscription(plan: .trial, startedAt: start, expiresAt: refund, unsubscribedAt: refund),
            [
                Moment(refund.justBefore, .trial), Moment(refund, .expired, .expired),
            ]
        )
    }

    @Test("to a trial that was cancelled while it ran ends as a trial does")
    func trialCancelled() {
        expect(
            Subscription(plan: .trial, startedAt: start, unsubscribedAt: at("2026-11-02T08:00:00Z")),
            [
                Moment(at("2026-11-02T08:00:00Z"), .trial), Moment(trialEnd.justBefore, .trial),
                Moment(trialEnd, .trial, .trialEnded),
            ]
        )
    }

    @Test("to a plan for life has access, unless it was said to end")
    func lifetime() {
        expect(Subscription(plan: .free), [Moment(start, .free), Moment(farFuture, .free)])
        expect(
            Subscription(plan: .free, expiresAt: expiry),
            [
                Moment(expiry.justBefore, .free), Moment(expiry, .expired, .expired),
            ]
        )
    }

    @Test(
        "tells when it will change by time alone",
        arguments: [
            (Subscription(plan: .paid), []),
            (Subscription(plan: .paid, expiresAt: expiry), [expiry]),
            (Subscription(plan: .paid, expiresAt: expiry, graceUntil: graceEnd), [expiry]),
            (Subscription(plan: .paid, expiresAt: expiry, unsubscribedAt: start), [expiry]),
            (Subscription(plan: .paid, expiresAt: expiry, graceUntil: graceEnd, hasBillingIssue: true), [graceEnd]),
            (Subscription(plan: .paid, expiresAt: expiry, hasBillingIssue: true), [sixteenDaysAfterExpiry]),
            (Subscription(plan: .paid, hasBillingIssue: true), []),
            (Subscription(plan: .paid, expiresAt: refund, revokedAt: expiry), [refund, expiry]),
            // The expiry of what was taken away already changes nothing.
            (Subscription(plan: .paid, expiresAt: expiry, revokedAt: refund), [refund]),
            (Subscription(plan: .trial, startedAt: start), [trialEnd]),
            (Subscription(plan: .trial, startedAt: start, expiresAt: expiry), [expiry]),
            (Subscription(plan: .free), []),
            (Subscription(plan: .free, expiresAt: expiry), [expiry]),
        ]
    )
    func changes(subscription: Subscription, expected: [Instant]) {
        var found: [Instant] = []
        var instant = start.justBefore
        while let next = subscription.changes(after: instant), found.count < 5 {
            #expect(subscription.changes(after: next.justBefore) == next)
            found.append(next)
            instant = next
        }
        #expect(found == expected)
    }

    private func expect(_ subscription: Subscription, _ moments: [Moment]) {
        for moment in moments {
            #expect(subscription.state(at: moment.instant) == moment.state, "\(moment.testDescription)")
            #expect(subscription.denialReason(at: moment.instant) == moment.denialReason, "\(moment.testDescription)")
        }
    }
}
