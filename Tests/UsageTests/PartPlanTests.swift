import TestSupport
import Testing

@testable import Usage

@Suite("Limits of models and members in all kinds of plans")
struct PartPlanTests {
    @Test(
        "are those of the model's exact name, or of the longest beginning of it",
        arguments: [
            ("gpt-5", "gpt-5"), ("gpt-5-mini", "gpt-5-m*"), ("gpt-5-m", "gpt-5-m*"), ("gpt-5o", "gpt-5*"),
            ("gpt-4", "*"), ("GPT-5", "*"), ("claude", "*"),
        ] as [(ModelName, String)]
    )
    func match(name: ModelName, limit: String) {
        let names = ["*", "gpt-5-m*", "gpt-5", "gpt-5*", "gpt-5-max"]
        for names in [names, names.reversed()] {
            let limits = names.map { PlanLimit(.model, $0) } + [PlanLimit(.member, "*")]
            let plan = Plan(name: "team", label: "Team", cycle: .monthly, allowance: 800, limits: limits)
            #expect(plan.limit(of: .model(name))?.name == limit)
            #expect(plan.limit(of: .member(ben))?.kind == .member)
        }
        let some = Plan(name: "some", label: "Some", cycle: .daily, allowance: 8, limits: [PlanLimit(.model, "gpt-5*")])
        #expect((some.limit(of: .model(name)) != nil) == name.text.hasPrefix("gpt-5"))
        #expect(some.limit(of: .member(ben)) == nil && Plan.paid.limit(of: .model(name)) == nil)
    }

    @Test("are for names of 1 to 64 letters, digits and some signs")
    func names() {
        for name in [
            "a", "gpt-5", "openai/gpt-5:free", "us.anthropic.claude_v2@latest", String(repeating: "x", count: 64),
        ] {
            #expect(ModelName(name)?.text == name)
        }
        for name in ["", "gpt 5", "gpt-5*", "größe", "a=b", "\"", "a\n", String(repeating: "x", count: 65)] {
            #expect(ModelName(name) == nil, "\(name)")
        }
        #expect(MessageParts() == nil)
        #expect(MessageParts(model: "large", member: ben)?.all.map(\.kind) == [.model, .member])
    }

    private static let now = "They're back in 2 hours."

    @Test(
        "refuse under each plan as it says",
        arguments: [
            // Unlimited, but 50 of the large model in three hours.
            PartExample(
                .team(3_000, of: nil, large: (.large(window: 50), .of(window: 38))),
                "ALLOWED limit=unlimited remaining=unlimited tier=silent model_limit=50 model_used=39",
                nil
            ),
            PartExample(
                .team(3_000, of: nil, large: (.large(window: 50), .of(window: 49))),
                "ALLOWED tier=blocked crossed=blocked model_remaining=0",
                "You've used your Large messages for now. \(now)"
            ),
            PartExample(
                .team(3_000, of: nil, large: (.large(window: 50), .of(window: 50))),
                "BLOCKED reason=model_limit_reached retry_after=7200 remaining=unlimited",
                "You've used your Large messages for now. \(now)"
            ),
            PartExample(
                .team(3_000, of: nil, large: (.large(20), .of(20))),
                "BLOCKED reason=model_limit_reached retry_after=1771200 model_resets=2026-12-01T00:00:00Z",
                "You've used your Large messages for now. They're back on December 1."
            ),
            // A day ends in twelve hours, and has no date.
            PartExample(
                .team(member: (.member(10), .of(7)), cycle: .daily),
                "ALLOWED tier=gentle crossed=gentle",
                "You have 2 conversations left for the next 12 hours"
            ),
            PartExample(
                .team(large: (.large(10), .of(10)), cycle: .daily),
                "BLOCKED reason=model_limit_reached retry_after=43200",
                "You've used your Large messages for now. They're back in 12 hours."
            ),
            // Nothing comes back.
            PartExample(
                .team(large: (.large(10), .of(8)), cycle: .lifetime),
                "ALLOWED display=compact -model_resets",
                "1 Large message left"
            ),
            PartExample(
                .team(large: (.large(10), .of(10)), cycle: .lifetime),
                "BLOCKED reason=model_limit_reached -retry_after -model_resets",
                "You've used your Large messages."
            ),
            PartExample(
                .team(member: (.member(10), .of(10)), cycle: .lifetime),
                "BLOCKED reason=member_limit_reached -retry_after",
                "You've used your share."
            ),
            PartExample(
                .team(large: (.large(10), .of(9)), expiresAt: "2026-12-01"),
                asking: .consume(2),
                "BLOCKED reason=model_exceeds_remaining -retry_after",
                "That needs 2 messages, and 1 is left."
            ),
            // A trial.
            PartExample(
                .team(3, of: 100, large: (.large(10), .of(2)), cycle: .trial(days: 3)),
                "ALLOWED display=trial tier=silent used=4",
                "96 of 100 trial messages remaining"
            ),
            PartExample(
                .team(3, of: 100, large: (.large(10), .of(7)), cycle: .trial(days: 3)),
                "ALLOWED display=trial tier=gentle",
                "2 Large messages left"
            ),
            PartExample(
                .team(50, of: 100, large: (.large(window: 10), .of(window: 10)), cycle: .trial(days: 3)),
                "BLOCKED reason=model_limit_reached retry_after=7200",
                "You've used your Large messages for now. \(now)"
            ),
            PartExample(
                .team(100, of: 100, large: (.large(10), .of(10)), cycle: .trial(days: 3)),
                "BLOCKED reason=trial_limit_reached -retry_after",
                "You've used your trial sessions — ready to continue?"
            ),
            // Unenforced: nothing is refused, and nothing is said beyond the limit.
            PartExample(
                .team(large: (.large(10, weight: 5), .of(7)), isEnforced: false),
                "ALLOWED tier=gentle crossed=gentle -shadow used=5",
                "2 Large messages left until December 1"
            ),
            PartExample(
                .team(large: (.large(10), .of(10)), isEnforced: false),
                "ALLOWED tier=prominent shadow=1 model_used=11 model_remaining=0 -reason",
                nil
            ),
            PartExample(
                .team(member: (.member(window: 10), .of(window: 9)), isEnforced: false),
                asking: .reserve(2),
                "HELD shadow=1 crossed=prominent member_remaining=0",
                nil
            ),
        ]
    )
    func plans(example: PartExample) { example.check() }

    @Test(
        "show what there is: no numbers without a limit or after the period, nothing left without access",
        arguments: [
            PartExample(
                .team(large: (.large(10), .of(2)), member: (.member(window: 5), .of(9, window: 3))),
                asking: .usage,
                "OK model=large-2 model_limit=10 model_used=2 model_remaining=8 model_resets=2026-12-01T00:00:00Z "
                    + "member=\(ben) member_limit=5 member_used=3 member_remaining=2 -fallback",
                nil
            ),
            PartExample(
                .team(large: (.large(), .of(2)), member: (.member(), .of(3))),
                asking: .usage,
                "OK model=large-2 model_used=2 -model_limit -model_remaining -model_resets "
                    + "member=\(ben) member_used=3 -member_limit -member_remaining",
                nil
            ),
            PartExample(
                .team(large: (.large(window: 10), .of(70))),
                asking: .usage,
                "OK model_limit=10 model_used=0 model_remaining=10 -model_resets -member",
                nil
            ),
            PartExample(
                .team(large: (.large(10), .of(2)), member: (.member(10), .of(3)), observedAt: "2026-12-01"),
                asking: .usage,
                "OK model=large-2 member=\(ben) used=0 -model_limit -model_used -model_remaining -model_resets "
                    + "-member_limit -member_used -member_remaining",
                nil
            ),
            PartExample(
                .team(large: (.large(10), .of(10)), denialReason: .expired, expiresAt: "2026-11-09"),
                "BLOCKED reason=expired model_limit=10 model_used=10 model_remaining=0 -model_resets -retry_after",
                "Your time with Team ended on November 9 — shall we go on?"
            ),
        ]
    )
    func shown(example: PartExample) { example.check() }

    @Test("count nothing of a part without a limit, which weighs one")
    func unlimitedPart() {
        var snapshot = UsageSnapshot.monthly(used: 10)
        snapshot.parts = [PartUsage(.model("other"), limit: nil), PartUsage(.member(ben), limit: nil)]
        let answer = snapshot.consume(2, of: ada)
        #expect(snapshot.used == 12 && snapshot.parts.map(\.counter) == [PartCounter(), PartCounter()])
        let fields = FieldList(answer).values
        let without = FieldList(UsageSnapshot.monthly(used: 12).check(1, of: ada)).values
        #expect(fields == without.merging(["model": "other", "member": "\(ben)"]) { $1 })
    }

    // MARK: The fallback

    private static func small(_ limit: PlanLimit? = nil, _ used: Int = 0) -> PartUsage.Fallback {
        PartUsage.Fallback(model: "small", limit: limit, counter: .of(used))
    }

    private static let smallLimit = PlanLimit(.model, "small", label: "Small", allowance: 30, weight: 2)
    private static let usedUp = "You've used your Large messages for now. They're back on December 1."
    private static let offer = "We can go on with Small meanwhile."

    @Test(
        "offer the fallback only if the messages fit with it, by its own weight",
        arguments: [
            PartExample(
                .team(large: (.large(50, fallback: "small"), .of(50)), fallback: small(smallLimit, 29)),
                "BLOCKED reason=model_limit_reached fallback=small",
                "\(usedUp) \(offer)"
            ),
            PartExample(
                .team(large: (.large(50, fallback: "small"), .of(50)), fallback: small(smallLimit, 30)),
                "BLOCKED reason=model_limit_reached -fallback",
                usedUp
            ),
            // Without a row of its own it has no label, no limit and no weight.
            PartExample(
                .team(799, large: (.large(50, fallback: "small"), .of(50)), fallback: small()),
                "BLOCKED reason=model_limit_reached fallback=small",
                "\(usedUp) We can go on with small meanwhile."
            ),
            PartExample(
                .team(799, large: (.large(50, fallback: "small"), .of(50)), fallback: small(smallLimit)),
                "BLOCKED reason=model_limit_reached -fallback",
                usedUp
            ),
            // The model has room, and the user has none for its weight.
            PartExample(
                .team(797, large: (.large(weight: 5, fallback: "small"), .of()), fallback: small(smallLimit)),
                "BLOCKED reason=exceeds_remaining fallback=small",
                "That needs 5 messages, and 3 are left until December 1. \(offer)"
            ),
            PartExample(
                .team(
                    large: (.large(weight: 5, fallback: "small"), .of()),
                    member: (.member(20), .of(15)),
                    fallback: small(smallLimit)
                ),
                asking: .consume(2),
                "BLOCKED reason=member_exceeds_remaining fallback=small",
                "That needs 10 messages, and 5 are left until December 1. \(offer)"
            ),
            PartExample(
                .team(large: (.large(50, fallback: "small"), .of(50)), member: (.member(9), .of(9)), fallback: small()),
                "BLOCKED reason=model_limit_reached -fallback",
                usedUp
            ),
            PartExample(
                .team(800, large: (.large(50, fallback: "small"), .of(50)), fallback: small()),
                "BLOCKED reason=limit_reached -fallback",
                "We've had a lot of great conversations this month! Your next session refreshes on December 1."
            ),
            PartExample(
                .team(large: (.large(0, fallback: "small"), .of()), fallback: small(smallLimit)),
                "BLOCKED reason=model_limit_reached fallback=small",
                "Your plan has no room for Large messages right now. \(offer)"
            ),
            // Only a refusal offers it, and only to a user with access.
            PartExample(
                .team(large: (.large(50, fallback: "small"), .of(49)), fallback: small()),
                "ALLOWED crossed=blocked -fallback",
                usedUp
            ),
            PartExample(
                .team(large: (.large(50, fallback: "small"), .of(50)), fallback: small()),
                asking: .usage,
                "OK tier=blocked -fallback",
                usedUp
            ),
            PartExample(
                .team(
                    large: (.large(50, fallback: "small"), .of(50)),
                    fallback: small(),
                    denialReason: .expired,
                    expiresAt: "2026-11-09"
                ),
                "BLOCKED reason=expired -fallback",
                "Your time with Team ended on November 9 — shall we go on?"
            ),
        ]
    )
    func fallback(example: PartExample) { example.check() }

    @Test("name the model and its fallback in every language")
    func languages() {
        let snapshot = UsageSnapshot.team(
            large: (.large(50, fallback: "small"), .of(50)),
            fallback: PartPlanTests.small(PartPlanTests.smallLimit)
        )
        for language in LanguageTag.shipped {
            let texts = snapshot.check(1, of: ada).texts(in: Words.shipped.vocabulary(for: language))
            #expect(texts.fallback == "small")
            #expect(texts.banner?.contains("Large") == true && texts.banner?.contains("Small") == true, "\(language)")
        }
    }
}
