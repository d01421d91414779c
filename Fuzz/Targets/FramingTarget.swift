import LineProtocol
import NIOCore

/// A stream yields the same requests however the network splits it, buffers no more bytes than the limits, and yields
/// nothing after a fatal error.
///
/// The input: a byte that chooses the limits, one that chooses the splits, the stream.
enum FramingTarget {
    /// The defaults, the minimum of the settings, and less than that, so that short inputs reach them, but enough to
    /// detect another protocol.
    static let limits = [
        RequestLimits(), RequestLimits(bytesMaximum: 128, tokensMaximum: 8),
        RequestLimits(bytesMaximum: 16, tokensMaximum: 2),
    ]

    @Sendable
    static func check(_ input: [UInt8]) throws(Violation) {
        var decisions = FuzzInput(input)
        let limits = decisions.one(of: limits)
        let seed = Int(decisions.byte())
        let stream = decisions.remainder
        let whole = try decode([stream[...]], limits)
        try requireEqual(try decode(reads(of: stream, seed), limits), whole, "split into reads")
        var decoder = RequestDecoder(limits: limits)
        var exact = bufferWithoutSpareBytes(stream)
        var requests: [DecodedRequest] = []
        while let request = decoder.next(&exact) { requests.append(request) }
        try requireEqual(requests, whole, "in a buffer without a byte to spare")
        let fatal = whole.firstIndex { if case .fatal = $0 { true } else { false } }
        try require(fatal.map { $0 == whole.count - 1 } ?? true, "a request after a fatal error: \(whole)")
        for request in whole { try requireThatTheErrorIsPrintable(request) }
    }

    /// Splits the stream into reads: of one byte for every eighth seed, because they are slow, else of one to 64 bytes.
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

    /// A buffer whose memory ends with the stream, so that AddressSanitizer detects reads beyond it.
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
            // The tokens, the array's header, and the elements' headers and ends.
            let maximum = limits.bytesMaximum + 16 + limits.tokensMaximum * 16
            try require(
                buffer.readableBytes <= maximum,
                "\(buffer.readableBytes) bytes are buffered; the limits are \(limits)"
            )
        }
        return requests
    }

    /// Errors must not repeat input, because clients log them and terminals show them.
    static func requireThatTheErrorIsPrintable(_ request: DecodedRequest) throws(Violation) {
        switch request {
        case .command: return
        case .failure(let error), .fatal(let error):
            try require(error.text.utf8.allSatisfy { (0x20...0x7E).contains($0) }, "an error repeats input: \(error)")
        }
    }
}
