import LineProtocol
import NIOCore

/// Decodes requests or replies once and compares nothing. Finds only traps and invalid memory accesses, at several
/// times the speed of the targets `framing` and `reading`.
///
/// The input: a byte that chooses the decoder and the limits, the stream.
enum DecodingBody {
    @Sendable
    static func check(_ input: [UInt8]) throws(Violation) {
        var decisions = Decisions(input)
        let choice = decisions.below(FramingBody.limits.count + 1)
        var buffer = FramingBody.bufferWithoutSpareBytes(decisions.remainder)
        guard choice < FramingBody.limits.count else {
            var decoder = ReplyFrameDecoder()
            _ = ReadingBody.pieces(&decoder, &buffer)
            return
        }
        var decoder = RequestDecoder(limits: FramingBody.limits[choice])
        while let request = decoder.next(&buffer) { try FramingBody.requireThatTheErrorIsPrintable(request) }
    }
}
