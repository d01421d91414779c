import Engine
import Hummingbird
import LineProtocol
import Testing

@testable import HTTPServer

@Suite("A problem")
struct ProblemTests {
    @Test("has the protocol's code and the matching status")
    func statuses() {
        let expected: [ReplyError.Code: Int] = [
            .err: 400, .badArg: 400, .tooLong: 413, .protocol: 400, .noAuth: 401, .forbidden: 403, .notFound: 404,
            .conflict: 409, .expired: 410, .unavailable: 503, .unknown: 504, .overloaded: 503, .draining: 503,
            .internal: 500, .noProto: 400,
        ]
        #expect(Set(expected.keys) == Set(ReplyError.Code.allCases))
        for (code, status) in expected {
            let problem = Problem(ReplyError(code: code, text: "cause"))
            #expect(problem.status.code == status, "\(code)")
            #expect(problem.code == code.rawValue && problem.detail == "cause")
            #expect((problem.headers[.retryAfter] != nil) == (status == 503), "\(code)")
            #expect((problem.headers[.wwwAuthenticate] != nil) == (status == 401), "\(code)")
        }
    }

    @Test("rounds the retry time up to whole seconds")
    func retryAfter() {
        let waits: [(Int?, String)] = [(nil, "1"), (1, "1"), (1_000, "1"), (1_001, "2"), (9_999, "10")]
        for (milliseconds, seconds) in waits {
            let error = EngineError(.overloaded, "too many", retryAfterMilliseconds: milliseconds)
            #expect(Problem(error).headers[.retryAfter] == seconds)
        }
    }
}
