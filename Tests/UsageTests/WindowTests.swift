import TestSupport
import Testing
import Usage

@Suite("A window beside the period")
struct WindowTests {
    private let plan = Plan(
        name: "plus",
        label: "Plus",
        cycle: .monthly,
        allowance: 100,
        window: Plan.Window(messages: 10, seconds: 10_800)
    )
    private let now = at("2026-11-10T12:00:00Z")

    /// - Parameter windowUsed: nil if no window is open; else one opened an hour ago.
    private func snapshot(used: Int, limit: Int? = 100, windowUsed: Int? = nil) -> UsageSnapshot {
        var snapshot = UsageSnapshot.monthly(used: used, limit: limit, plan: plan)
        let isOpen = windowUsed != nil
        snapshot.window = UsageWindow(
            limit: 10,
            openedAt: isOpen ? now.advanced(bySeconds: -3_600) : nil,
            endsAt: isOpen ? now.advanced(bySeconds: 7_200) : nil
        )
        snapshot.windowUsed = windowUsed ?? 0
        return snapshot
    }

    @Test(
        "is what tier and sentences are about if it is fuller than the period, in exact integers",
        arguments: [
            // Used in the period and in the window; which of them is fuller; tier.
            (used: 0, window: 0, isWindow: false, tier: Tier.silent), (50, 5, false, .silent), (49, 5, true, .silent),
            (79, 8, true, .gentle), (80, 8, false, .gentle), (81, 8, false, .gentle), (94, 9, false, .gentle),
            (89, 9, true, .gentle), (95, 9, false, .prominent), (99, 10, true, .blocked), (100, 10, false, .blocked),
            (100, 3, false, .blocked), (120, 12, false, .blocked), (3, 12, true, .blocked),
        ]
    )
    func fuller(used: Int, window: Int, isWindow: Bool, tier: Tier) {
        let snapshot = snapshot(used: used, windowUsed: window)
        #expect(snapshot.allowances.fullest.name == (isWindow ? .window : .period))
        #expect(snapshot.tier == tier)
        if tier != .silent {
            let isAboutWindow = [.window, .blockedWindow].contains(snapshot.banner?.sentence)
            #expect(isAboutWindow == isWindow, "\(snapshot.banner?.text ?? "no banner")")
        }
    }

    @Test("of an unlimited plan decides alone")
    func unlimited() {
        #expect(snapshot(used: 5_000, limit: nil, windowUsed: 9).banner?.text == "1 message left for the next 2 hours")
        #expect(snapshot(used: 5_000, limit: nil, windowUsed: 10).refusal(of: 1) == .windowLimitReached)
    }

    @Test(
        "refuses what does not fit, after the period",
        arguments: [
            (used: 99, window: 9, messages: 1, DenialReason?.none), (99, 9, 2, .exceedsRemaining),
            (50, 9, 2, .windowExceedsRemaining), (50, 10, 1, .windowLimitReached), (99, 10, 2, .windowLimitReached),
            (99, 8, 2, .exceedsRemaining), (99, 8, 3, .exceedsRemaining), (100, 10, 1, .limitReached),
            (100, 9, 2, .limitReached),
        ]
    )
    func refusal(used: Int, window: Int, messages: Int, reason: DenialReason?) {
        #expect(snapshot(used: used, windowUsed: window).refusal(of: messages) == reason)
    }

    @Test("says when the messages would fit, into both")
    func retryAfter() {
        let month = at("2026-12-01").secondsRoundedUp(since: now)
        func wait(_ snapshot: UsageSnapshot, _ messages: Int) -> Int64? {
            snapshot.check(messages, of: user(1)).retryAfterSeconds
        }
        #expect(wait(snapshot(used: 50, windowUsed: 10), 1) == 7_200)
        #expect(wait(snapshot(used: 50, windowUsed: 9), 2) == 7_200)
        #expect(wait(snapshot(used: 99, windowUsed: 10), 2) == month)
        #expect(wait(snapshot(used: 100, windowUsed: 10), 1) == month)
        #expect(wait(snapshot(used: 50, windowUsed: 0), 11) == nil, "it never fits into a window")
        #expect(wait(snapshot(used: 100, windowUsed: 10), 11) == nil)
        // The month ends before the window.
        var late = snapshot(used: 100, windowUsed: 10)
        late.observedAt = at("2026-11-30T23:59:00Z")
        late.window?.endsAt = at("2026-12-01T00:30:00Z")
        #expect(wait(late, 1) == 1_860)
        var ending = snapshot(used: 50, windowUsed: 10)
        ending.expiresAt = now.advanced(bySeconds: 7_200)
        #expect(wait(ending, 1) == nil && ending.banner?.sentence == .blockedUndated)
    }

    @Test("of an unenforced plan blocks nobody")
    func unenforced() {
        let plan = Plan(
            name: "plus",
            label: "Plus",
            cycle: .monthly,
            allowance: 100,
            window: plan.window,
            isEnforced: false
        )
        var snapshot = snapshot(used: 50, windowUsed: 10)
        snapshot.plan = plan
        let answer = snapshot.consume(1, of: user(1))
        #expect(answer.status == .allowed && answer.isShadow && snapshot.windowUsed == 11)
        #expect(snapshot.tier == .prominent && snapshot.banner == nil && snapshot.isBeyondUnenforcedLimit)
    }
}
