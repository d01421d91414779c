import Postgres
import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("Derivations in SQL")
struct DerivationTests {
    private static let seed: UInt64 = 20_261_110

    @Test("the start and month of a cycle equal those of BillingCycle, for every anchor day")
    func cycles() async throws {
        print("random instants with seed \(DerivationTests.seed)")
        let database = try await TestDatabase.fresh()
        var random = SeededGenerator(seed: DerivationTests.seed)
        var instants: [(instant: Instant, anchorDay: Int)] = []
        for anchorDay in 1...31 {
            for _ in 0..<60 {
                let second = Int64.random(in: 0..<(130 * 366 * 86_400), using: &random)
                let instant = Instant(secondsSince1970: second)
                let cycle = BillingCycle(containing: instant, anchorDay: anchorDay)
                instants.append((instant, anchorDay))
                // The boundaries of periods.
                instants.append((cycle.start, anchorDay))
                instants.append((Instant(microsecondsSince1970: cycle.end.microsecondsSince1970 - 1), anchorDay))
            }
        }
        let requests = instants
        let mistakes = try await database.psql.run { connection -> [String] in
            var parameters = Parameters()
            parameters.appendTimestamps(count: requests.count) { requests[$0].instant.microsecondsSince1970 }
            parameters.appendInt32s(count: requests.count) { Int32(requests[$0].anchorDay) }
            let result = try connection.query(
                """
                select headroom.month_label(month), headroom.cycle_start(month, anchor_day),
                    headroom.cycle_start((month + interval '1 month')::date, anchor_day)
                from unnest($1::timestamptz[], $2::integer[]) with ordinality as asked (at, anchor_day, ordinal)
                cross join lateral (select headroom.cycle_month(at, anchor_day)) as cycle (month)
                order by ordinal
                """,
                parameters,
                deadline: .now + waitLimit
            )
            return try requests.indices.compactMap { row in
                let (instant, anchorDay) = requests[row]
                let cycle = BillingCycle(containing: instant, anchorDay: anchorDay)
                let isEqual =
                    try result.text(row, 0) == cycle.period.label
                    && result.timestamp(row, 1) == cycle.start.microsecondsSince1970
                    && result.timestamp(row, 2) == cycle.end.microsecondsSince1970
                return isEqual ? nil : "\(instant.microsecondsSince1970) µs with anchor \(anchorDay)"
            }
        }
        #expect(requests.count == 31 * 180)
        #expect(mistakes.isEmpty)
    }

    @Test("the tier equals that of Tier")
    func tiers() async throws {
        let database = try await TestDatabase.fresh()
        var random = SeededGenerator(seed: DerivationTests.seed)
        var requests: [(used: Int, limit: Int?, gentle: Int, prominent: Int)] = []
        for _ in 0..<4_000 {
            let gentle = Int.random(in: 0...100, using: &random)
            let prominent = Int.random(in: gentle...100, using: &random)
            let limit = random.element(of: [0, 1, 2, 3, 7, 99, 100, 101, 800, UsageSnapshot.countMaximum])
            let percent = random.element(of: [gentle, prominent, 100, Int.random(in: 0...120, using: &random)])
            let used = limit * percent / 100 + random.element(of: [-1, 0, 1])
            requests.append(
                (min(max(0, used), UsageSnapshot.countMaximum), random.chance(5) ? nil : limit, gentle, prominent)
            )
        }
        let questions = requests
        let mistakes = try await database.psql.run { connection -> [String] in
            var parameters = Parameters()
            parameters.appendInt64s(count: questions.count) { Int64(questions[$0].used) }
            // -1 means unlimited.
            parameters.appendInt64s(count: questions.count) { Int64(questions[$0].limit ?? -1) }
            parameters.appendInt32s(count: questions.count) { Int32(questions[$0].gentle) }
            parameters.appendInt32s(count: questions.count) { Int32(questions[$0].prominent) }
            let result = try connection.query(
                """
                select headroom.tier_of(used, nullif("limit", -1), gentle, prominent)
                from unnest($1::bigint[], $2::bigint[], $3::integer[], $4::integer[])
                    with ordinality as asked (used, "limit", gentle, prominent, ordinal)
                order by ordinal
                """,
                parameters,
                deadline: .now + waitLimit
            )
            return questions.indices.compactMap { row in
                let (used, limit, gentle, prominent) = questions[row]
                let plan = Plan(
                    name: "any",
                    label: "Any",
                    cycle: .monthly,
                    allowance: limit,
                    gentlePercent: gentle,
                    prominentPercent: prominent
                )
                let tier = Tier(used: used, limit: limit, plan: plan).rawValue
                let answer = result.text(row, 0)
                return answer == tier ? nil : "\(questions[row]) is \(tier), SQL says \(answer)"
            }
        }
        #expect(mistakes.isEmpty)
    }
}
