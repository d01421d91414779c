import Synchronization

/// Counts of traces' spans since the start, by what became of them.
package final class SpanMetrics: Sendable {
    package enum Outcome: String, CaseIterable, Sendable {
        /// The collector has accepted it.
        case exported
        /// Too many spans were waiting.
        case dropped
        /// The collector has refused it, or could not be reached for too long.
        case failed
    }

    private let exported = Atomic<UInt64>(0)
    private let dropped = Atomic<UInt64>(0)
    private let failed = Atomic<UInt64>(0)

    package init() {}

    package func add(_ spans: Int, _ outcome: Outcome) {
        let spans = UInt64(spans)
        switch outcome {
        case .exported: exported.wrappingAdd(spans, ordering: .relaxed)
        case .dropped: dropped.wrappingAdd(spans, ordering: .relaxed)
        case .failed: failed.wrappingAdd(spans, ordering: .relaxed)
        }
    }

    package subscript(outcome: Outcome) -> UInt64 {
        switch outcome {
        case .exported: exported.load(ordering: .relaxed)
        case .dropped: dropped.load(ordering: .relaxed)
        case .failed: failed.load(ordering: .relaxed)
        }
    }
}
