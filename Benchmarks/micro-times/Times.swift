import Benchmark
import CMeasuredRegion
import HotPath

/// The bodies of HotPath, timed. script/microbench checks their counts; here they are for information only, because a
/// process measures everything that it does meanwhile.
let benchmarks: @Sendable () -> Void = {
    let allocations = BenchmarkMetric.custom("Allocations per 1,000 requests", useScalingFactor: false)
    Benchmark.defaultConfiguration = .init(
        metrics: [.wallClock, allocations],
        warmupIterations: 100,
        scalingFactor: .one,
        maxDuration: .milliseconds(500),
        maxIterations: 100_000
    )
    for benchmarkCase in BenchmarkCase.all {
        // A call of less than a microsecond is shorter than reading the clock.
        let calls = max(1, 1_024 / benchmarkCase.requests)
        let call = benchmarkCase.prepare()
        Benchmark("\(benchmarkCase.name) (\(calls * benchmarkCase.requests) requests)") { benchmark in
            let before = headroom_allocation_count()
            benchmark.startMeasurement()
            for _ in 0..<calls { call() }
            benchmark.stopMeasurement()
            let allocated = headroom_allocation_count() - before
            benchmark.measurement(allocations, Int(allocated) * 1_000 / (calls * benchmarkCase.requests))
        }
    }
}
