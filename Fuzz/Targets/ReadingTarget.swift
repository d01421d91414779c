import LineProtocol
import NIOCore
import Usage

/// A service's stream yields the same replies however the network splits it, and nothing after broken framing.
///
/// The input: a byte that chooses the splits, the stream.
enum ReadingTarget {
    enum Piece: Equatable {
        case reply(ReceivedReply)
        /// A well-framed reply with invalid contents.
        case invalid(MalformedReply)
        /// The framing is broken.
        case broken(MalformedReply)
    }

    @Sendable
    static func check(_ input: [UInt8]) throws(Violation) {
        var decisions = FuzzInput(input)
        let seed = Int(decisions.byte())
        let stream = decisions.remainder
        let whole = read([stream[...]])
        try requireEqual(read(FramingTarget.reads(of: stream, seed)), whole, "split into reads")
        var decoder = ReplyFrameDecoder()
        var exact = FramingTarget.bufferWithoutSpareBytes(stream)
        try requireEqual(pieces(&decoder, &exact), whole, "in a buffer without a byte to spare")
        for case .reply(.list(let lines)) in whole {
            for line in lines { try checkThatPeriodsDecodeAgain(line) }
        }
        for case .reply(.line(let line)) in whole { try checkThatPeriodsDecodeAgain(line) }
    }

    private static func read(_ reads: [ArraySlice<UInt8>]) -> [Piece] {
        var decoder = ReplyFrameDecoder()
        var buffer = ByteBuffer()
        var pieces: [Piece] = []
        for read in reads {
            buffer.discardReadBytes()
            buffer.writeBytes(read)
            pieces += ReadingTarget.pieces(&decoder, &buffer)
            if case .broken = pieces.last { return pieces }
        }
        return pieces
    }

    static func pieces(_ decoder: inout ReplyFrameDecoder, _ buffer: inout ByteBuffer) -> [Piece] {
        var pieces: [Piece] = []
        do throws(MalformedReply) {
            while let frame = try decoder.next(in: &buffer) {
                do throws(MalformedReply) {
                    pieces.append(.reply(try ReceivedReply(frame)))
                } catch {
                    pieces.append(.invalid(error))
                }
            }
        } catch {
            pieces.append(.broken(error))
        }
        return pieces
    }

    /// A decoded period, written out and decoded again, is the same but for control characters, which services do not
    /// send.
    private static func checkThatPeriodsDecodeAgain(_ line: String) throws(Violation) {
        if let period = PeriodUsage(periodLine: line) {
            let again = PeriodUsage(periodLine: period.expected.spelled)
            try requireEqual(again, period.received, "a period, written and decoded again")
        }
        if let report = PeriodReport(reportLine: line) {
            let again = PeriodReport(reportLine: report.expected.spelled)
            try requireEqual(again, report.received, "a report, written and decoded again")
        }
    }
}
