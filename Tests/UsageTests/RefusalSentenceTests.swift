import TestSupport
import Testing

@testable import Usage

@Suite("Sentences of a refusal")
struct RefusalSentenceTests {
    private func refusal(_ snapshot: UsageSnapshot, _ messages: Int, in zone: String? = nil) -> String? {
        let zone = zone.flatMap { CivilTimeZone($0) }
        return snapshot.check(messages, of: ada).banner(at: snapshot.tier, in: zone)?.text
    }

    @Test(
        "of more messages than are left say how many that needs and how many are left, in every tier",
        arguments: [(0, "800 are"), (639, "161 are"), (640, "160 are"), (798, "2 are"), (799, "1 is")]
    )
    func exceeded(used: Int, left: String) {
        let snapshot = UsageSnapshot.monthly(used: used)
        #expect(refusal(snapshot, 801) == "That needs 801 messages, and \(left) left until December 1.")
        let messages = 800 - used
        #expect(refusal(snapshot, messages) == snapshot.banner?.text)
        var ending = snapshot
        ending.expiresAt = at("2026-11-20")
        #expect(refusal(ending, 801) == "That needs 801 messages, and \(left) left.")
    }

    @Test("say a wait for a daily plan and a window, and nothing where no messages come back")
    func ways() {
        let day = UsageSnapshot(
            plan: Plan(name: "day", label: "Day", cycle: .daily, allowance: 20),
            state: .active,
            period: billingPeriod("2026-11-10"),
            used: 3,
            limit: 20,
            startedAt: at("2026-11-10"),
            resetsAt: at("2026-11-11"),
            observedAt: at("2026-11-10T18:59:00Z")
        )
        #expect(refusal(day, 18) == "That needs 18 messages, and 17 are left for the next 5 hours 1 minute.")
        #expect(refusal(.trial(used: 41), 60) == "That needs 60 messages, and 59 are left.")
        #expect(refusal(.lifetime(used: 2, limit: 3), 2) == "That needs 2 messages, and 1 is left.")
        var window = UsageSnapshot.monthly(
            used: 0,
            plan: Plan(
                name: "plus",
                label: "Plus",
                cycle: .monthly,
                allowance: 800,
                window: Plan.Window(messages: 10, seconds: 10_800)
            )
        )
        window.window = UsageWindow(limit: 10)
        #expect(refusal(window, 11) == "That needs 11 messages, and 10 are left.")
        #expect(window.consume(9, of: ada).status == .allowed)
        #expect(refusal(window, 2) == "That needs 2 messages, and 1 is left for the next 3 hours.")
        #expect(refusal(window, 801) == "That needs 801 messages, and 791 are left until December 1.")
        #expect(window.consume(1, of: ada).status == .allowed)
        #expect(refusal(window, 1) == "Let's take a short break. I'm here for you again in 3 hours.")
    }

    @Test("exist for every reason, also after the end of the period")
    func always() {
        for state in [SubscriptionState.active, .expired, .revoked, .billingRetry, .free, .trial] {
            for reason in [nil, DenialReason.expired, .revoked, .billingRetry, .noSubscription, .trialEnded] {
                for observed in ["2026-11-10", "2026-12-01"] {
                    for limit in [0, 8, 800] {
                        var snapshot = UsageSnapshot.monthly(
                            used: 7,
                            limit: limit,
                            state: state,
                            denialReason: reason,
                            observedAt: at(observed)
                        )
                        let answer = snapshot.consume(900, of: ada)
                        #expect(answer.reason != nil && answer.banner?.text.isEmpty == false)
                    }
                }
            }
        }
    }

    private static let comeBack = "Ready to come back? Your conversations are still here."
    private static let notActive =
        "Your subscription is no longer active, so I have to stop here for now. You can subscribe again anytime."
    private static let paused = "We're on a short pause until your payment goes through. I'll be right here."
    private static let ended = "Your time with Premium ended on November 9 — shall we go on?"
    private static let trialUsedUp = "You've used your trial sessions — ready to continue?"
    private static let noRoom = "Your plan has no room for messages right now. A larger one opens our conversations."

    private static func expired(renews: Bool?) -> UsageSnapshot {
        var snapshot = UsageSnapshot.monthly(
            used: 5,
            state: .expired,
            denialReason: .expired,
            expiresAt: at("2026-11-09T08:00:00Z")
        )
        snapshot.renews = renews
        return snapshot
    }

    private static func nothing(used: Int, allowance: Int, limit: Int) -> UsageSnapshot {
        let plan = Plan(name: "none", label: "None", cycle: .monthly, allowance: allowance)
        return .monthly(used: used, limit: limit, plan: plan)
    }

    @Test(
        "without access say why, and welcome back only those who left",
        arguments: [
            (UsageSnapshot.monthly(used: 800, state: .revoked, denialReason: .revoked), notActive),
            (.trial(used: 100, denialReason: .revoked, state: .revoked), notActive),
            (.monthly(used: 5, state: .billingRetry, denialReason: .billingRetry), paused),
            (.trial(used: 100, denialReason: .expired, state: .expired), trialUsedUp),
            (.trial(used: 99, denialReason: .expired, state: .expired), "Your trial has ended — ready to continue?"),
            // An operator has set the end: nobody has cancelled.
            (expired(renews: nil), ended), (expired(renews: false), comeBack), (expired(renews: true), comeBack),
            (.lifetime(used: 3, limit: 3), "You've used all 3 messages."),
            (.lifetime(used: 4, limit: 3), "You've used all 3 messages."),
            (.lifetime(used: 1, limit: 1), "You've used your 1 message."),
            (nothing(used: 0, allowance: 0, limit: 0), noRoom), (nothing(used: 0, allowance: 5, limit: 0), noRoom),
            // Of an earlier plan in this month.
            (nothing(used: 7, allowance: 0, limit: 0), noRoom),
            // Granted; the next month has none.
            (nothing(used: 3, allowance: 0, limit: 3), "We've had a lot of great conversations this month!"),
        ]
    )
    func blocked(snapshot: UsageSnapshot, sentence: String) {
        #expect(snapshot.tier == .blocked)
        #expect(snapshot.banner?.text == sentence)
        #expect(refusal(snapshot, 1) == sentence)
    }
}
