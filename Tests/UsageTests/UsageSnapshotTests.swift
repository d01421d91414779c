import TestSupport
import Testing
import Usage

@Suite("A usage snapshot")
struct StandingTests {
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

    @Test(
        "promises messages at the end of what is paid only if a store renews it then",
        arguments: SubscriptionState.allCases,
        [nil, true, false]
    )
    func comeback(state: SubscriptionState, renews: Bool?) {
        var snapshot = UsageSnapshot.monthly(used: 800, state: state, expiresAt: at("2026-12-01"))
        snapshot.renews = renews
        let goesOn = renews == true && [.active, .free].contains(state)
        #expect(snapshot.availableAgainAt == (goesOn ? at("2026-12-01") : nil))
        let refused = snapshot.check(1, of: ada)
        #expect(refused.retryAfterSeconds == (goesOn ? 1_771_200 : nil))
        let date = goesOn ? " Your next session refreshes on December 1." : ""
        #expect(refused.banner?.text == "We've had a lot of great conversations this month!" + date)
        // A window that outlasts what is paid, too.
        snapshot.used = 1
        snapshot.expiresAt = at("2026-11-10T13:00:00Z")
        snapshot.window = UsageWindow(limit: 5, openedAt: snapshot.observedAt, endsAt: at("2026-11-10T14:00:00Z"))
        snapshot.windowUsed = 5
        #expect(snapshot.check(1, of: ada).retryAfterSeconds == (goesOn ? 7_200 : nil))
    }
}
