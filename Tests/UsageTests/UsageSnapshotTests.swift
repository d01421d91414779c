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
}
