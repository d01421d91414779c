import Postgres
import TestSupport
import Testing
import Usage

@testable import Billing

@Suite("The period that was paid, in SQL")
struct PaidPeriodTests {
    private struct Request {
        var cycle: String
        var periods: PaidPeriods
        var paidUntil: Instant?
        var instant: Instant

        func expected() -> (start: Instant, end: Instant) { periods.period(at: instant, until: paidUntil) }
    }

    private static func request(_ random: inout SeededGenerator) -> Request {
        func within(_ days: Int64, after start: Instant) -> Instant {
            start.advanced(bySeconds: .random(in: 0...days * 86_400, using: &random))
        }
        let cycle = random.element(of: ["monthly", "weekly"])
        let length: PaidPeriods.Length = cycle == "weekly" ? .week : .month
        let start = within(4_000, after: at("2026-01-01"))
        let end = random.chance(20) ? nil : within(random.element(of: [7, 40, 800]), after: start)
        let payment = PaidPeriods.Payment(
            start: start,
            end: end,
            anchor: random.chance(30) ? within(60, after: start.advanced(bySeconds: -2_592_000)) : nil,
            isTrial: false
        )
        var periods = PaidPeriods.paid(payment, after: nil, paidUntil: nil, refunded: nil, length)
        var paidUntil = end
        if let old = end, random.chance(50) {
            // Another payment, or an extension.
            let new = within(random.element(of: [3, 40, 400]), after: old)
            if random.chance(50) {
                let next = PaidPeriods.Payment(start: old, end: new, isTrial: false)
                periods = .paid(next, after: periods, paidUntil: old, refunded: nil, length)
            } else {
                periods.extend(from: old, to: new, at: within(40, after: start))
            }
            paidUntil = new
        }
        let instant =
            switch Int.random(in: 0..<5, using: &random) {
            case 0: periods.endsAt
            case 1: paidUntil ?? start
            case 2: periods.period(at: within(300, after: start), until: paidUntil).end
            default: within(500, after: start)
            }
        let shift = Int64.random(in: -1...1, using: &random)
        return Request(
            cycle: cycle,
            periods: periods,
            paidUntil: paidUntil,
            instant: Instant(microsecondsSince1970: instant.microsecondsSince1970 + shift)
        )
    }

    @Test("is that of the reducer", arguments: SeededGenerator.seeds)
    func equal(seed: UInt64) async throws {
        print("random periods with seed \(seed)")
        var random = SeededGenerator(seed: seed)
        let requests = (0..<2_000).map { _ in PaidPeriodTests.request(&random) }
        let mistakes = try await TestDatabase.fresh().psql.run { connection -> [String] in
            var parameters = Parameters()
            let count = requests.count
            parameters.appendTexts(count: count) { requests[$0].cycle }
            parameters.appendTimestamps(count: count) { requests[$0].periods.startedAt.microsecondsSince1970 }
            parameters.appendTimestamps(count: count) { requests[$0].periods.endsAt.microsecondsSince1970 }
            parameters.appendInt32s(count: count) { Int32(requests[$0].periods.anchorDay) }
            parameters.appendTimestamps(count: count) { requests[$0].paidUntil?.microsecondsSince1970 }
            parameters.appendTimestamps(count: count) { requests[$0].instant.microsecondsSince1970 }
            let result = try connection.query(
                """
                select period.bounds[1], period.bounds[2]
                from unnest($1::text[], $2::timestamptz[], $3::timestamptz[], $4::integer[], $5::timestamptz[],
                    $6::timestamptz[]) with ordinality as asked (cycle, started_at, ends_at, day, paid_until, at, place)
                cross join lateral headroom.paid_period(
                    cycle, started_at, ends_at, day, paid_until, at
                ) as period (bounds)
                order by place
                """,
                parameters,
                deadline: .now + waitLimit
            )
            return try requests.indices.compactMap { row in
                let expected = requests[row].expected()
                let isEqual =
                    try result.timestamp(row, 0) == expected.start.microsecondsSince1970
                    && result.timestamp(row, 1) == expected.end.microsecondsSince1970
                return isEqual ? nil : "\(requests[row]), expected \(expected)"
            }
        }
        #expect(mistakes.isEmpty, "\(mistakes.first ?? "")")
    }
}
