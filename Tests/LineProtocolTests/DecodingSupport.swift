import NIOCore
import TestSupport
import Usage

@testable import LineProtocol

/// The user of all tests that need only one.
let userText = "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11"
let user = ada

/// The requests of a connection that receives these reads.
func decode(_ reads: [[UInt8]], limits: RequestLimits = .init()) -> [DecodedRequest] {
    var decoder = RequestDecoder(limits: limits)
    var buffer = ByteBuffer()
    var requests: [DecodedRequest] = []
    for read in reads {
        buffer.writeBytes(read)
        while let request = decoder.next(&buffer) { requests.append(request) }
    }
    return requests
}

func decode(_ bytes: [UInt8]) -> [DecodedRequest] { decode([bytes]) }

func decode(_ text: String) -> [DecodedRequest] { decode([Array(text.utf8)]) }

/// The requests of a connection that receives the bytes one by one.
func decodeByteByByte(_ bytes: [UInt8]) -> [DecodedRequest] { decode(bytes.map { [$0] }) }

/// The tokens in array framing.
func arrayRequest(_ tokens: [String]) -> [UInt8] {
    Array("*\(tokens.count)\r\n".utf8) + tokens.flatMap { Array("$\($0.utf8.count)\r\n\($0)\r\n".utf8) }
}

func encoded(_ command: Command) -> [UInt8] {
    var buffer = ByteBuffer()
    command.encode(into: &buffer)
    return Array(buffer.readableBytesView)
}

func encoded(_ reply: Reply) -> String {
    var buffer = ByteBuffer()
    reply.encode(into: &buffer)
    return String(buffer: buffer)
}

extension DecodedRequest {
    /// The code of its error, or nil for a command.
    var code: ReplyError.Code? {
        switch self {
        case .command: nil
        case .failure(let error), .fatal(let error): error.code
        }
    }

    var isFatal: Bool {
        if case .fatal = self { true } else { false }
    }
}

extension Verb {
    /// The shortest valid request: the syntax without its optional parts, with a value for each placeholder.
    var shortestRequest: String {
        var request = syntax.replacing(#/ ?\[[^\]]*\]/#, with: "").replacing(" ...", with: "")
        let values = [
            "<user>": userText, "<n>": "5", "<plan>": "paid", "<text>": "x", "<token>": "x", "key=": "key=k",
            "<subcommand>": "ID",
        ]
        for (placeholder, value) in values { request = request.replacing(placeholder, with: value) }
        return request
    }
}
