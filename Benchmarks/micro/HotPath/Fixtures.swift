import Usage

/// Typical values: a paying user in the middle of a month.
enum Fixtures {
    static let now = Instant(secondsSince1970: 1_794_398_400)
    static let start = Instant(secondsSince1970: 1_793_491_200)
    static let end = Instant(secondsSince1970: 1_796_083_200)
    static let parts = MessageParts(model: "gpt-5")
    /// A plan with a limit for that model.
    static let plan = Plan(
        name: "paid",
        label: "Premium",
        cycle: .monthly,
        allowance: 800,
        limits: [PlanLimit(.model, "gpt-5*", allowance: 400)]
    )
    static let period = BillingPeriod(year: 2026, month: 11)

    /// Users in random order, the same on every machine.
    static func user(_ number: Int) -> UserID {
        var mixed = UInt64(number) &* 0x9e37_79b9_7f4a_7c15
        mixed = (mixed ^ mixed >> 30) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
        return UserID(high: mixed ^ mixed >> 31, low: mixed &* 0xda94_2042_e4dd_58b5)
    }

    static func snapshot(used: Int) -> UsageSnapshot {
        UsageSnapshot(
            plan: plan,
            state: .active,
            period: period,
            used: used,
            limit: 800,
            startedAt: start,
            resetsAt: end,
            observedAt: now
        )
    }

    /// The answer to one more message; `used` of 800 before it.
    static func answer(used: Int, withModel: Bool = false) -> Answer {
        var snapshot = snapshot(used: used)
        if withModel { snapshot.parts = [PartUsage(.model("gpt-5"), limit: plan.limits[0])] }
        return snapshot.consume(1, of: user(1))
    }
}
