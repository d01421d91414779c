import Testing

@testable import TraceExport

@Suite("The header fields of W3C Trace Context")
struct TraceContextTests {
    private static let id = "4bf92f3577b34da6a3ce929d0e0e4736"
    private static let span = "00f067aa0ba902b7"

    @Test(
        "are read as the standard writes them",
        arguments: [("00", false), ("01", true), ("02", false), ("03", true), ("ff", true)]
    )
    func flags(flags: String, isSampled: Bool) throws {
        let trace = try #require(TraceContext(traceparent: "00-\(Self.id)-\(Self.span)-\(flags)", tracestate: nil))
        #expect(trace.traceID.text == Self.id && trace.spanID.text == Self.span && trace.isSampled == isSampled)
        #expect(trace.traceparent == "00-\(Self.id)-\(Self.span)-\(isSampled ? "01" : "00")")
    }

    @Test("of a later version are read as far as they are known", arguments: ["", "-", "-more", "-m-o-r-e"])
    func later(rest: String) {
        #expect(TraceContext(traceparent: "cc-\(Self.id)-\(Self.span)-01\(rest)", tracestate: nil)?.isSampled == true)
    }

    @Test(
        "of another form are ignored",
        arguments: [
            "", "00", "00-\(id)-\(span)", "00-\(id)-\(span)-01-", "00-\(id)-\(span)-01-more", "ff-\(id)-\(span)-01",
            "0-\(id)-\(span)-01", "00-\(id)-\(span)-1", "00-\(id)-\(span)-001", "00-\(id)-\(span)-0x",
            "00-\(id.uppercased())-\(span)-01", "00-\(id)-\(span.uppercased())-01", "00-\(id.dropLast())-\(span)-01",
            "00-\(id)0-\(span)-01", "00-00000000000000000000000000000000-\(span)-01", "00-\(id)-0000000000000000-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-\(span)-01", "00-\(id)-\(span)-01, 00-\(id)-\(span)-01",
            "00_\(id)_\(span)_01", "00-\(id)-\(span)-01 ", "cc-\(id)-\(span)-01more",
        ]
    )
    func bad(traceparent: String) { #expect(TraceContext(traceparent: traceparent, tracestate: nil) == nil) }

    @Test("pass on what other vendors added, up to 512 bytes")
    func state() {
        func state(_ text: String?) -> String? {
            TraceContext(traceparent: "00-\(Self.id)-\(Self.span)-01", tracestate: text)?.state
        }
        #expect(state("congo=t61rcWkgMzE,rojo=00f067aa0ba902b7") == "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7")
        #expect(state(nil) == nil && state("") == nil)
        #expect(state(String(repeating: "a", count: 512))?.count == 512)
        #expect(state(String(repeating: "a", count: 513)) == nil)
    }
}
