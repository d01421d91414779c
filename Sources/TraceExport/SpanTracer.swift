import Synchronization
import Tracing

/// Makes spans, and queues them for the exporter when they end. A span whose trace the caller does not record is not
/// recorded here either; every other one is, so who makes a first span has decided that it is wanted.
package struct SpanTracer: Tracer {
    let queue: SpanQueue

    package func startSpan<Instant: TracerInstant>(
        _ operationName: String,
        context: @autoclosure () -> InstrumentationContext,
        ofKind kind: SpanKind,
        at instant: @autoclosure () -> Instant,
        function: String,
        file fileID: String,
        line: UInt
    ) -> RecordedSpan {
        var context = context()
        let parent = context.trace
        context.trace = TraceContext(
            traceID: parent?.traceID ?? .random(),
            spanID: .random(),
            isSampled: parent?.isSampled ?? true,
            state: parent?.state
        )
        return RecordedSpan(
            operationName,
            context: context,
            parent: parent?.spanID,
            kind: kind,
            startedAt: instant().nanosecondsSinceEpoch,
            queue: queue
        )
    }

    /// Spans are exported every second at the latest.
    package func forceFlush() {}

    package func extract<Carrier, Extract: Extractor>(
        _ carrier: Carrier,
        into context: inout InstrumentationContext,
        using extractor: Extract
    ) where Extract.Carrier == Carrier {
        guard let traceparent = extractor.extract(key: "traceparent", from: carrier),
            let trace = TraceContext(
                traceparent: traceparent,
                tracestate: extractor.extract(key: "tracestate", from: carrier)
            )
        else { return }
        context.trace = trace
    }

    package func inject<Carrier, Inject: Injector>(
        _ context: InstrumentationContext,
        into carrier: inout Carrier,
        using injector: Inject
    ) where Inject.Carrier == Carrier {
        guard let trace = context.trace else { return }
        injector.inject(trace.traceparent, forKey: "traceparent", into: &carrier)
        if let state = trace.state { injector.inject(state, forKey: "tracestate", into: &carrier) }
    }
}

/// A span from its start to its end.
package final class RecordedSpan: Span {
    package let context: InstrumentationContext
    /// Whether the trace is one that the caller records.
    package let isRecording: Bool
    private let queue: SpanQueue
    private let state: Mutex<FinishedSpan>
    private let hasEnded = Atomic(false)

    fileprivate init(
        _ name: String,
        context: InstrumentationContext,
        parent: SpanID?,
        kind: SpanKind,
        startedAt: UInt64,
        queue: SpanQueue
    ) {
        guard let trace = context.trace else { preconditionFailure("a span's context names the span") }
        self.context = context
        isRecording = trace.isSampled
        self.queue = queue
        state = Mutex(FinishedSpan(name: name, trace: trace, parent: parent, kind: kind, startedAt: startedAt))
    }

    package var operationName: String {
        get { state.withLock { $0.name } }
        set { state.withLock { $0.name = newValue } }
    }

    package var attributes: SpanAttributes {
        get { state.withLock { $0.attributes } }
        set { state.withLock { $0.attributes = newValue } }
    }

    package func setStatus(_ status: SpanStatus) {
        state.withLock { $0.status = status }
    }

    package func addEvent(_ event: SpanEvent) {
        state.withLock { $0.events.append(event) }
    }

    /// Records the error's type alone: its text may hold what must not leave the service.
    package func recordError<Instant: TracerInstant>(
        _ error: any Error,
        attributes: SpanAttributes,
        at instant: @autoclosure () -> Instant
    ) {
        var attributes = attributes
        attributes["exception.type"] = "\(type(of: error))"
        addEvent(SpanEvent(name: "exception", at: instant(), attributes: attributes))
    }

    package func addLink(_ link: SpanLink) {
        guard let trace = link.context.trace else { return }
        state.withLock { $0.links.append(trace) }
    }

    package func end<Instant: TracerInstant>(at instant: @autoclosure () -> Instant) {
        guard isRecording, !hasEnded.exchange(true, ordering: .relaxed) else { return }
        let endedAt = instant().nanosecondsSinceEpoch
        queue.append(
            state.withLock { span in
                span.endedAt = endedAt
                return span
            }
        )
    }
}
