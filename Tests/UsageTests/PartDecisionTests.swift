import TestSupport
import Testing

@testable import Usage

/// What the golden table has for period and window, for limits of models and members.
@Suite("Limits of models and members")
struct PartDecisionTests {
    /// Limits of 800, 80, 50 and 100.
    private static func four(_ used: Int, _ window: Int, _ large: Int, _ member: Int) -> UsageSnapshot {
        .team(used, window: (window, 80), large: (.large(50), .of(large)), member: (.member(100), .of(member)))
    }

    private static let reset = "retry_after=1771200"
    private static let month = "this month! Your next session refreshes on December 1."

    @Test(
        "are compared with those of period and window: the fullest decides",
        arguments: [
            PartExample(
                four(100, 10, 10, 10),
                "ALLOWED tier=silent used=101 window_used=11 model_used=11 member_used=11 -crossed",
                nil
            ),
            PartExample(
                four(650, 10, 10, 10),
                "ALLOWED tier=gentle -crossed",
                "You have 149 conversations left this month"
            ),
            PartExample(four(650, 67, 10, 10), "ALLOWED tier=gentle", "12 messages left for the next 2 hours"),
            PartExample(four(650, 67, 42, 10), "ALLOWED tier=gentle", "7 Large messages left until December 1"),
            PartExample(
                four(650, 67, 42, 86),
                "ALLOWED tier=gentle",
                "You have 13 conversations left until December 1"
            ),
            PartExample(
                four(650, 67, 42, 94),
                "ALLOWED tier=prominent crossed=prominent",
                "Almost there — 5 messages left until December 1"
            ),
            PartExample(four(650, 67, 48, 94), "ALLOWED tier=prominent", "1 Large message left until December 1"),
            // Equally full ones: the first in the order period, window, model, member.
            PartExample(
                four(640, 64, 40, 80),
                asking: .usage,
                "OK tier=gentle",
                "You have 160 conversations left this month"
            ),
            PartExample(
                four(639, 64, 40, 80),
                asking: .usage,
                "OK tier=gentle",
                "16 messages left for the next 2 hours"
            ),
            PartExample(
                four(639, 63, 40, 80),
                asking: .usage,
                "OK tier=gentle",
                "10 Large messages left until December 1"
            ),
            PartExample(
                four(10, 10, 49, 10),
                "ALLOWED tier=blocked display=blocked crossed=blocked model_remaining=0 -fallback",
                "You've used your Large messages for now. They're back on December 1."
            ),
            PartExample(
                .team(10, member: (.member(3), .of(2))),
                asking: .reserve(),
                "HELD tier=blocked crossed=blocked member_used=2 member_remaining=0",
                "You've used your share for now. It's back on December 1."
            ),
            // Of a model's two limits, the fuller one is shown.
            PartExample(
                .team(large: (.large(100, window: 10), .of(20, window: 6))),
                "ALLOWED model_limit=10 model_used=7 model_remaining=3 model_resets=2026-11-10T14:00:00Z",
                nil
            ),
            PartExample(
                .team(large: (.large(100, window: 10), .of(89, window: 6))),
                "ALLOWED model_limit=100 model_used=90 model_remaining=10 model_resets=2026-12-01T00:00:00Z",
                "10 Large messages left until December 1"
            ),
        ]
    )
    func fullest(example: PartExample) { example.check() }

    @Test(
        "refuse with the reason of the first that is used up, or else of the first that is exceeded",
        arguments: [
            PartExample(
                four(800, 80, 50, 100),
                "BLOCKED reason=limit_reached \(reset)",
                "We've had a lot of great conversations \(month)"
            ),
            PartExample(
                four(799, 80, 50, 100),
                "BLOCKED reason=window_limit_reached \(reset)",
                "Let's take a short break. I'm here for you again in 2 hours."
            ),
            PartExample(
                four(799, 79, 50, 100),
                "BLOCKED reason=model_limit_reached \(reset)",
                "You've used your Large messages for now. They're back on December 1."
            ),
            PartExample(
                four(799, 79, 49, 100),
                "BLOCKED reason=member_limit_reached \(reset)",
                "You've used your share for now. It's back on December 1."
            ),
            // One that is used up comes before those that are exceeded.
            PartExample(
                four(799, 79, 49, 100),
                asking: .consume(2),
                "BLOCKED reason=member_limit_reached",
                "You've used your share for now. It's back on December 1."
            ),
            PartExample(
                four(798, 78, 48, 98),
                asking: .consume(3),
                "BLOCKED reason=exceeds_remaining tier=prominent",
                "That needs 3 messages, and 2 are left until December 1."
            ),
            PartExample(
                four(100, 78, 48, 98),
                asking: .consume(3),
                "BLOCKED reason=window_exceeds_remaining \(reset)",
                "That needs 3 messages, and 2 are left for the next 2 hours."
            ),
            PartExample(
                four(100, 10, 48, 98),
                asking: .consume(3),
                "BLOCKED reason=model_exceeds_remaining \(reset)",
                "That needs 3 messages, and 2 are left until December 1."
            ),
            PartExample(
                four(100, 10, 10, 98),
                asking: .consume(3),
                "BLOCKED reason=member_exceeds_remaining \(reset)",
                "That needs 3 messages, and 2 are left until December 1."
            ),
            // Messages that are held count.
            PartExample(
                .team(large: (.large(10, window: 9), .of(3, held: 2, window: 3, windowHeld: 6))),
                "BLOCKED reason=model_limit_reached retry_after=7200 model_used=3 model_remaining=0",
                "You've used your Large messages for now. They're back in 2 hours."
            ),
            PartExample(
                .team(member: (.member(window: 5), .of(40, window: 5))),
                "BLOCKED reason=member_limit_reached retry_after=7200 member_used=5",
                "You've used your share for now. It's back in 2 hours."
            ),
            PartExample(
                .team(large: (.large(0), .of())),
                "BLOCKED reason=model_limit_reached tier=blocked model_limit=0 -retry_after",
                "Your plan has no room for Large messages right now."
            ),
        ]
    )
    func refusals(example: PartExample) { example.check() }

    @Test(
        "take a message of the user and of the member as often as the model weighs, and one of the model",
        arguments: [
            PartExample(
                .team(
                    10,
                    window: (10, 80),
                    large: (.large(50, weight: 5), .of(10)),
                    member: (.member(100), .of(10))
                ),
                asking: .consume(2),
                "ALLOWED used=20 window_used=20 model_used=12 member_used=20",
                nil
            ),
            PartExample(
                .team(795, large: (.large(weight: 5), .of(7))),
                "ALLOWED used=800 remaining=0 crossed=blocked model=large-2 model_used=8 -model_limit -model_remaining",
                "We've had a lot of great conversations \(month)"
            ),
            // Three are left, so that the period is not used up.
            PartExample(
                .team(797, large: (.large(50, weight: 5), .of())),
                "BLOCKED reason=exceeds_remaining remaining=3 \(reset)",
                "That needs 5 messages, and 3 are left until December 1."
            ),
            PartExample(
                .team(window: (77, 80), large: (.large(weight: 5), .of())),
                "BLOCKED reason=window_exceeds_remaining retry_after=7200",
                "That needs 5 messages, and 3 are left for the next 2 hours."
            ),
            PartExample(
                .team(large: (.large(weight: 5), .of()), member: (.member(20), .of(11))),
                asking: .consume(2),
                "BLOCKED reason=member_exceeds_remaining \(reset)",
                "That needs 10 messages, and 9 are left until December 1."
            ),
            PartExample(
                .team(large: (.large(50, weight: 5), .of(49))),
                asking: .consume(2),
                "BLOCKED reason=model_exceeds_remaining \(reset)",
                "That needs 2 messages, and 1 is left until December 1."
            ),
            // More than the plan has. Waiting does not help.
            PartExample(
                .team(of: 9, large: (.large(weight: 5), .of())),
                asking: .consume(2),
                "BLOCKED reason=exceeds_remaining -retry_after",
                "That needs 10 messages, and 9 are left until December 1."
            ),
        ]
    )
    func weights(example: PartExample) { example.check() }

    @Test("wait for the last allowance that refuses, and promise nothing that does not come")
    func waits() {
        func wait(_ snapshot: UsageSnapshot, _ messages: Int = 1) -> Int64? {
            snapshot.check(messages, of: ada).retryAfterSeconds
        }
        let window = PartCounter.of(window: 50, until: "2026-11-10T13:00:00Z")
        let large = (PlanLimit.large(window: 50), window)
        #expect(wait(.team(large: large)) == 3_600)
        #expect(wait(.team(window: (80, 80), large: large)) == 7_200)
        #expect(wait(.team(large: large, member: (.member(9), .of(9)))) == 1_771_200)
        #expect(wait(.team(large: large, cycle: .daily)) == 3_600)
        #expect(wait(.team(large: (.large(5), .of(5)), cycle: .daily)) == 43_200)
        #expect(wait(.team(large: large), 51) == nil)
        // No window is open, so none has to end.
        #expect(wait(.team(large: (.large(window: 50), .of())), 51) == nil)
        #expect(wait(.team(large: large, expiresAt: "2026-11-10T13:00:00Z")) == nil)
        #expect(wait(.team(large: large, expiresAt: "2026-11-10T13:00:01Z")) == 3_600)
        #expect(wait(.team(large: (.large(5), .of(5)), cycle: .lifetime)) == nil)
        #expect(wait(.team(of: 5, large: large, cycle: .lifetime)) == 3_600)
        #expect(wait(.team(of: nil, large: large)) == 3_600)
    }

    @Test("begin a window with its first message, and keep it until the database says that it has ended")
    func window() {
        var snapshot = UsageSnapshot.team(
            large: (.large(window: 3, weight: 2), .of(40)),
            member: (.member(100, window: 5), .of(7))
        )
        func windows() -> [[Int64?]] {
            snapshot.parts.map(\.counter).map { counter in
                [
                    Int64(counter.windowUsed), Int64(counter.windowHeld),
                    counter.windowOpenedAt?.secondsRoundedUp(since: at("2026-11-10T12:00:00Z")),
                    counter.windowEndsAt?.secondsRoundedUp(since: at("2026-11-10T12:00:00Z")),
                ]
            }
        }
        #expect(snapshot.check(4, of: ada).reason == .modelExceedsRemaining)
        #expect(snapshot.check(4, of: ada).banner?.text == "That needs 4 messages, and 3 are left.")
        #expect(windows() == [[0, 0, nil, nil], [0, 0, nil, nil]])
        #expect(snapshot.reserve(1, of: ada).status == .held)
        #expect(windows() == [[0, 1, 0, 10_800], [0, 2, 0, 10_800]])
        snapshot.observedAt = at("2026-11-10T13:00:00Z")
        #expect(snapshot.consume(1, of: ada).snapshot.otherAllowancesShown[0].resetsAt == at("2026-11-10T15:00:00Z"))
        #expect(windows() == [[1, 1, 0, 10_800], [2, 2, 0, 10_800]])
        #expect(snapshot.consume(1, of: ada).reason == .memberExceedsRemaining)
        _ = snapshot.commit(1, ofHeld: 1, of: ada)
        #expect(windows() == [[2, 0, 0, 10_800], [4, 0, 0, 10_800]])
        #expect(snapshot.parts.map(\.counter.used) == [42, 11] && snapshot.used == 4)
        // The model's has ended, and the member's has not.
        (snapshot.parts[0].counter.windowOpenedAt, snapshot.parts[0].counter.windowEndsAt) = (nil, nil)
        snapshot.parts[0].counter.windowUsed = 0
        #expect(snapshot.consume(1, of: ada).reason == .memberExceedsRemaining)
        snapshot.parts[1].counter.windowUsed = 3
        #expect(snapshot.consume(1, of: ada).status == .allowed)
        #expect(windows() == [[1, 0, 3_600, 14_400], [5, 0, 0, 10_800]])
    }

    @Test("give back what was held, also of the parts")
    func release() {
        let before = UsageSnapshot.team(
            10,
            large: (.large(50, window: 9, weight: 3), .of(4, window: 2)),
            member: (.member(90), .of(5))
        )
        var snapshot = before
        #expect(snapshot.reserve(2, of: ada).status == .held)
        #expect(snapshot.held == 6 && snapshot.parts.map(\.counter.held) == [2, 6])
        #expect(snapshot.release(2, of: ada).released == 2)
        #expect(snapshot == before)
    }

    @Test("stop their counts at the largest integer of the database")
    func countMaximum() {
        var snapshot = UsageSnapshot.team(
            of: nil,
            large: (.large(weight: 1_000), .of()),
            member: (.member(), .of())
        )
        for _ in 0..<3 { #expect(snapshot.consume(1_000_000, of: ada).status == .allowed) }
        #expect(snapshot.used == Int(Int32.max))
        #expect(snapshot.parts.map(\.counter.used) == [3_000_000, Int(Int32.max)])
    }
}
