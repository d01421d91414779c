import LineProtocol
import NIOCore

/// What `framing` and `reading` read, once and without comparisons: several times as many inputs a second, for what traps or
/// reads where it may not. What they find out beyond that, this does not.
///
/// The input: a byte that chooses the side and the limits, the stream.
enum DecodingBody {
    @Sendable
    static func check(_ input: [UInt8]) throws(Violation) {
        var decisions = Decisions(input)
        let choice = decisions.below(FramingBody.limits.count + 1)
        var buffer = FramingBody.bufferWithoutSpareBytes(decisions.remainder)
        guard choice < FramingBody.limits.count else {
            var framing = ReplyFraming()
            _ = ReadingBody.pieces(&framing, &buffer)
            return
        }
        var decoder = RequestDecoder(limits: FramingBody.limits[choice])
        while let request = decoder.next(&buffer) { try FramingBody.requireThatTheErrorIsPrintable(request) }
    }
}
