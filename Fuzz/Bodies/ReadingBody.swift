import LineProtocol
import NIOCore
import Usage

/// What a client reads is the same replies however the network cuts it, and once it cannot be told apart nothing more is
/// read of it.
///
/// The input: a byte that chooses the cuts, what a service sends.
enum ReadingBody {
    enum Piece: Equatable {
        case reply(ReceivedReply)
        /// One reply, in one piece, that means nothing.
        case notUnderstood(MalformedReply)
        /// What follows cannot be told apart.
        case broken(MalformedReply)
    }

    @Sendable
    static func check(_ input: [UInt8]) throws(Violation) {
        var decisions = Decisions(input)
        let cuts = Int(decisions.byte())
        let stream = decisions.remainder
        let whole = read([stream[...]])
        try requireEqual(read(FramingBody.reads(of: stream, cuts)), whole, "cut in reads")
        var framing = ReplyFraming()
        var exact = FramingBody.bufferWithoutSpareBytes(stream)
        try requireEqual(pieces(&framing, &exact), whole, "in a buffer without a byte to spare")
        for case .reply(.list(let lines)) in whole {
            for line in lines { try checkThatPeriodsReadBack(line) }
        }
        for case .reply(.line(let line)) in whole { try checkThatPeriodsReadBack(line) }
    }

    private static func read(_ reads: [ArraySlice<UInt8>]) -> [Piece] {
        var framing = ReplyFraming()
        var buffer = ByteBuffer()
        var pieces: [Piece] = []
        for read in reads {
            buffer.discardReadBytes()
            buffer.writeBytes(read)
            pieces += ReadingBody.pieces(&framing, &buffer)
            if case .broken = pieces.last { return pieces }
        }
        return pieces
    }

    static func pieces(_ framing: inout ReplyFraming, _ buffer: inout ByteBuffer) -> [Piece] {
        var pieces: [Piece] = []
        do throws(MalformedReply) {
            while let frame = try framing.next(in: &buffer) {
                do throws(MalformedReply) {
                    pieces.append(.reply(try ReceivedReply(frame)))
                } catch {
                    pieces.append(.notUnderstood(error))
                }
            }
        } catch {
            pieces.append(.broken(error))
        }
        return pieces
    }

    /// What is read of a line about a period is no more than stands there, but for control characters, which nobody sends.
    private static func checkThatPeriodsReadBack(_ line: String) throws(Violation) {
        if let period = PeriodUsage(periodLine: line) {
            let again = PeriodUsage(periodLine: period.expected.spelled)
            try requireEqual(again, period.received, "a period, spelled and read again")
        }
        if let report = PeriodReport(reportLine: line) {
            let again = PeriodReport(reportLine: report.expected.spelled)
            try requireEqual(again, report.received, "a report, spelled and read again")
        }
    }
}
