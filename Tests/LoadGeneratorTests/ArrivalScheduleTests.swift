import Foundation
import Testing

@testable import LoadGenerator

@Suite("Arrival schedule")
struct ArrivalScheduleTests {
    private func dues(_ schedule: ArrivalSchedule, count: Int) -> [UInt64] {
        var schedule = schedule
        return (0..<count).map { _ in
            defer { schedule.advance() }
            return schedule.due
        }
    }

    @Test("The gaps of even arrivals are a second divided by the rate, without adding rounding errors")
    func even() {
        let start: UInt64 = 1_000_000_000_000
        let schedule = ArrivalSchedule(.even, rate: 3_000, start: start, random: SeededRandom(seed: 1))
        let dues = dues(schedule, count: 3_000_001)
        #expect(dues[0] == start)
        for index in [1, 2, 3, 3_000, 1_000_000, 3_000_000] {
            let exact = Double(start) + Double(index) * 1e9 / 3_000
            #expect(abs(Double(dues[index]) - exact) < 1_000, "\(index)")
        }
    }

    @Test("Even arrivals of several workers interleave")
    func workers() {
        let all = (0..<4).flatMap { worker in
            let schedule = ArrivalSchedule(
                .even,
                rate: 1_000,
                start: 0,
                worker: worker,
                of: 4,
                random: SeededRandom(seed: 1)
            )
            return dues(schedule, count: 100)
        }
        #expect(all.sorted() == (0..<400).map { UInt64($0) * 1_000_000 })
    }

    @Test("The gaps of Poisson arrivals are exponential", arguments: [1, 2])
    func poisson(workers: Int) {
        let schedule = ArrivalSchedule(.poisson, rate: 1_000, start: 5_000, of: workers, random: SeededRandom(seed: 3))
        let dues = dues(schedule, count: 200_001)
        #expect(dues[0] > 5_000)
        let mean = 1e6 * Double(workers)
        let gaps = zip(dues, dues.dropFirst()).map { Double($1 - $0) / mean }
        let count = Double(gaps.count)
        let average = gaps.reduce(0, +) / count
        let variance = gaps.map { ($0 - average) * ($0 - average) }.reduce(0, +) / count
        #expect(abs(average - 1) < 0.01)
        #expect(abs(variance - 1) < 0.03)
        for multiple in [0.1, 1, 3] {
            let longer = Double(gaps.count { $0 > multiple }) / count
            #expect(abs(longer - exp(-multiple)) < 0.005, "\(multiple)")
        }
    }

    @Test("The same seed gives the same schedule")
    func seeds() {
        func schedule(_ seed: UInt64) -> ArrivalSchedule {
            ArrivalSchedule(.poisson, rate: 10, start: 0, random: SeededRandom(seed: seed))
        }
        #expect(dues(schedule(1), count: 100) == dues(schedule(1), count: 100))
        #expect(dues(schedule(1), count: 100) != dues(schedule(2), count: 100))
    }
}
