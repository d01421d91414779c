import TestSupport
import Testing

@testable import Usage

@Suite("Sentences of a refusal")
struct RefusalSentenceTests {
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
    private static let ended = "Your time with Premium ended on November 9 — shall we go on?"
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

    /// What the golden table does not have.
    @Test(
        "without access say why, and welcome back only those who left",
        arguments: [
            // An operator has set the end: nobody has cancelled.
            (expired(renews: nil), ended), (expired(renews: false), comeBack), (expired(renews: true), comeBack),
            (nothing(used: 0, allowance: 5, limit: 0), noRoom),
            // Of an earlier plan in this month.
            (nothing(used: 7, allowance: 0, limit: 0), noRoom),
            // Granted; the next month has none.
            (nothing(used: 3, allowance: 0, limit: 3), "We've had a lot of great conversations this month!"),
        ]
    )
    func blocked(snapshot: UsageSnapshot, sentence: String) {
        #expect(snapshot.tier == .blocked)
        #expect(snapshot.banner?.text == sentence)
        #expect(snapshot.check(1, of: ada).banner?.text == sentence)
    }
}
