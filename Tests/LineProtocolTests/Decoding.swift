import NIOCore
import Usage

@testable import LineProtocol

/// One user, in all tests that need no other.
let userText = "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11"
let user = UserID(high: 0x7f1c_0a52_3a51_4a7e, low: 0x9d55_0b6a_3f1f_7c11)

/// What a connection yields that gets its bytes in these reads.
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

/// The same bytes one by one.
func decodeByteByByte(_ bytes: [UInt8]) -> [DecodedRequest] { decode(bytes.map { [$0] }) }

/// The tokens in array framing.
func arrayRequest(_ tokens: [String]) -> [UInt8] {
    Array("*\(tokens.count)\r\n".utf8) + tokens.flatMap { Array("$\($0.utf8.count)\r\n\($0)\r\n".utf8) }
}

func encoded(_ reply: Reply) -> String {
    var buffer = ByteBuffer()
    reply.encode(into: &buffer)
    return String(buffer: buffer)
}

extension DecodedRequest {
    /// The code of the error that it is answered with, or nil for a command.
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

/// SplitMix64: a run can be repeated by its seed.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }

    /// Fixed seeds, and one that is new in each run; a test takes them as its argument, so a failure prints its own.
    static let seeds: [UInt64] = [1, 2, 3, UInt64.random(in: 4...UInt64.max)]
}
