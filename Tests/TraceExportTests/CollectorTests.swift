import NIOCore
import OutgoingHTTP
import ServiceCore
import Testing

@testable import TraceExport

@Suite("A collector of traces")
struct CollectorTests {
    private func answer(_ status: Int, retryAfter: String? = nil, _ body: String = "") -> CollectorAnswer {
        let answer = HTTPSender.Result.answer(status: status, retryAfter: retryAfter, body: ByteBuffer(string: body))
        return CollectorAnswer(answer)
    }

    @Test("has accepted spans with any 2xx, whatever the body", arguments: [200, 202, 204])
    func accepted(status: Int) {
        for body in ["", "{}", "nonsense", #"{"partialSuccess":{}}"#, #"{"partialSuccess":{"rejectedSpans":"0"}}"#] {
            #expect(answer(status, body) == .accepted())
        }
    }

    @Test("says which spans it rejects, as a text or as a number", arguments: [#""3""#, "3"])
    func rejected(count: String) {
        let body = #"{"partialSuccess":{"rejectedSpans":\#(count),"errorMessage":"too old"}}"#
        #expect(answer(200, body) == .accepted(rejected: 3, reason: "too old"))
    }

    @Test(
        "is asked again after what OTLP calls retryable, and after no answer, and not after another",
        arguments: [
            (429, true), (502, true), (503, true), (504, true), (400, false), (401, false), (404, false), (500, false),
        ]
    )
    func retryable(status: Int, isRetryable: Bool) {
        let problem = "HTTP \(status)"
        #expect(answer(status) == (isRetryable ? .unavailable(problem, retryAfter: nil) : .refused(problem)))
        #expect(CollectorAnswer(.failure("x")) == .unavailable("x", retryAfter: nil))
        #expect(answer(503, retryAfter: "7") == .unavailable("HTTP 503", retryAfter: .seconds(7)))
        #expect(answer(503, retryAfter: "Fri, 31 Dec 1999 23:59:59 GMT") == .unavailable("HTTP 503", retryAfter: nil))
        #expect(answer(308) == .refused("HTTP 308: redirects are not followed; set the final URL"))
    }

    @Test("gets the header fields that are set")
    func fields() throws {
        let fields = try CollectorFields(["Authorization=Basic a2V5Og==", "x-team=blue"]).fields
        #expect(fields.map(\.name) == ["Authorization", "x-team"])
        #expect(fields.map(\.value) == ["Basic a2V5Og==", "blue"])
    }

    @Test(
        "gets no field of another form, and the error does not quote it",
        arguments: ["s3cret", "=s3cret", "x=", "a b=s3cret", "x=s3\ncret", "x=s3crét", "x:s3cret"]
    )
    func bad(field: String) {
        let error = #expect(throws: SettingFile.Unusable.self) { try CollectorFields([field]) }
        #expect(error?.description.contains("tracing-headers") == true && error?.description.contains("cret") == false)
    }
}
