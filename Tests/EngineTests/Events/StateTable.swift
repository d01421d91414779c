import TestSupport
import Testing
import Usage

/// The tables of the requirements, written by hand: the expectations of these tests do not come from the code.

/// An amount of usage, and the tier while there is access.
struct UsedUp: Sendable {
    var used: Int
    var tier: String
    var display: String
    var reason: String?
    var banner: String?

    init(_ used: Int, _ tier: String, _ display: String, reason: String? = nil, _ banner: String?) {
        self.used = used
        self.tier = tier
        self.display = display
        self.reason = reason
        self.banner = banner
    }
}

/// A state of a subscription at one instant, independent of usage.
struct Moment: Sendable {
    var instant: Instant
    var state: String
    /// Nil with access.
    var reason: String?
    var notice: String?
    /// The date on which the trial ends, on its last day.
    var trialEnds: String?

    init(
        _ instant: Instant,
        _ state: String,
        _ reason: String? = nil,
        notice: String? = nil,
        trialEnds: String? = nil
    ) {
        self.instant = instant
        self.state = state
        self.reason = reason
        self.notice = notice
        self.trialEnds = trialEnds
    }
}

/// Store events over time, and the resulting states.
struct History: Sendable, CustomTestStringConvertible {
    var name: String
    var events: [StoreEvent]
    var moments: [Moment]

    init(_ name: String, _ events: [StoreEvent], _ moments: [Moment]) {
        self.name = name
        self.events = events
        self.moments = moments
    }

    var testDescription: String { name }
}

enum StateTable {
    static let noAccess = "Ready to come back? Your conversations are still here."
    static let refunded =
        "Your subscription is no longer active, so I have to stop here for now. You can subscribe again anytime."
    static let paused = "We're on a short pause until your payment goes through. I'll be right here."
    static let neverSubscribed = "Ready to begin? A subscription opens our conversations."
    static let trialUsedUp = "You've used your trial sessions — ready to continue?"
    static let trialEnded = "Your trial has ended — ready to continue?"
    static let refreshes =
        "We've had a lot of great conversations this month! Your next session refreshes on December 1."
    static let unpaid = "I couldn't renew your subscription. Update your payment method and we can go on right away."
    static let cancelledTrial = "Your trial is active until November 13. You can subscribe anytime."

    static func hiccup(until date: String) -> String {
        "There's a hiccup with your payment. Let's get that sorted. Your access stays until \(date)."
    }

    static let cancelled = "Your subscription is active until November 20. You can resubscribe anytime."

    static let monthlyPlans: [(plan: String, usage: [UsedUp])] = [("paid", paid), ("pro", pro), ("team", team)]

    /// 800 messages, gentle from 80 %, prominent from 95 %.
    static let paid = [
        UsedUp(0, "silent", "hidden", nil),
        UsedUp(639, "silent", "hidden", nil),
        UsedUp(640, "gentle", "compact", "You have 160 conversations left this month"),
        UsedUp(759, "gentle", "compact", "You have 41 conversations left this month"),
        UsedUp(760, "prominent", "compact", "Almost there — 40 messages left until December 1"),
        UsedUp(799, "prominent", "compact", "Almost there — 1 message left until December 1"),
        UsedUp(800, "blocked", "blocked", reason: "limit_reached", refreshes),
    ]

    static let pro = [
        UsedUp(0, "silent", "hidden", nil),
        UsedUp(100_000, "silent", "hidden", nil),
    ]

    /// A plan of an operator: 50 messages, gentle from 50 %, prominent from 90 %.
    static let team = [
        UsedUp(24, "silent", "hidden", nil),
        UsedUp(25, "gentle", "compact", "You have 25 conversations left this month"),
        UsedUp(44, "gentle", "compact", "You have 6 conversations left this month"),
        UsedUp(45, "prominent", "compact", "Almost there — 5 messages left until December 1"),
        UsedUp(49, "prominent", "compact", "Almost there — 1 message left until December 1"),
        UsedUp(50, "blocked", "blocked", reason: "limit_reached", refreshes),
    ]

    /// 100 messages, always shown.
    static let trial = [
        UsedUp(0, "silent", "trial", "100 of 100 trial messages remaining"),
        UsedUp(79, "silent", "trial", "21 of 100 trial messages remaining"),
        UsedUp(80, "gentle", "trial", "20 of 100 trial messages remaining"),
        UsedUp(95, "prominent", "trial", "5 of 100 trial messages remaining"),
        UsedUp(99, "prominent", "trial", "1 of 100 trial messages remaining"),
        UsedUp(100, "blocked", "blocked", reason: "trial_limit_reached", trialUsedUp),
    ]

    /// A free plan with a small allowance for life.
    static let free = [
        UsedUp(0, "silent", "compact", "0 of 3 messages used"),
        UsedUp(2, "silent", "compact", "2 of 3 messages used"),
        UsedUp(3, "blocked", "blocked", reason: "limit_reached", "You've used all 3 messages."),
    ]

    private static let start = at("2026-11-02T08:00:00Z")
    private static let expiry = at("2026-11-20T08:00:00Z")
    private static let reportedAt = at("2026-11-10T08:00:00Z")

    private static func bought(until expires: String? = "2026-11-20T08:00:00Z") -> StoreEvent {
        var more = ["anchor": "1"]
        more["expires"] = expires
        return StoreEvent("purchased", "2026-11-02T08:00:00Z", more)
    }

    /// For a monthly plan. Everything happens in November, before the count is reset.
    static let monthlyHistories = [
        History(
            "active",
            [bought()],
            [
                Moment(start, "active"), Moment(expiry.justBefore, "active"), Moment(expiry, "expired", "expired"),
                Moment(expiry.justAfter, "expired", "expired"),
            ]
        ),
        History("active without an end", [bought(until: nil)], [Moment(at("2026-12-01").justBefore, "active")]),
        History(
            "cancelled",
            [bought(), StoreEvent("cancelled", "2026-11-10T08:00:00Z")],
            [
                Moment(reportedAt.justBefore, "active"), Moment(reportedAt, "cancelled", notice: cancelled),
                Moment(expiry.justBefore, "cancelled", notice: cancelled), Moment(expiry, "expired", "expired"),
            ]
        ),
        History(
            "cancelled and reversed",
            [
                bought(), StoreEvent("cancelled", "2026-11-10T08:00:00Z"),
                StoreEvent("uncancelled", "2026-11-12T08:00:00Z"),
            ],
            [
                Moment(at("2026-11-12T08:00:00Z").justBefore, "cancelled", notice: cancelled),
                Moment(at("2026-11-12T08:00:00Z"), "active"), Moment(expiry, "expired", "expired"),
            ]
        ),
        History(
            "grace period with a date",
            [bought(), StoreEvent("grace_period", "2026-11-19T08:00:00Z", ["grace_until": "2026-11-23T08:00:00Z"])],
            [
                Moment(at("2026-11-19T08:00:00Z").justBefore, "active"),
                Moment(at("2026-11-19T08:00:00Z"), "grace_period", notice: hiccup(until: "November 23")),
                Moment(expiry, "grace_period", notice: hiccup(until: "November 23")),
                Moment(at("2026-11-23T08:00:00Z").justBefore, "grace_period", notice: hiccup(until: "November 23")),
                Moment(at("2026-11-23T08:00:00Z"), "billing_retry", "billing_retry", notice: unpaid),
                Moment(at("2026-11-23T08:00:00Z").justAfter, "billing_retry", "billing_retry", notice: unpaid),
            ]
        ),
        History(
            "grace period of 16 days, where the store gives no date",
            [bought(until: "2026-11-05T08:00:00Z"), StoreEvent("grace_period", "2026-11-05T08:00:00Z")],
            [
                Moment(at("2026-11-05T08:00:00Z").justBefore, "active"),
                Moment(at("2026-11-05T08:00:00Z"), "grace_period", notice: hiccup(until: "November 21")),
                Moment(at("2026-11-21T08:00:00Z").justBefore, "grace_period", notice: hiccup(until: "November 21")),
                Moment(at("2026-11-21T08:00:00Z"), "billing_retry", "billing_retry", notice: unpaid),
            ]
        ),
        History(
            "cancelled with a billing issue",
            [
                bought(), StoreEvent("cancelled", "2026-11-10T08:00:00Z"),
                StoreEvent("grace_period", "2026-11-19T08:00:00Z", ["grace_until": "2026-11-23T08:00:00Z"]),
            ],
            [
                Moment(expiry.justBefore, "grace_period", notice: hiccup(until: "November 23")),
                Moment(at("2026-11-23T08:00:00Z"), "billing_retry", "billing_retry", notice: unpaid),
            ]
        ),
        History(
            "billing retry, ended by a renewal",
            [
                bought(), StoreEvent("billing_retry", "2026-11-19T08:00:00Z"),
                StoreEvent("renewed", "2026-11-25T08:00:00Z", ["expires": "2026-12-25T08:00:00Z"]),
            ],
            [
                // Paid time remains.
                Moment(expiry.justBefore, "grace_period", notice: hiccup(until: "November 20")),
                Moment(expiry, "billing_retry", "billing_retry", notice: unpaid),
                Moment(at("2026-11-25T08:00:00Z").justBefore, "billing_retry", "billing_retry", notice: unpaid),
                Moment(at("2026-11-25T08:00:00Z"), "active"),
            ]
        ),
        History(
            "expired, by an event that ends the billing retry",
            [
                bought(), StoreEvent("billing_retry", "2026-11-20T08:00:00Z"),
                StoreEvent("expired", "2026-11-22T08:00:00Z", ["expires": "2026-11-20T08:00:00Z"]),
            ],
            [
                Moment(at("2026-11-22T08:00:00Z").justBefore, "billing_retry", "billing_retry", notice: unpaid),
                Moment(at("2026-11-22T08:00:00Z"), "expired", "expired"),
            ]
        ),
        History(
            "revoked in combination with all other states, and reinstated",
            [
                bought(), StoreEvent("cancelled", "2026-11-03T08:00:00Z"),
                StoreEvent("revoked", "2026-11-10T08:00:00Z"),
                StoreEvent("grace_period", "2026-11-11T08:00:00Z", ["grace_until": "2026-11-30T08:00:00Z"]),
                StoreEvent("reinstated", "2026-11-14T08:00:00Z"),
            ],
            [
                Moment(reportedAt.justBefore, "cancelled", notice: cancelled), Moment(reportedAt, "revoked", "revoked"),
                Moment(at("2026-11-11T08:00:00Z"), "revoked", "revoked"),
                Moment(at("2026-11-14T08:00:00Z").justBefore, "revoked", "revoked"),
                Moment(at("2026-11-14T08:00:00Z"), "grace_period", notice: hiccup(until: "November 30")),
            ]
        ),
        History(
            "extended",
            [bought(), StoreEvent("extended", "2026-11-10T08:00:00Z", ["expires": "2026-11-25T08:00:00Z"])],
            [
                Moment(expiry, "active"), Moment(at("2026-11-25T08:00:00Z").justBefore, "active"),
                Moment(at("2026-11-25T08:00:00Z"), "expired", "expired"),
            ]
        ),
    ]

    private static let trialStart = at("2026-11-10T09:30:00Z")
    private static let trialEnd = at("2026-11-13T09:30:00Z")
    private static let trialBought = StoreEvent("purchased", "2026-11-10T09:30:00Z", ["plan": "trial"])

    static let trialHistories = [
        History(
            "store trial",
            [trialBought],
            [
                Moment(trialStart, "trial"), Moment(trialEnd.justBefore, "trial", trialEnds: "November 13"),
                Moment(trialEnd, "trial", "trial_ended"), Moment(trialEnd.justAfter, "trial", "trial_ended"),
            ]
        ),
        History(
            "cancelled trial",
            [trialBought, StoreEvent("cancelled", "2026-11-11T08:00:00Z")],
            [
                Moment(at("2026-11-11T08:00:00Z"), "trial", notice: cancelledTrial),
                Moment(trialEnd.justBefore, "trial", notice: cancelledTrial, trialEnds: "November 13"),
                Moment(trialEnd, "trial", "trial_ended"),
            ]
        ),
        History(
            "trial longer than the plan's days",
            [StoreEvent("purchased", "2026-11-10T09:30:00Z", ["plan": "trial", "expires": "2026-11-17T09:30:00Z"])],
            [
                Moment(at("2026-11-16T09:30:00Z").justBefore, "trial"),
                Moment(at("2026-11-17T09:30:00Z").justBefore, "trial", trialEnds: "November 17"),
                Moment(at("2026-11-17T09:30:00Z"), "trial", "trial_ended"),
            ]
        ),
        History(
            "revoked trial",
            [trialBought, StoreEvent("revoked", "2026-11-11T08:00:00Z")],
            [
                Moment(at("2026-11-11T08:00:00Z").justBefore, "trial"),
                Moment(at("2026-11-11T08:00:00Z"), "revoked", "revoked"), Moment(trialEnd, "revoked", "revoked"),
            ]
        ),
    ]
}
