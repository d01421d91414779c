import LineProtocol
import NIOCore

/// A stream is the same requests however the network cuts it, keeps no more bytes than its limits, and once it cannot
/// be told apart yields nothing more.
///
/// The input: a byte that chooses the limits, one that chooses the cuts, the stream.
enum FramingBody {
    /// The defaults, the least that the settings allow, and less than that, so that short inputs meet them; not so little
    /// that it would be over before another protocol shows.
    static let limits = [
        RequestLimits(), RequestLimits(requestSizeBytes: 128, tokens: 8),
        RequestLimits(requestSizeBytes: 16, tokens: 2),
    ]

    @Sendable
    static func check(_ input: [UInt8]) throws(Violation) {
        var decisions = Decisions(input)
        let limits = decisions.one(of: limits)
        let cuts = Int(decisions.byte())
        let stream = decisions.remainder
        let whole = try decode([stream[...]], limits)
        try requireEqual(try decode(reads(of: stream, cuts), limits), whole, "cut in reads")
        var decoder = RequestDecoder(limits: limits)
        var exact = bufferWithoutSpareBytes(stream)
        var requests: [DecodedRequest] = []
        while let request = decoder.next(&exact) { requests.append(request) }
        try requireEqual(requests, whole, "in a buffer without a byte to spare")
        let fatal = whole.firstIndex { if case .fatal = $0 { true } else { false } }
        try require(fatal.map { $0 == whole.count - 1 } ?? true, "something came after a fatal error: \(whole)")
        for request in whole { try requireThatTheErrorIsPrintable(request) }
    }

    /// Every eighth seed cuts after each byte, which is slow in long streams. Others make reads of one to sixty-four
    /// bytes, in no order that means anything.
    static func reads(of stream: [UInt8], _ seed: Int) -> [ArraySlice<UInt8>] {
        guard seed % 8 > 0 else { return stream.indices.map { stream[$0...$0] } }
        var reads: [ArraySlice<UInt8>] = []
        var rest = stream[...]
        var state = seed
        while !rest.isEmpty {
            state = (state * 41 + 7) % 257
            reads.append(rest.prefix(1 + state % 64))
            rest = rest.dropFirst(1 + state % 64)
        }
        return reads
    }

    /// For AddressSanitizer: the stream ends where the memory does.
    static func bufferWithoutSpareBytes(_ stream: [UInt8]) -> ByteBuffer {
        var buffer = ByteBufferAllocator().buffer(capacity: stream.count)
        let padding = buffer.capacity - stream.count
        buffer.writeRepeatingByte(0, count: padding)
        buffer.writeBytes(stream)
        buffer.moveReaderIndex(forwardBy: padding)
        return buffer
    }

    private static func decode(
        _ reads: [ArraySlice<UInt8>],
        _ limits: RequestLimits
    ) throws(Violation) -> [DecodedRequest] {
        var decoder = RequestDecoder(limits: limits)
        var buffer = ByteBuffer()
        var requests: [DecodedRequest] = []
        for read in reads {
            buffer.writeBytes(read)
            while let request = decoder.next(&buffer) { requests.append(request) }
            // The text; the array's header; an element's header and its end.
            let most = limits.requestSizeBytes + 16 + limits.tokens * 16
            try require(
                buffer.readableBytes <= most,
                "\(buffer.readableBytes) bytes are kept; the limits are \(limits)"
            )
        }
        return requests
    }

    /// What the peer sent must not come back: it ends up in the logs and terminals of others.
    static func requireThatTheErrorIsPrintable(_ request: DecodedRequest) throws(Violation) {
        switch request {
        case .command: return
        case .failure(let error), .fatal(let error):
            try require(error.text.utf8.allSatisfy { (0x20...0x7E).contains($0) }, "an error repeats input: \(error)")
        }
    }
}
