import Engine
import LineProtocol
import TestSupport
import Testing
import Usage

@testable import ServiceCore

@Suite("Counters and latencies")
struct MetricsTests {
    @Test("every verb and tier has its ordinal in allCases")
    func places() {
        #expect(Verb.allCases.map(\.ordinal) == Array(Verb.allCases.indices))
        #expect(Tier.allCases.map(\.ordinal) == Array(Tier.allCases.indices))
        let answers = LoopMetrics.Status.allCases.flatMap { status in
            Tier.allCases.map { LoopMetrics.ordinal(status, $0) }
        }
        #expect(Set(answers).count == answers.count)
        #expect(answers.allSatisfy { (0..<LoopMetrics().answers.count).contains($0) })
    }

    @Test("a bucket's maximum is at least its values, and at most a sixteenth larger")
    func buckets() {
        var values = Array(UInt32(0)...4_096)
        for shift in 5..<32 { values += [UInt32(1) << UInt32(shift) - 1, 1 << UInt32(shift), 1 << UInt32(shift) + 1] }
        values.append(.max)
        for value in values {
            let bucket = LatencyBuckets.index(of: value)
            let maximum = LatencyBuckets.maximum(of: bucket)
            #expect(bucket < LatencyBuckets.count)
            #expect(maximum >= value)
            #expect(maximum - value <= value / 16, "\(value) in a bucket up to \(maximum)")
            if bucket > 0 { #expect(LatencyBuckets.maximum(of: bucket - 1) < value) }
        }
    }

    @Test("doubling buckets count the latencies below each power of two, and their sum is exact")
    func doubling() {
        let seed = SeededGenerator.newSeed()
        var generator = SeededGenerator(seed: seed)
        var values: [UInt32] = [0, 1, 15, 16, 31, 32, 1_023, 1_024, .max]
        for _ in 0..<500 {
            let maximum = UInt32.max >> UInt32.random(in: 0..<32, using: &generator)
            values.append(UInt32.random(in: 0...maximum, using: &generator))
        }
        let metrics = ServiceMetrics(eventLoops: 2)
        for (index, value) in values.enumerated() {
            let latencies = metrics.loops[index % 2].latencies
            latencies.begin(second: 1)
            latencies.record(microseconds: value)
            latencies.addToTotal(microseconds: UInt64(value))
        }
        let counts = metrics.snapshot().latencyCounts
        #expect(counts.sum == values.reduce(0) { $0 + UInt64($1) })
        for bucket in counts.counts.indices {
            let below = values.count { UInt64($0) < 1 << UInt64(bucket) }
            #expect(counts.counts[...bucket].reduce(0, +) == UInt64(below), "below 2^\(bucket), seed \(seed)")
        }
    }

    @Test("percentiles are those of a sorted list, rounded up to the maximum of the bucket")
    func percentiles() {
        let seed = SeededGenerator.newSeed()
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            let count = Int.random(in: 1...300, using: &generator)
            let magnitude = UInt32.random(in: 1...30, using: &generator)
            let values = (0..<count).map { _ in UInt32.random(in: 0...(1 << magnitude), using: &generator) }.sorted()
            var counts = Array(repeating: UInt64(0), count: LatencyBuckets.count)
            for value in values { counts[LatencyBuckets.index(of: value)] += 1 }
            for percent in [0.1, 50, 99, 100] {
                let rank = max(1, Int((Double(count) * percent / 100).rounded(.up)))
                let exact = LatencyBuckets.maximum(of: LatencyBuckets.index(of: values[rank - 1]))
                #expect(LatencyBuckets.percentile(percent, of: counts) == exact, "seed \(seed)")
            }
        }
        #expect(LatencyBuckets.percentile(50, of: Array(repeating: 0, count: LatencyBuckets.count)) == nil)
    }

    @Test("recent latencies are those of the last seconds, after any pause, and the total has all")
    func window() {
        let seed = SeededGenerator.newSeed()
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<100 {
            let recorder = LatencyRecorder()
            var recorded: [UInt64] = []
            var second = UInt64.random(in: 1...20, using: &generator)
            for _ in 0..<40 {
                second += UInt64.random(in: 0...9, using: &generator)
                for _ in 0..<Int.random(in: 0...3, using: &generator) {
                    recorder.begin(second: second)
                    recorder.record(microseconds: 7)
                    recorded.append(second)
                }
                let asked = second + UInt64.random(in: 0...7, using: &generator)
                let expected = recorded.count { $0 + LatencyRecorder.windowSeconds >= asked }
                #expect(recorder.recent(second: asked).reduce(0, +) == UInt64(expected), "seed \(seed)")
            }
            #expect(recorder.total[7] == UInt64(recorded.count))
        }
    }

    @Test("answers are counted by outcome and tier, requests by verb, errors by code, over all loops")
    func counting() throws {
        let metrics = ServiceMetrics(eventLoops: 2)
        let user = UserID(high: 1, low: 2)
        var snapshot = UsageSnapshot.monthly(used: 639)
        let answers = [
            snapshot.consume(1, of: user), snapshot.check(1_000, of: user), snapshot.usage(of: user),
            Answer(user: user, status: .held, snapshot: snapshot),
        ]
        for (index, answer) in answers.enumerated() { metrics.loops[index % 2].count(.answer(answer)) }
        metrics.loops[0].count(.periodUsages([]))
        metrics.loops[1].count(.failure(EngineError(.unavailable, "")))
        metrics.loops[0].count(.command(.info))
        metrics.loops[1].count(.command(.info))
        metrics.loops[1].count(.failure(ReplyError(code: .badArg, text: "")))
        let figures = metrics.snapshot()
        #expect(LoopMetrics.Status.allCases.map { figures.answers($0) } == [1, 1, 1, 1])
        #expect(Tier.allCases.map { figures.answers($0) } == [0, 4, 0, 0])
        #expect(figures.answers(.blocked, .gentle) == 1)
        #expect(figures.requests(.info) == 2)
        #expect(figures.requests(.consume) == 0)
        #expect(figures.errors(.unavailable) == 1)
        #expect(figures.errors(.badArg) == 1)
        #expect(figures.errorsTotal == 2)
    }
}
