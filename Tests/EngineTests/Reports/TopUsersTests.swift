import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("The users with the most messages")
struct TopUsersTests {
    private let november = billingPeriod("2026-11")

    private func usage(_ number: UInt64, _ used: Int) -> PeriodUsage {
        PeriodUsage(user: user(number), period: billingPeriod("2026-11"), used: used, limit: 800, tier: .silent)
    }

    @Test("do not depend on how the rows are split into page ranges", arguments: [1, 2, 7, 1_000])
    func ranges(size: Int) {
        let seed = SeededGenerator.newSeed()
        var random = SeededGenerator(seed: seed)
        let rows = (0..<500).map { usage($0, Int.random(in: 0...60, using: &random)) }.shuffled(using: &random)
        let expected = rows.sorted { $0.used == $1.used ? $0.user < $1.user : $0.used > $1.used }.prefix(10)
        var top = TopUsers(count: 10, of: november)
        for start in stride(from: 0, to: rows.count, by: size) {
            let range = rows[start..<min(start + size, rows.count)].filter { $0.used >= top.usedMinimum }
            top.merge(Array(range))
        }
        #expect(top.sorted == Array(expected), "seed \(seed)")
    }

    @Test("are all users if there are fewer than requested")
    func few() {
        var top = TopUsers(count: 3, of: november)
        #expect(top.sorted.isEmpty && top.usedMinimum == 0)
        top.merge([usage(1, 0), usage(2, 5)])
        #expect(top.sorted == [usage(2, 5), usage(1, 0)])
        #expect(top.usedMinimum == 0)
        top.merge([usage(3, 2)])
        #expect(top.usedMinimum == 0, "the third has none")
        top.merge([usage(4, 9)])
        #expect(top.sorted == [usage(4, 9), usage(2, 5), usage(3, 2)])
        #expect(top.usedMinimum == 2)
    }

    @Test("stand once each: a row that moved on while the table was read counts as it is now")
    func moved() {
        var top = TopUsers(count: 2, of: november)
        top.merge([usage(1, 10), usage(2, 20), usage(3, 5)])
        top.merge([usage(1, 30)])
        #expect(top.sorted == [usage(1, 30), usage(2, 20)])
    }

    @Test("stand with each of their periods in a month, and once among those of open periods")
    func numbered() {
        var second = usage(1, 20)
        second.period = billingPeriod("2026-11.2")
        var top = TopUsers(count: 3, of: november)
        top.merge([usage(1, 20), usage(2, 5)])
        top.merge([second])
        #expect(top.sorted == [usage(1, 20), second, usage(2, 5)])
        var open = TopUsers(count: 3, of: .open)
        open.merge([usage(1, 20), usage(2, 5)])
        open.merge([second])
        #expect(open.sorted == [second, usage(2, 5)], "a period began while the table was read")
    }
}
