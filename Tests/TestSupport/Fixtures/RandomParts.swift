import Usage

/// Parts of requests, and limits for them, in random histories. There are few names, so that most limits are met.
public enum RandomParts {
    private static let names: [ModelName] = ["gpt-5", "gpt-5-mini", "gpt-4", "claude"]

    /// Often none.
    public static func parts(_ random: inout SeededGenerator) -> MessageParts? {
        guard random.chance(60) else { return nil }
        return MessageParts(
            model: random.element(of: [nil] + names.map { Optional($0) }),
            member: random.element(of: [nil, user(8), user(9)])
        )
    }

    /// Limits of a plan, of which several may be for the same model.
    ///
    /// - Parameter limit: messages for a period or a window.
    public static func limits(
        _ random: inout SeededGenerator,
        limit: (inout SeededGenerator) -> Int
    ) -> [PlanLimit] {
        let patterns = ["gpt-5", "gpt-5*", "gpt*", "claude"].filter { _ in random.chance(50) }
        var limits = patterns.map { pattern in
            let fallback = random.element(of: names + ["other"])
            return PlanLimit(
                .model,
                pattern,
                label: random.element(of: [nil, "Best"]),
                allowance: random.chance(30) ? nil : limit(&random),
                window: window(&random, limit),
                weight: random.element(of: [1, 1, 2, 5]),
                fallback: fallback.text == pattern || random.chance(25) ? nil : fallback
            )
        }
        if random.chance(50) {
            let allowance = random.chance(30) ? nil : limit(&random)
            limits.append(PlanLimit(.member, "*", allowance: allowance, window: window(&random, limit)))
        }
        return limits
    }

    private static func window(
        _ random: inout SeededGenerator,
        _ limit: (inout SeededGenerator) -> Int
    ) -> Plan.Window? {
        guard random.chance(40) else { return nil }
        let messages = max(1, min(1_000_000, limit(&random)))
        return Plan.Window(messages: messages, seconds: random.element(of: [60, 3_600, 7_200, 86_400, 2_678_400]))
    }
}
