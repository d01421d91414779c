import TestSupport
import Testing
import Usage

private let start = at("2026-11-01T08:00:00Z")
private let trialEnd = at("2026-11-04T08:00:00Z")
private let refund = at("2026-11-20T08:00:00Z")
private let expiry = at("2026-12-01T08:00:00Z")
private let graceEnd = at("2026-12-04T08:00:00Z")
private let sixteenDaysAfterExpiry = at("2026-12-17T08:00:00Z")
private let farFuture = at("9999-12-31")

@Suite("A subscription of the reference model")
struct ModelSubscriptionTests {
    /// A subscription with its expected state and denial reason at instants.
    struct Example: CustomTestStringConvertible {
        var testDescription: String
        var subscription: ModelSubscription
        var moments: [(Instant, SubscriptionState, DenialReason?)]

        init(
            _ description: String,
            _ subscription: ModelSubscription,
            _ moments: [(Instant, SubscriptionState, DenialReason?)]
        ) {
            testDescription = description
            self.subscription = subscription
            self.moments = moments
        }
    }

    @Test(
        "has a state and a denial reason at each instant",
        arguments: [
            Example(
                "active until its expiry",
                ModelSubscription(plan: .paid, expiresAt: expiry),
                [(expiry.justBefore, .active, nil), (expiry, .expired, .expired), (farFuture, .expired, .expired)]
            ),
            Example("active without an end", ModelSubscription(plan: .paid), [(farFuture, .active, nil)]),
            Example(
                "without a billing issue, the end of the grace period is ignored",
                ModelSubscription(plan: .paid, expiresAt: expiry, graceUntil: graceEnd),
                [(expiry.justBefore, .active, nil), (expiry, .expired, .expired)]
            ),
            Example(
                "cancelled until its expiry",
                ModelSubscription(plan: .paid, expiresAt: expiry, unsubscribedAt: start),
                [(start, .cancelled, nil), (expiry.justBefore, .cancelled, nil), (expiry, .expired, .expired)]
            ),
            Example(
                "in the store's grace period during a billing issue, also if it was cancelled",
                ModelSubscription(
                    plan: .paid,
                    expiresAt: expiry,
                    graceUntil: graceEnd,
                    hasBillingIssue: true,
                    unsubscribedAt: start
                ),
                [
                    (start, .gracePeriod, nil), (graceEnd.justBefore, .gracePeriod, nil),
                    (graceEnd, .billingRetry, .billingRetry), (farFuture, .billingRetry, .billingRetry),
                ]
            ),
            Example(
                "in the store's grace period without an expiry",
                ModelSubscription(plan: .paid, graceUntil: graceEnd, hasBillingIssue: true),
                [(graceEnd.justBefore, .gracePeriod, nil), (graceEnd, .billingRetry, .billingRetry)]
            ),
            Example(
                "in a grace period of 16 days if the store gives none",
                ModelSubscription(plan: .paid, expiresAt: expiry, hasBillingIssue: true),
                [
                    (sixteenDaysAfterExpiry.justBefore, .gracePeriod, nil),
                    (sixteenDaysAfterExpiry, .billingRetry, .billingRetry),
                ]
            ),
            Example(
                "without a grace period if there is no date",
                ModelSubscription(plan: .paid, hasBillingIssue: true),
                [(at("2000-01-01"), .billingRetry, .billingRetry), (start, .billingRetry, .billingRetry)]
            ),
            Example(
                "with access for the paid time if the grace period is shorter",
                ModelSubscription(plan: .paid, expiresAt: graceEnd, graceUntil: expiry, hasBillingIssue: true),
                [(graceEnd.justBefore, .gracePeriod, nil), (graceEnd, .billingRetry, .billingRetry)]
            ),
            Example(
                "a trial after the plan's days",
                ModelSubscription(plan: .trial, startedAt: start),
                [(start, .trial, nil), (trialEnd.justBefore, .trial, nil), (trialEnd, .trial, .trialEnded)]
            ),
            Example(
                "a trial that ends later than the plan's days",
                ModelSubscription(plan: .trial, startedAt: start, expiresAt: expiry),
                [(expiry.justBefore, .trial, nil), (expiry, .trial, .trialEnded)]
            ),
            Example(
                "a trial that was ended",
                ModelSubscription(plan: .trial, startedAt: start, expiresAt: refund, unsubscribedAt: refund),
                [(refund.justBefore, .trial, nil), (refund, .expired, .expired)]
            ),
            Example(
                "a trial that was cancelled before its end",
                ModelSubscription(plan: .trial, startedAt: start, unsubscribedAt: at("2026-11-02T08:00:00Z")),
                [(trialEnd.justBefore, .trial, nil), (trialEnd, .trial, .trialEnded)]
            ),
            Example(
                "a lifetime plan until its expiry",
                ModelSubscription(plan: .free, expiresAt: expiry),
                [(expiry.justBefore, .free, nil), (expiry, .expired, .expired)]
            ),
            Example("a lifetime plan without an end", ModelSubscription(plan: .free), [(farFuture, .free, nil)]),
        ]
    )
    func states(example: Example) {
        for (instant, state, denialReason) in example.moments {
            #expect(example.subscription.state(at: instant) == state, "at \(instant)")
            #expect(example.subscription.denialReason(at: instant) == denialReason, "at \(instant)")
        }
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
        #expect(revoked.state(at: refund.justBefore) == before && revoked.denialReason(at: refund.justBefore) == nil)
        #expect(revoked.state(at: refund) == .revoked && revoked.denialReason(at: farFuture) == .revoked)
    }
}
