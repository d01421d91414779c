import NIOCore
import Testing

@testable import HTTPServer

@Suite("The body of a request to link a customer")
struct LinkRequestTests {
    @Test("has a source, a transaction or a customer's id, and perhaps a reason")
    func valid() throws {
        let long = String(repeating: "é", count: 255)
        for (name, reason) in [("2000000123456789", nil), ("$RCAnonymousID:1", "ticket 1"), (long, nil)] {
            let member = reason.map { #", "reason": "\#($0)""# } ?? ""
            let request = try LinkRequest(ByteBuffer(string: #"{"source": "appstore", "name": "\#(name)"\#(member)}"#))
            #expect(request.source == "appstore" && request.name == name && request.reason == reason)
        }
    }

    @Test(
        "names what is wrong",
        arguments: [
            ("", "JSON"), ("[]", "JSON object"), (#"{"name": "T"}"#, "source"), (#"{"source": "appstore"}"#, "name"),
            (#"{"source": "App Store", "name": "T"}"#, "source"), (#"{"source": 5, "name": "T"}"#, "source"),
            (#"{"source": "appstore", "name": ""}"#, "name"), (#"{"source": "appstore", "name": "T\n"}"#, "name"),
            (#"{"source": "appstore", "name": "T", "reason": ""}"#, "reason"),
            (#"{"source": "appstore", "name": "T", "user": "x"}"#, "unknown member"),
            (#"{"source": "appstore", "name": "\#(String(repeating: "T", count: 256))"}"#, "255"),
            (#"{"source": "appstore", "name": "T", "reason": "\#(String(repeating: "é", count: 513))"}"#, "1024"),
        ]
    )
    func invalid(body: String, word: String) {
        let problem = #expect(throws: Problem.self) { try LinkRequest(ByteBuffer(string: body)) }
        #expect(problem?.status == .badRequest)
        #expect(problem?.detail.contains(word) == true, "\(problem?.detail ?? "")")
    }
}
