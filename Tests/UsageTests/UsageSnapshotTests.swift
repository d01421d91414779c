import TestSupport
import Testing
import Usage

@Suite("A usage snapshot")
struct StandingTests {
    @Test("counts up to the limit and not beyond, and reports each crossed tier once")
    func runToTheLimit() {
        var snapshot = UsageSnapshot.monthly(used: 0)
        var crossed: [Int: Tier] = [:]
        for number in 1...800 {
            let answer = snapshot.consume(1, of: ada)
            #expect(answer.status == .allowed)
            #expect(answer.snapshot.used == number)
            if let tier = answer.crossed { crossed[number] = tier }
        }
        #expect(crossed == [640: .gentle, 760: .prominent, 800: .blocked])
        let refused = snapshot.consume(1, of: ada)
        #expect(refused.status == .blocked(.limitReached))
        #expect(refused.crossed == nil)
        #expect(snapshot.used == 800)
    }

    @Test("stops an unlimited count at PostgreSQL's largest integer")
    func countMaximum() {
        var snapshot = UsageSnapshot.monthly(used: UsageSnapshot.countMaximum - 1, limit: nil, plan: .pro)
        #expect(snapshot.remaining == nil)
        #expect(snapshot.consume(1_000_000, of: ada).status == .allowed)
        #expect(snapshot.used == 2_147_483_647)
        #expect(snapshot.consume(1, of: ada).snapshot.used == 2_147_483_647)
    }

    @Test(
        "has a reason for a refused message",
        arguments: [
            (UsageSnapshot.monthly(used: 800), .limitReached),
            (.monthly(used: 0, limit: 0), .limitReached),
            (.trial(used: 100), .trialLimitReached),
            (.trial(used: 5, denialReason: .trialEnded), .trialEnded),
            (.lifetime(used: 3, limit: 3), .limitReached),
            (.lifetime(used: 0, limit: 0), .noSubscription),
            (.monthly(used: 5, denialReason: .expired), .expired),
            (.monthly(used: 800, denialReason: .revoked), .revoked),
            (.monthly(used: 5, denialReason: .billingRetry), .billingRetry),
            (.trial(used: 99), nil),
            (.monthly(used: 799), nil),
            (.trial(used: 0, denialReason: .trialEnded), .trialEnded),
        ] as [(UsageSnapshot, DenialReason?)]
    )
    func refusal(snapshot: UsageSnapshot, refusal: DenialReason?) {
        #expect(snapshot.refusal(of: 1) == refusal)
        #expect(snapshot.check(1, of: ada).status == refusal.map { .blocked($0) } ?? .allowed)
    }

    @Test(
        "has a time to wait only if waiting helps",
        arguments: [
            // From November 10, 12:00 to December 1, 00:00: 20 days and 12 hours.
            (UsageSnapshot.monthly(used: 800), 1, 1_771_200),
            (.monthly(used: 800), 800, 1_771_200),
            (.monthly(used: 800), 801, nil),
            (.monthly(used: 700), 101, 1_771_200),
            (.monthly(used: 700), 801, nil),
            (.monthly(used: 700, expiresAt: at("2026-11-20")), 101, nil),
            (.trial(used: 99), 2, nil),
            (.lifetime(used: 1, limit: 3), 3, nil),
            (.monthly(used: 800, observedAt: at("2026-12-01").justBefore), 1, 1),
            (.monthly(used: 800, observedAt: at("2026-11-30T23:59:59Z")), 1, 1),
            (.monthly(used: 800, observedAt: at("2026-11-30T23:59:58.999999Z")), 1, 2),
            (.monthly(used: 800, observedAt: at("2026-12-01")), 1, nil),
            // Access ends before, or at, the reset.
            (.monthly(used: 800, expiresAt: at("2026-11-20")), 1, nil),
            (.monthly(used: 800, expiresAt: at("2026-12-01")), 1, nil),
            (.monthly(used: 800, expiresAt: at("2026-12-01").justAfter), 1, 1_771_200),
            // An operator's limit only applies to this month.
            (.monthly(used: 10, limit: 10), 1, 1_771_200),
            (.monthly(used: 10, limit: 10, plan: .pro), 5_000, 1_771_200),
            (.monthly(used: 5, denialReason: .expired), 1, nil),
            (.monthly(used: 800, denialReason: .revoked), 1, nil),
            (.monthly(used: 5, denialReason: .billingRetry), 1, nil),
            (.trial(used: 100), 1, nil),
            (.lifetime(used: 3, limit: 3), 1, nil),
            (.monthly(used: 0), 1, nil),
        ] as [(UsageSnapshot, Int, Int64?)]
    )
    func retryAfter(snapshot: UsageSnapshot, messages: Int, seconds: Int64?) {
        #expect(snapshot.check(messages, of: ada).retryAfterSeconds == seconds)
        var consumed = snapshot
        #expect(consumed.consume(messages, of: ada).retryAfterSeconds == seconds)
    }

    @Test(
        "shows the end of a trial, and of a subscription that no store renews",
        arguments: SubscriptionState.allCases,
        [nil, true, false]
    )
    func expires(state: SubscriptionState, renews: Bool?) {
        var snapshot = UsageSnapshot.monthly(used: 1, state: state, expiresAt: at("2026-11-20"))
        snapshot.renews = renews
        let ends = state == .cancelled || [.active, .free].contains(state) && renews != true
        #expect(snapshot.expiresShown == (ends ? at("2026-11-20") : nil))
        var trial = UsageSnapshot.trial(used: 1)
        trial.renews = renews
        #expect(trial.expiresShown == trial.expiresAt)
    }
}
