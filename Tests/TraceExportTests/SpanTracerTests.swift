import ServiceCore
import Testing
import Tracing

@testable import TraceExport

@Suite("Spans")
struct SpanTracerTests {
    private static let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    private let metrics = SpanMetrics()
    private let queue: SpanQueue
    private let tracer: SpanTracer

    init() {
        queue = SpanQueue(capacity: 3, metrics: metrics)
        tracer = SpanTracer(queue: queue)
    }

    private struct Fields: Extractor, Injector {
        func extract(key: String, from carrier: [String: String]) -> String? { carrier[key] }
        func inject(_ value: String, forKey key: String, into carrier: inout [String: String]) { carrier[key] = value }
    }

    private func context(_ fields: [String: String]) -> InstrumentationContext {
        var context = InstrumentationContext.topLevel
        tracer.extract(fields, into: &context, using: Fields())
        return context
    }

    @Test("of a caller's trace have its identifier, its span as parent, and its state")
    func parent() throws {
        let span = tracer.startSpan(
            "GET /x",
            context: context(["traceparent": Self.traceparent, "tracestate": "a=b"]),
            ofKind: .server,
            at: DefaultTracerClock.Timestamp(nanosecondsSinceEpoch: 1_000)
        )
        let child = tracer.startSpan("batch", context: span.context)
        child.end()
        span.end(at: DefaultTracerClock.Timestamp(nanosecondsSinceEpoch: 5_000))
        let (inner, outer) = (try #require(queue.take(atMost: 1).first), try #require(queue.take(atMost: 1).first))
        #expect(outer.trace.traceID.text == "4bf92f3577b34da6a3ce929d0e0e4736")
        #expect(outer.parent?.text == "00f067aa0ba902b7")
        #expect((outer.startedAt, outer.endedAt) == (1_000, 5_000) && outer.kind == .server && outer.name == "GET /x")
        #expect(inner.trace.traceID == outer.trace.traceID && inner.parent == outer.trace.spanID)
        #expect(inner.trace.spanID != outer.trace.spanID && inner.trace.state == "a=b")
        var fields: [String: String] = [:]
        tracer.inject(span.context, into: &fields, using: Fields())
        let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-\(outer.trace.spanID.text)-01"
        #expect(fields == ["traceparent": traceparent, "tracestate": "a=b"])
    }

    @Test("without a caller begin a trace of their own")
    func root() throws {
        for _ in 0..<2 { tracer.startSpan("CONSUME", context: context(["traceparent": "nonsense"])).end() }
        let spans = queue.take(atMost: 2)
        #expect(spans.map(\.parent) == [nil, nil] && spans[0].trace.traceID != spans[1].trace.traceID)
    }

    @Test("of a trace that the caller does not record are not recorded either, but have its identifier")
    func unsampled() {
        let span = tracer.startSpan("x", context: context(["traceparent": Self.traceparent.dropLast() + "0"]))
        #expect(!span.isRecording)
        tracer.startSpan("child", context: span.context).end()
        span.end()
        #expect(queue.count == 0)
        #expect(span.context.trace?.traceID.text == "4bf92f3577b34da6a3ce929d0e0e4736")
    }

    @Test("are recorded once, with what was said of them")
    func contents() throws {
        struct Problem: Error {}
        let other = tracer.startSpan("other", context: .topLevel)
        let span = tracer.startSpan("x", context: .topLevel)
        span.operationName = "y"
        span.updateAttributes { $0["a"] = 1 }
        span.addLink(SpanLink(context: other.context, attributes: [:]))
        span.recordError(Problem())
        span.setStatus(SpanStatus(code: .error))
        span.end()
        span.end()
        #expect(queue.count == 1)
        let recorded = try #require(queue.take(atMost: 1).first)
        #expect(recorded.name == "y" && recorded.links == [other.context.trace].compactMap(\.self))
        #expect(recorded.status?.code == .error && recorded.attributes["a"]?.toSpanAttribute() == .int64(1))
        #expect(recorded.events.first?.attributes["exception.type"]?.toSpanAttribute() == .string("Problem"))
    }

    @Test("that come while too many wait are dropped and counted")
    func full() {
        for _ in 0..<5 { tracer.startSpan("x", context: .topLevel).end() }
        #expect(queue.count == 3 && metrics[.dropped] == 2)
        #expect(queue.take(atMost: 2).count == 2 && queue.take(atMost: 2).count == 1 && queue.take(atMost: 2).isEmpty)
        tracer.startSpan("x", context: .topLevel).end()
        #expect(queue.count == 1 && metrics[.dropped] == 2)
    }
}
