import LineProtocol
import NIOCore

/// Decodes requests or replies once and compares nothing. Finds only traps and invalid memory accesses, at several
/// times the speed of the targets `framing` and `reading`.
///
/// The input: a byte that chooses the decoder and the limits, the stream.
enum DecodingTarget {
    @Sendable
    static func check(_ input: [UInt8]) throws(Violation) {
        var decisions = FuzzInput(input)
        let choice = decisions.below(FramingTarget.limits.count + 1)
        var buffer = FramingTarget.bufferWithoutSpareBytes(decisions.remainder)
        guard choice < FramingTarget.limits.count else {
            var decoder = ReplyFrameDecoder()
            _ = ReadingTarget.pieces(&decoder, &buffer)
            return
        }
        var decoder = RequestDecoder(limits: FramingTarget.limits[choice])
        while let request = decoder.next(&buffer) { try FramingTarget.requireThatTheErrorIsPrintable(request) }
    }
}
