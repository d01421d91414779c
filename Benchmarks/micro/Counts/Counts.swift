import CMeasuredRegion
import HotPath

/// Warms each case up, then runs it in the measured region and prints name, requests, calls and allocations with tabs
/// between.
@main
struct Counts {
    static func main() {
        for benchmark in BenchmarkCase.all {
            let calls = max(16, 1_024 / benchmark.requests)
            let measured = Measured(benchmark.prepare())
            let context = Unmanaged.passUnretained(measured).toOpaque()
            for _ in 0..<calls { call(context) }
            let before = headroom_allocation_count()
            headroom_measured_region(call, context, Int64(calls))
            let allocations = headroom_allocation_count() - before
            withExtendedLifetime(measured) {}
            print(benchmark.name, benchmark.requests, calls, allocations, separator: "\t")
        }
    }
}

private func call(_ context: UnsafeMutableRawPointer) {
    Unmanaged<Measured>.fromOpaque(context).takeUnretainedValue().call()
}

private final class Measured {
    let call: () -> Void

    init(_ call: @escaping () -> Void) {
        self.call = call
    }
}
