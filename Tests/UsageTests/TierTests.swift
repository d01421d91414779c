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
