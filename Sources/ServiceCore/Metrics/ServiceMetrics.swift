import Engine
import LineProtocol
import NIOCore
import Usage

/// The counters of the service since its start: those of the event loops, added up when they are read.
package struct ServiceMetrics: Sendable {
    package let loops: [LoopMetrics]
    /// The counters of the HTTP port, whose requests are answered on several threads.
    package let http = SharedMetrics()

    init(eventLoops: Int) {
        loops = (0..<eventLoops).map { _ in LoopMetrics() }
    }

    private var all: [LoopMetrics] { loops + [http.metrics] }

    /// The sums at one moment. Counters may differ by some requests, because they change while the snapshot is read.
    package struct Snapshot: Sendable {
        fileprivate var verbs: [UInt64]
        fileprivate var answers: [UInt64]
        fileprivate var errors: [UInt64]
        /// Answers with `shadow`.
        package var shadows: UInt64
        /// The engine's answers since the start, by latency: a count per bucket of `LatencyBuckets`.
        package var latencies: [UInt64]
        /// The sum of these latencies, in microseconds.
        var latencySum: UInt64
        /// The answers of the last seconds (`LatencyRecorder.windowSeconds`), by latency.
        package var recentLatencies: [UInt64]

        package func requests(_ verb: Verb) -> UInt64 { verbs[verb.ordinal] }

        package func answers(_ status: LoopMetrics.Status, _ tier: Tier) -> UInt64 {
            answers[LoopMetrics.ordinal(status, tier)]
        }

        func answers(_ status: LoopMetrics.Status) -> UInt64 {
            Tier.allCases.reduce(0) { $0 + answers(status, $1) }
        }

        /// All latencies in doubling buckets: each of the finer ones lies within one of them.
        package var latencyCounts: BucketCounts {
            var counts = BucketCounts(sum: latencySum)
            for (index, count) in latencies.enumerated() where count > 0 {
                // Latencies are rounded down to microseconds: one that was counted as 15 was less than 16.
                let bits = UInt32.bitWidth - LatencyBuckets.maximum(of: index).leadingZeroBitCount
                counts.counts[bits] += count
            }
            return counts
        }

        package func answers(_ tier: Tier) -> UInt64 {
            LoopMetrics.Status.allCases.reduce(0) { $0 + answers($1, tier) }
        }

        package func errors(_ code: ReplyError.Code) -> UInt64 {
            ReplyError.Code.allCases.firstIndex(of: code).map { errors[$0] } ?? 0
        }

        package var errorsTotal: UInt64 { errors.reduce(0, +) }
    }

    package func snapshot(at now: NIODeadline = .now()) -> Snapshot {
        let second = LoopMetrics.second(now)
        return Snapshot(
            verbs: sum { $0.verbs.values },
            answers: sum { $0.answers.values },
            errors: sum { $0.errors.values },
            shadows: all.reduce(0) { $0 + $1.shadows.values[0] },
            latencies: sum { $0.latencies.total },
            latencySum: all.reduce(0) { $0 &+ $1.latencies.totalMicroseconds },
            recentLatencies: sum { $0.latencies.recent(second: second) }
        )
    }

    private func sum(_ values: (LoopMetrics) -> [UInt64]) -> [UInt64] {
        all.dropFirst().reduce(all.first.map(values) ?? []) { sums, loop in
            zip(sums, values(loop)).map { $0 + $1 }
        }
    }
}
