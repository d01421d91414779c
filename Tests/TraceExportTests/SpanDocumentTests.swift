import Foundation
import Testing
import Tracing

@testable import TraceExport

@Suite("Spans as OTLP sends them in JSON")
struct SpanDocumentTests {
    private let trace = TraceContext(
        traceID: TraceID(high: 1, low: 2),
        spanID: SpanID(value: 3),
        isSampled: true,
        state: "a=b"
    )

    private func json(_ span: FinishedSpan) throws -> String {
        let document = SpanDocument([span], resource: [.init(key: "service.name", value: .text("x"))], version: "1.2.3")
        let object = try JSONSerialization.jsonObject(with: document.encoded())
        let options: JSONSerialization.WritingOptions = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try JSONSerialization.data(withJSONObject: object, options: options), as: UTF8.self)
    }

    @Test("have every field in the form of trace.proto")
    func whole() throws {
        var span = FinishedSpan(name: "GET /x", trace: trace, parent: SpanID(value: 0xAB), kind: .server, startedAt: 10)
        span.endedAt = 20
        span.attributes["b"] = 5
        span.attributes["a"] = "t"
        span.attributes["c"] = true
        span.attributes["d"] = 0.5
        span.status = SpanStatus(code: .error)
        span.links = [
            TraceContext(traceID: TraceID(high: 0, low: 9), spanID: SpanID(value: 8), isSampled: true, state: nil)
        ]
        span.events = [SpanEvent(name: "e", at: DefaultTracerClock.Timestamp(nanosecondsSinceEpoch: 15))]
        #expect(
            try json(span) == """
                {"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"x"}}]},\
                "scopeSpans":[{"scope":{"name":"headroom","version":"1.2.3"},"spans":[{"attributes":[\
                {"key":"a","value":{"stringValue":"t"}},{"key":"b","value":{"intValue":"5"}},\
                {"key":"c","value":{"boolValue":true}},{"key":"d","value":{"doubleValue":0.5}}],\
                "endTimeUnixNano":"20","events":[{"attributes":[],"name":"e","timeUnixNano":"15"}],"kind":2,\
                "links":[{"spanId":"0000000000000008","traceId":"00000000000000000000000000000009"}],"name":"GET /x",\
                "parentSpanId":"00000000000000ab","spanId":"0000000000000003","startTimeUnixNano":"10",\
                "status":{"code":2},"traceId":"00000000000000010000000000000002","traceState":"a=b"}]}]}]}
                """
        )
    }

    @Test("have no end before their start, as after a change of the clock")
    func clock() throws {
        var span = FinishedSpan(name: "x", trace: trace, kind: .internal, startedAt: 10)
        span.endedAt = 9
        #expect(try json(span).contains(#""endTimeUnixNano":"10""#))
        #expect(try json(span).contains(#""status":{}"#) && !(try json(span).contains("parentSpanId")))
    }
}
