import Foundation
import Tracing

/// Spans as OTLP sends them in JSON, a field for each of OpenTelemetry's trace.proto
/// (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding): numbers of 64 bits are texts, identifiers are
/// hexadecimal.
struct SpanDocument: Encodable {
    private let resourceSpans: [ResourceSpans]

    struct Attribute: Encodable {
        var key: String
        var value: Value
    }

    enum Value: Encodable, Equatable {
        case text(String)
        case integer(Int64)
        case number(Double)
        case truth(Bool)
    }

    fileprivate struct ResourceSpans: Encodable {
        var resource: Resource
        var scopeSpans: [ScopeSpans]
    }

    fileprivate struct Resource: Encodable {
        var attributes: [Attribute]
    }

    fileprivate struct ScopeSpans: Encodable {
        var scope: Scope
        var spans: [Span]
    }

    fileprivate struct Scope: Encodable {
        var name: String
        var version: String
    }

    fileprivate struct Span: Encodable {
        var traceId: String
        var spanId: String
        var traceState: String?
        var parentSpanId: String?
        var name: String
        var kind: Int
        var startTimeUnixNano: String
        var endTimeUnixNano: String
        var attributes: [Attribute]
        var events: [Event]
        var links: [Link]
        var status: Status
    }

    fileprivate struct Event: Encodable {
        var timeUnixNano: String
        var name: String
        var attributes: [Attribute]
    }

    fileprivate struct Link: Encodable {
        var traceId: String
        var spanId: String
        var traceState: String?
    }

    fileprivate struct Status: Encodable {
        /// The code is 1 for success and 2 for an error. 0 is neither, and is left out.
        var code: Int?
        var message: String?
    }

    /// - Parameter resource: what the spans are of.
    init(_ spans: [FinishedSpan], resource: [Attribute], version: String) {
        resourceSpans = [
            ResourceSpans(
                resource: Resource(attributes: resource),
                scopeSpans: [
                    ScopeSpans(scope: Scope(name: "headroom", version: version), spans: spans.map(Span.init))
                ]
            )
        ]
    }

    func encoded() throws -> Data { try JSONEncoder().encode(self) }
}

extension SpanDocument.Span {
    fileprivate init(_ span: FinishedSpan) {
        traceId = span.trace.traceID.text
        spanId = span.trace.spanID.text
        traceState = span.trace.state
        parentSpanId = span.parent?.text
        name = span.name
        kind =
            switch span.kind {
            case .internal: 1
            case .server: 2
            case .client: 3
            case .producer: 4
            case .consumer: 5
            }
        startTimeUnixNano = "\(span.startedAt)"
        endTimeUnixNano = "\(max(span.startedAt, span.endedAt))"
        attributes = SpanDocument.attributes(span.attributes)
        events = span.events.map { event in
            SpanDocument.Event(
                timeUnixNano: "\(event.nanosecondsSinceEpoch)",
                name: event.name,
                attributes: SpanDocument.attributes(event.attributes)
            )
        }
        links = span.links.map { trace in
            SpanDocument.Link(traceId: trace.traceID.text, spanId: trace.spanID.text, traceState: trace.state)
        }
        let code: Int? =
            switch span.status?.code {
            case .ok: 1
            case .error: 2
            case nil: nil
            }
        status = SpanDocument.Status(code: code, message: span.status?.message)
    }
}

extension SpanDocument {
    fileprivate static func attributes(_ attributes: SpanAttributes) -> [Attribute] {
        var all: [Attribute] = []
        func append(_ key: String, _ value: SpanAttribute) {
            all.append(Attribute(key: key, value: Value(value)))
        }
        // The attributes are no sequence.
        attributes.forEach(append)
        return all.sorted { $0.key < $1.key }
    }
}

extension SpanDocument.Value {
    private enum CodingKeys: String, CodingKey {
        case stringValue, intValue, doubleValue, boolValue
    }

    /// The service records no arrays; one would become a text.
    init(_ attribute: SpanAttribute) {
        self =
            switch attribute {
            case .int32(let value): .integer(Int64(value))
            case .int64(let value): .integer(value)
            case .double(let value): .number(value)
            case .bool(let value): .truth(value)
            case .string(let value): .text(value)
            case .stringConvertible(let value): .text("\(value)")
            default: .text("\(attribute)")
            }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        switch self {
        case .text(let value): try container.encode(value, forKey: .stringValue)
        case .integer(let value): try container.encode("\(value)", forKey: .intValue)
        case .number(let value): try container.encode(value, forKey: .doubleValue)
        case .truth(let value): try container.encode(value, forKey: .boolValue)
        }
    }
}
