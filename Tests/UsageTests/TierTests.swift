import Testing
import Usage

@Suite("A tier")
struct TierTests {
    @Test(
        "begins at 80 %, 95 % and 100 % of the limit, in exact integers",
        arguments: [
            (800, 0, .silent), (800, 639, .silent), (800, 640, .gentle), (800, 759, .gentle), (800, 760, .prominent),
            (800, 799, .prominent), (800, 800, .blocked), (800, 801, .blocked), (100, 79, .silent), (100, 80, .gentle),
            (100, 94, .gentle), (100, 95, .prominent), (100, 99, .prominent), (100, 100, .blocked),
            // 80 % of 7 is 5.6, 95 % is 6.65; 80 % of 3 is 2.4; 95 % of 3 is 2.85.
            (7, 5, .silent), (7, 6, .gentle), (7, 7, .blocked), (3, 2, .silent), (3, 3, .blocked), (1, 0, .silent),
            (1, 1, .blocked), (101, 80, .silent), (101, 81, .gentle), (101, 95, .gentle), (101, 96, .prominent),
        ] as [(Int, Int, Tier)]
    )
    func percentages(limit: Int, used: Int, tier: Tier) {
        #expect(Tier(used: used, limit: limit, plan: .paid) == tier)
    }

    @Test(
        "begins at the plan's own percentages",
        arguments: [
            (49, .silent), (50, .gentle), (89, .gentle), (90, .prominent), (199, .prominent), (200, .blocked),
        ] as [(Int, Tier)]
    )
    func customPercentages(used: Int, tier: Tier) {
        let plan = Plan(
            name: "early",
            label: "Early",
            cycle: .monthly,
            allowance: 200,
            gentlePercent: 25,
            prominentPercent: 45
        )
        #expect(Tier(used: used, limit: 200, plan: plan) == tier)
    }

    @Test("is blocked with a limit of 0")
    func limitZero() {
        #expect(Tier(used: 0, limit: 0, plan: .paid) == .blocked)
        #expect(Tier(used: 0, limit: 0, plan: .free) == .blocked)
    }

    @Test("is always silent without a limit")
    func unlimited() {
        #expect(Tier(used: 0, limit: nil, plan: .pro) == .silent)
        #expect(Tier(used: UsageSnapshot.countMaximum, limit: nil, plan: .pro) == .silent)
    }

    @Test("is blocked after a downgrade below the count")
    func downgrade() {
        let snapshot = UsageSnapshot.monthly(used: 500, limit: 300)
        #expect(snapshot.tier == .blocked)
        #expect(snapshot.remaining == 0)
        #expect(snapshot.used == 500)
        #expect(UsageSnapshot.monthly(used: 500, limit: 800).remaining == 300)
    }

    @Test("includes held messages, and is blocked without access")
    func heldAndLapsed() {
        var snapshot = UsageSnapshot.monthly(used: 600)
        #expect(snapshot.tier == .silent)
        snapshot.held = 40
        #expect(snapshot.tier == .gentle)
        #expect(snapshot.remaining == 160)
        snapshot.denialReason = .revoked
        #expect(snapshot.tier == .blocked)
        #expect(snapshot.remaining == 0)
    }

    @Test("is ordered from silent to blocked")
    func order() {
        #expect(Array(Tier.allCases.reversed()).sorted() == [.silent, .gentle, .prominent, .blocked])
    }

    @Test(
        "is displayed according to the plan",
        arguments: [
            (.silent, .hidden, .trial, .compact), (.gentle, .compact, .trial, .compact),
            (.prominent, .compact, .trial, .compact), (.blocked, .blocked, .blocked, .blocked),
        ] as [(Tier, Display, Display, Display)]
    )
    func display(tier: Tier, monthly: Display, trial: Display, lifetime: Display) {
        #expect(Display(tier: tier, plan: .paid, limit: 800) == monthly)
        #expect(Display(tier: tier, plan: .trial, limit: 100) == trial)
        #expect(Display(tier: tier, plan: .free, limit: 3) == lifetime)
        #expect(Display(tier: tier, plan: .free, limit: nil) == monthly)
    }
}
