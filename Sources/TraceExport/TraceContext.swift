import Tracing

/// The span that something belongs to, as W3C Trace Context writes it (https://www.w3.org/TR/trace-context/).
struct TraceContext: Sendable, Equatable {
    /// The id has 16 bytes, of which one at least is not 0.
    var traceID: TraceID
    /// The id is never 0.
    var spanID: SpanID
    /// Whether the caller records its part of the trace.
    var isSampled: Bool
    /// What other vendors have added, in the order of the header field `tracestate`; passed on as it is.
    var state: String?
}

struct TraceID: Sendable, Equatable {
    var high: UInt64
    var low: UInt64

    static func random() -> TraceID { TraceID(high: .random(in: .min ... .max), low: .random(in: 1 ... .max)) }

    var text: String { high.hexadecimal + low.hexadecimal }
}

struct SpanID: Sendable, Equatable {
    var value: UInt64

    static func random() -> SpanID { SpanID(value: .random(in: 1 ... .max)) }

    var text: String { value.hexadecimal }
}

extension TraceContext {
    /// A longer `tracestate` need not be passed on.
    private static let stateBytesMaximum = 512

    /// - Parameters:
    ///   - traceparent: the header field. In a version that does not exist yet, the parts of version 00 are read.
    ///   - tracestate: the header field.
    init?(traceparent: String, tracestate: String?) {
        let parts = traceparent.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count >= 4, let version = UInt64(hexadecimal: parts[0], digits: 2), version != 0xFF,
            version > 0 || parts.count == 4,
            parts[1].utf8.count == 32,
            let high = UInt64(hexadecimal: parts[1].prefix(16), digits: 16),
            let low = UInt64(hexadecimal: parts[1].suffix(16), digits: 16), high != 0 || low != 0,
            let span = UInt64(hexadecimal: parts[2], digits: 16), span != 0,
            let flags = UInt64(hexadecimal: parts[3], digits: 2)
        else { return nil }
        traceID = TraceID(high: high, low: low)
        spanID = SpanID(value: span)
        isSampled = flags & 1 == 1
        state = tracestate.flatMap { $0.utf8.count <= TraceContext.stateBytesMaximum && !$0.isEmpty ? $0 : nil }
    }

    var traceparent: String { "00-\(traceID.text)-\(spanID.text)-0\(isSampled ? 1 : 0)" }
}

extension UInt64 {
    /// Parses digits in lower case only, as the standard demands.
    fileprivate init?(hexadecimal text: Substring, digits: Int) {
        let isHexadecimal = text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
        guard text.utf8.count == digits, isHexadecimal else { return nil }
        self.init(text, radix: 16)
    }

    fileprivate var hexadecimal: String {
        let digits = String(self, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}

extension InstrumentationContext {
    private enum Key: InstrumentationContextKey {
        typealias Value = TraceContext
    }

    var trace: TraceContext? {
        get { self[Key.self] }
        set { self[Key.self] = newValue }
    }
}
