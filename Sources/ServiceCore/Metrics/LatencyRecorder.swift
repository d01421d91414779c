import Engine
import Synchronization

/// How long answers took on one event loop: all of them since the start, and those of the last seconds.
///
/// Only the sums since the start are counted. With the first answer of each second, a copy of them is stored. The
/// answers of the last seconds are the difference between the sums and one of the copies, so no timer runs on an idle
/// service.
package final class LatencyRecorder: Sendable {
    /// What "the last seconds" are: this many whole ones and the one that has begun.
    static let windowSeconds: UInt64 = 5

    /// The sums as they were when a second began.
    private final class SecondStart: Sendable {
        let second = Atomic<UInt64>(0)
        let counts = CounterCells(count: LatencyBuckets.count)
    }

    private let counts = CounterCells(count: LatencyBuckets.count)
    private let sum = CounterCells(count: 1)
    /// A ring that is longer than the window, so that no reader uses the copy that is being overwritten.
    private let secondStarts = (0..<8).map { _ in SecondStart() }
    private let newestSecond = Atomic<UInt64>(0)

    /// Is called before recording, once for all answers that are sent together.
    ///
    /// - Parameter second: of a clock that all event loops share; never 0.
    package func begin(second: UInt64) {
        guard newestSecond.load(ordering: .relaxed) != second else { return }
        let start = secondStarts[Int(second % UInt64(secondStarts.count))]
        start.counts.copy(from: counts)
        start.second.store(second, ordering: .releasing)
        newestSecond.store(second, ordering: .relaxed)
    }

    @inline(__always)
    package func record(microseconds: UInt32) {
        counts.increment(LatencyBuckets.index(of: microseconds))
    }

    /// Is called after recording, once for all answers that are sent together.
    ///
    /// - Parameter microseconds: the sum of what was recorded.
    package func addToTotal(microseconds: UInt64) {
        sum.add(microseconds, to: 0)
    }

    /// Microseconds since the start.
    var totalMicroseconds: UInt64 { sum[0] }

    /// Counts per bucket since the start.
    var total: [UInt64] { counts.values }

    /// Counts per bucket since the beginning of the second that was `windowSeconds` before this one.
    func recent(second: UInt64) -> [UInt64] {
        let first = second - min(second, LatencyRecorder.windowSeconds)
        // Nothing was recorded between the beginning of the window and its oldest copy.
        let oldest =
            secondStarts
            .filter { (first...second).contains($0.second.load(ordering: .acquiring)) }
            .min { $0.second.load(ordering: .relaxed) < $1.second.load(ordering: .relaxed) }
        guard let oldest else { return Array(repeating: 0, count: LatencyBuckets.count) }
        return (0..<LatencyBuckets.count).map { counts[$0] &- oldest.counts[$0] }
    }
}
