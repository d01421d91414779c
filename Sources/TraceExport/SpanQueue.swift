import ServiceCore
import Synchronization
import Tracing

/// A span that has ended.
struct FinishedSpan: Sendable {
    var name: String
    var trace: TraceContext
    var parent: SpanID?
    var kind: SpanKind
    /// Nanoseconds since 1970.
    var startedAt: UInt64
    var endedAt: UInt64 = 0
    var attributes: SpanAttributes = [:]
    var links: [TraceContext] = []
    var events: [SpanEvent] = []
    var status: SpanStatus?
}

/// The spans that wait to be exported. If the collector is too slow, new ones are dropped, so that no request waits
/// for it.
final class SpanQueue: Sendable {
    private let capacity: Int
    private let metrics: SpanMetrics
    private let spans = Mutex<[FinishedSpan]>([])

    init(capacity: Int, metrics: SpanMetrics) {
        self.capacity = capacity
        self.metrics = metrics
    }

    func append(_ span: FinishedSpan) {
        let isQueued = spans.withLock { spans in
            guard spans.count < capacity else { return false }
            spans.append(span)
            return true
        }
        if !isQueued { metrics.add(1, .dropped) }
    }

    func take(atMost count: Int) -> [FinishedSpan] {
        spans.withLock { spans in
            let taken = Array(spans.prefix(count))
            spans.removeFirst(taken.count)
            return taken
        }
    }

    var count: Int { spans.withLock { $0.count } }
}
