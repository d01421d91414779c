import Engine
import Synchronization

/// How long answers took on one event loop: all of them since the start, and those of the last seconds.
///
/// Only the sums since the start are counted. With the first answer of each second a copy of them is laid aside; the last
/// seconds are the difference to the right copy, and no timer runs on an idle service.
final class LatencyRecorder: Sendable {
    /// What "the last seconds" are: this many whole ones and the one that has begun.
    static let windowSeconds: UInt64 = 5

    /// The sums as they were when a second began.
    private final class Past: Sendable {
        let second = Atomic<UInt64>(0)
        let counts = CounterCells(count: LatencyBuckets.count)
    }

    private let counts = CounterCells(count: LatencyBuckets.count)
    private let sum = CounterCells(count: 1)
    /// One more than the window needs and then some: the copy that is being written is not one that anybody reads.
    private let pasts = (0..<8).map { _ in Past() }
    private let newestSecond = Atomic<UInt64>(0)

    /// Before recording, once for all answers that go out together.
    ///
    /// - Parameter second: of a clock that all event loops share; never 0.
    func begin(second: UInt64) {
        guard newestSecond.load(ordering: .relaxed) != second else { return }
        let past = pasts[Int(second % UInt64(pasts.count))]
        past.counts.copy(from: counts)
        past.second.store(second, ordering: .releasing)
        newestSecond.store(second, ordering: .relaxed)
    }

    @inline(__always)
    func record(microseconds: UInt32) {
        counts.raise(LatencyBuckets.index(of: microseconds))
    }

    /// After recording, once for all answers that go out together: what was recorded, added up.
    func end(microseconds: UInt64) {
        sum.add(microseconds, to: 0)
    }

    /// Microseconds since the start.
    var totalMicroseconds: UInt64 { sum[0] }

    /// Counts per bucket since the start.
    var total: [UInt64] { counts.values }

    /// Counts per bucket since the beginning of the second that was `windowSeconds` before this one.
    func recent(second: UInt64) -> [UInt64] {
        let first = second - min(second, LatencyRecorder.windowSeconds)
        // Between that beginning and the oldest copy since, nothing was recorded.
        let oldest =
            pasts
            .filter { (first...second).contains($0.second.load(ordering: .acquiring)) }
            .min { $0.second.load(ordering: .relaxed) < $1.second.load(ordering: .relaxed) }
        guard let oldest else { return Array(repeating: 0, count: LatencyBuckets.count) }
        return (0..<LatencyBuckets.count).map { counts[$0] &- oldest.counts[$0] }
    }
}
