import TestSupport
import Testing
import Usage

/// The expected state of a subscription at one instant.
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

@Suite("A subscription of the reference model")
struct ModelSubscriptionTests {
    @Test("has access until its expiry, or without end")
    func active() {
        expect(
            ModelSubscription(plan: .paid, expiresAt: expiry),
            [
                Moment(start, .active), Moment(expiry.justBefore, .active), Moment(expiry, .expired, .expired),
                Moment(farFuture, .expired, .expired),
            ]
        )
        expect(ModelSubscription(plan: .paid), [Moment(start, .active), Moment(farFuture, .active)])
        // Without a billing issue the end of the grace period is ignored.
        expect(
            ModelSubscription(plan: .paid, expiresAt: expiry, graceUntil: graceEnd),
            [
                Moment(expiry.justBefore, .active), Moment(expiry, .expired, .expired),
            ]
        )
    }

    @Test("keeps access until its expiry when cancelled")
    func cancelled() {
        expect(
            ModelSubscription(plan: .paid, expiresAt: expiry, unsubscribedAt: start),
            [
                Moment(start, .cancelled), Moment(expiry.justBefore, .cancelled), Moment(expiry, .expired, .expired),
            ]
        )
    }

    @Test("keeps access until the end of the store's grace period during a billing issue")
    func graceGiven() {
        expect(
            ModelSubscription(plan: .paid, expiresAt: expiry, graceUntil: graceEnd, hasBillingIssue: true),
            [
                Moment(start, .gracePeriod), Moment(expiry, .gracePeriod), Moment(graceEnd.justBefore, .gracePeriod),
                Moment(graceEnd, .billingRetry, .billingRetry), Moment(farFuture, .billingRetry, .billingRetry),
            ]
        )
        expect(
            ModelSubscription(plan: .paid, graceUntil: graceEnd, hasBillingIssue: true),
            [
                Moment(graceEnd.justBefore, .gracePeriod), Moment(graceEnd, .billingRetry, .billingRetry),
            ]
        )
    }

    @Test("has a grace period of 16 days after its expiry if the store gives none")
    func graceFallback() {
        expect(
            ModelSubscription(plan: .paid, expiresAt: expiry, hasBillingIssue: true),
            [
                Moment(expiry, .gracePeriod), Moment(sixteenDaysAfterExpiry.justBefore, .gracePeriod),
                Moment(sixteenDaysAfterExpiry, .billingRetry, .billingRetry),
            ]
        )
    }

    @Test("has no grace period without an expiry")
    func noGrace() {
        expect(
            ModelSubscription(plan: .paid, hasBillingIssue: true),
            [
                Moment(at("2000-01-01"), .billingRetry, .billingRetry), Moment(start, .billingRetry, .billingRetry),
            ]
        )
    }

    @Test("keeps access for the paid time if the grace period is shorter")
    func graceShorterThanPaidTime() {
        expect(
            ModelSubscription(plan: .paid, expiresAt: graceEnd, graceUntil: expiry, hasBillingIssue: true),
            [
                Moment(expiry, .gracePeriod), Moment(graceEnd.justBefore, .gracePeriod),
                Moment(graceEnd, .billingRetry, .billingRetry),
            ]
        )
    }

    @Test("with a billing issue and a cancellation has the state of the billing issue")
    func billingIssueBeforeCancellation() {
        let both = ModelSubscription(
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
        "has no access from its revocation on, in every state",
        arguments: [
            (ModelSubscription(plan: .paid), .active),
            (ModelSubscription(plan: .paid, unsubscribedAt: start), .cancelled),
            (ModelSubscription(plan: .paid, graceUntil: graceEnd, hasBillingIssue: true), .gracePeriod),
            (ModelSubscription(plan: .trial, startedAt: start, expiresAt: graceEnd), .trial),
            (ModelSubscription(plan: .free), .free),
        ] as [(ModelSubscription, SubscriptionState)]
    )
    func revoked(subscription: ModelSubscription, before: SubscriptionState) {
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

    @Test("to a trial has access for the plan's days, and is still a trial afterwards")
    func trial() {
        expect(
            ModelSubscription(plan: .trial, startedAt: start),
            [
                Moment(start, .trial), Moment(trialEnd.justBefore, .trial), Moment(trialEnd, .trial, .trialEnded),
                Moment(farFuture, .trial, .trialEnded),
            ]
        )
        let week = Plan(name: "week", label: "Week", cycle: .trial(days: 7), allowance: 10)
        expect(
            ModelSubscription(plan: week, startedAt: start),
            [
                Moment(at("2026-11-08T08:00:00Z").justBefore, .trial),
                Moment(at("2026-11-08T08:00:00Z"), .trial, .trialEnded),
            ]
        )
    }

    @Test(
        "to a trial ends at its own end, before or after the plan's days",
        arguments: [
            expiry, at("2026-11-02T08:00:00Z"),
        ]
    )
    func trialWithExplicitEnd(end: Instant) {
        expect(
            ModelSubscription(plan: .trial, startedAt: start, expiresAt: end),
            [
                Moment(end.justBefore, .trial), Moment(end, .trial, .trialEnded),
            ]
        )
    }

    @Test("to a trial that was ended is expired from its end on")
    func trialEndedEarly() {
        expect(
            ModelSubscription(plan: .trial, startedAt: start, expiresAt: refund, unsubscribedAt: refund),
            [
                Moment(refund.justBefore, .trial), Moment(refund, .expired, .expired),
            ]
        )
    }

    @Test("to a trial that was cancelled still ends as a trial")
    func trialCancelled() {
        expect(
            ModelSubscription(plan: .trial, startedAt: start, unsubscribedAt: at("2026-11-02T08:00:00Z")),
            [
                Moment(at("2026-11-02T08:00:00Z"), .trial), Moment(trialEnd.justBefore, .trial),
                Moment(trialEnd, .trial, .trialEnded),
            ]
        )
    }

    @Test("to a lifetime plan has access until its expiry, if it has one")
    func lifetime() {
        expect(ModelSubscription(plan: .free), [Moment(start, .free), Moment(farFuture, .free)])
        expect(
            ModelSubscription(plan: .free, expiresAt: expiry),
            [
                Moment(expiry.justBefore, .free), Moment(expiry, .expired, .expired),
            ]
        )
    }

    private func expect(_ subscription: ModelSubscription, _ moments: [Moment]) {
        for moment in moments {
            #expect(subscription.state(at: moment.instant) == moment.state, "\(moment.testDescription)")
            #expect(subscription.denialReason(at: moment.instant) == moment.denialReason, "\(moment.testDescription)")
        }
    }
}
