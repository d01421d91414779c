import Testing
import Usage

@testable import LineProtocol

/// A test case: bytes that are invalid or at a limit, and what the decoder must return for them.
struct BadInput: Sendable, CustomTestStringConvertible {
    enum Outcome: Sendable, Equatable {
        /// The decoder skips the bytes; there is no reply.
        case nothing
        case command(Command)
        /// An error, after which the connection stays open.
        case failure(ReplyError.Code)
        /// An error, after which the connection closes.
        case fatal(ReplyError.Code)
    }

    var name: String
    var bytes: [UInt8]
    var outcome: Outcome

    init(_ name: String, _ bytes: [UInt8], _ outcome: Outcome) {
        self.name = name
        self.bytes = bytes
        self.outcome = outcome
    }

    init(_ name: String, _ text: String, _ outcome: Outcome) { self.init(name, Array(text.utf8), outcome) }

    /// A line that is decoded as an error with `code`. The line is also the name of the test case.
    static func line(_ line: String, _ code: ReplyError.Code = .badArg) -> BadInput {
        BadInput(line, line + "\n", .failure(code))
    }

    var testDescription: String { name }
}

@Suite("Bad input")
struct BadInputTests {
    static let all =
        BadInput.lineEnds + BadInput.sizes + BadInput.bytes + BadInput.numbers + BadInput.fields
        + BadInput.arrays

    @Test("is decoded as expected in one read", arguments: all)
    func whole(_ input: BadInput) { check(decode(input.bytes), input) }

    @Test("is decoded alike in one read, in two reads split anywhere, and byte by byte", arguments: all)
    func split(_ input: BadInput) {
        let whole = decode(input.bytes)
        #expect(decodeByteByByte(input.bytes) == whole)
        for position in 0...input.bytes.count {
            let halves = [Array(input.bytes[..<position]), Array(input.bytes[position...])]
            #expect(decode(halves) == whole, "split at \(position)")
        }
    }

    @Test("does not affect the requests before and after it, unless the connection closes", arguments: all)
    func pipelined(_ input: BadInput) {
        let before = Array("PING before\n".utf8)
        for after in [Array("PING after\r\n".utf8), arrayRequest(["PING", "after"])] {
            var requests = decode(before + input.bytes + after)
            #expect(requests == decodeByteByByte(before + input.bytes + after))
            #expect(requests.first == .command(.ping(text: "before")))
            requests.removeFirst()
            if requests.last?.isFatal != true { #expect(requests.popLast() == .command(.ping(text: "after"))) }
            check(requests, input)
        }
    }

    @Test("is never echoed in the error", arguments: all)
    func notEchoed(_ input: BadInput) {
        for case .failure(let error) in decode(input.bytes) {
            #expect(!encoded(.error(error)).contains("secret"))
            #expect(encoded(.error(error)).utf8.allSatisfy { (0x20...0x7E).contains($0) || $0 == 13 || $0 == 10 })
        }
    }

    private func check(_ requests: [DecodedRequest], _ input: BadInput) {
        switch input.outcome {
        case .nothing: #expect(requests.isEmpty)
        case .command(let command): #expect(requests == [.command(command)])
        case .failure(let code):
            #expect(requests.map(\.code) == [code])
            #expect(requests.first?.isFatal == false)
        case .fatal(let code):
            #expect(requests.map(\.code) == [code])
            #expect(requests.first?.isFatal == true)
        }
    }
}
