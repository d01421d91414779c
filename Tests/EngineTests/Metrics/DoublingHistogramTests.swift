import TestSupport
import Testing

@testable import Engine

@Suite("A histogram of doubling buckets")
struct DoublingHistogramTests {
    @Test("has each number in the first bucket whose bound is not below it, and all numbers in its sum")
    func buckets() {
        let seed = SeededGenerator.newSeed()
        var generator = SeededGenerator(seed: seed)
        var values: [UInt64] = [0, 1, 2, 3, 4, 5, 512, 513, 1 << 32, 1 << 33]
        for _ in 0..<500 {
            let magnitude = UInt64.random(in: 0...34, using: &generator)
            values.append(UInt64.random(in: 0...(1 << magnitude), using: &generator))
        }
        let histogram = DoublingHistogram()
        var expected = Array(repeating: UInt64(0), count: DoublingHistogram.bucketCount)
        for value in values {
            histogram.record(value)
            let bounded = expected.indices.first { value <= 1 << UInt64($0) }
            expected[bounded ?? DoublingHistogram.bucketCount - 1] += 1
        }
        #expect(histogram.counts.counts == expected, "seed \(seed)")
        #expect(histogram.counts.sum == values.reduce(0, +), "seed \(seed)")
        #expect(histogram.counts.count == UInt64(values.count))
    }

    @Test("takes times as microseconds that have begun, so that no bound is below what is under it")
    func durations() {
        let histogram = DoublingHistogram()
        let times: [Duration] = [
            .nanoseconds(1), .microseconds(4), .microseconds(4) + .nanoseconds(1), .seconds(1), .zero, .seconds(-1),
        ]
        for time in times { histogram.record(time) }
        var expected = BucketCounts()
        for (bucket, count) in [(0, 3), (2, 1), (3, 1), (20, 1)] { expected.counts[bucket] = UInt64(count) }
        expected.sum = 1 + 4 + 5 + 1_000_000
        #expect(histogram.counts == expected)
    }
}
