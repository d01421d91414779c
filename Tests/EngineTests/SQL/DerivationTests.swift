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
                select headroom.period_label('monthly', day), headroom.period_start('monthly', day, anchor_day, 'UTC'),
                    headroom.period_start('monthly', headroom.next_period_day('monthly', day), anchor_day, 'UTC')
                from unnest($1::timestamptz[], $2::integer[]) with ordinality as asked (at, anchor_day, ordinal)
                cross join lateral (select headroom.period_day('monthly', at, anchor_day, 'UTC')) as period (day)
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

    @Test("a day and a week of a time zone equal those of Foundation", arguments: [Plan.Cycle.daily, .weekly])
    func localCycles(cycle: Plan.Cycle) async throws {
        let zones = [
            "UTC", "Europe/Berlin", "America/New_York", "America/Havana", "Atlantic/Azores", "Asia/Tehran",
            "Asia/Beirut", "Africa/Cairo", "America/Santiago", "America/Asuncion", "America/Scoresbysund",
            "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Chatham", "Pacific/Apia", "Pacific/Kiritimati",
            "Pacific/Pago_Pago",
        ]
        print("random instants with seed \(DerivationTests.seed)")
        let database = try await TestDatabase.fresh()
        var random = SeededGenerator(seed: DerivationTests.seed)
        var requests: [(instant: Instant, plan: Plan)] = []
        for zone in zones {
            let plan = Plan(name: "local", label: "Local", cycle: cycle, timeZone: zone, allowance: nil)
            for day: Int64 in 0..<(3 * 365) {
                // All days from 2019 to 2021, when these clocks were changed, at a random time.
                let second = at("2019-01-01").secondsSince1970 + day * 86_400 + .random(in: 0..<86_400, using: &random)
                let period = try #require(BillingCycle(containing: Instant(secondsSince1970: second), plan: plan))
                requests.append((period.start, plan))
                requests.append((Instant(microsecondsSince1970: period.end.microsecondsSince1970 - 1), plan))
            }
        }
        let asked = requests
        let mistakes = try await database.psql.run { connection -> [String] in
            var parameters = Parameters()
            parameters.append(text: cycle == .daily ? "daily" : "weekly")
            parameters.appendTimestamps(count: asked.count) { asked[$0].instant.microsecondsSince1970 }
            parameters.appendTexts(count: asked.count) { asked[$0].plan.timeZone }
            let result = try connection.query(
                """
                select headroom.period_label($1, day), headroom.period_start($1, day, 1, zone),
                    headroom.period_start($1, headroom.next_period_day($1, day), 1, zone),
                    headroom.label_day(headroom.period_label($1, day)) = day
                        and headroom.label_cycle(headroom.period_label($1, day)) = $1
                from unnest($2::timestamptz[], $3::text[]) with ordinality as asked (at, zone, ordinal)
                cross join lateral (select headroom.period_day($1, at, 1, zone)) as period (day)
                order by ordinal
                """,
                parameters,
                deadline: .now + waitLimit
            )
            return try asked.indices.compactMap { row in
                let (instant, plan) = asked[row]
                let expected = BillingCycle(containing: instant, plan: plan)
                let isEqual =
                    try result.text(row, 0) == expected?.period.label
                    && result.timestamp(row, 1) == expected?.start.microsecondsSince1970
                    && result.timestamp(row, 2) == expected?.end.microsecondsSince1970
                    && result.bool(row, 3)
                return isEqual ? nil : "\(instant) in \(plan.timeZone ?? "UTC")"
            }
        }
        #expect(asked.count == zones.count * 3 * 365 * 2)
        #expect(mistakes.isEmpty)
    }

    @Test("a label has the cycle of its form, and BillingPeriod takes the same labels")
    func labelCycles() async throws {
        let labels = [
            ("2026-11", "monthly"), ("2026-13", nil), ("2026-W01", "weekly"), ("2026-W53", "weekly"), ("2025-W53", nil),
            ("2026-W00", nil), ("2026-W54", nil), ("2028-02-29", "daily"), ("2026-02-29", nil), ("2026-11-31", nil),
            ("2026-11-22", "daily"), ("2026-11-00", nil), ("0000-01-01", nil), ("0001-01-01", "daily"), ("", nil),
            ("2026-11-22 ", nil), ("2026-w01", nil),
        ]
        let psql = try await TestDatabase.fresh().psql
        for (label, cycle) in labels {
            #expect(try await psql.text("select headroom.label_cycle('\(label)')") == cycle, "\(label)")
            #expect((BillingPeriod(label) != nil) == (cycle != nil), "\(label)")
        }
        #expect(try await psql.text("select headroom.label_cycle('trial')") == nil)
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
                select headroom.tier_of(
                    headroom.taken_percent(used, nullif("limit", -1)), gentle, prominent, ordinal % 2 = 0
                )
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
                    isEnforced: row % 2 == 1,
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
