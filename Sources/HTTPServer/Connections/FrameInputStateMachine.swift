import NIOCore

/// Follows the frames of an HTTP/2 connection (RFC 9113, 4.1) in its received bytes. No I/O.
///
/// The library's decoder keeps all bytes that it has decoded until its input ends exactly where a frame ends. So input
/// is passed on in two parts, of which the first ends with a frame.
///
/// Peers may send any number of frames that carry nothing: each costs some work and, if it is a piece of a body, some
/// memory. A peer has a budget for them, which time and requests refill.
struct FrameInputStateMachine {
    enum Action: Equatable {
        /// Pass on so many bytes, then the others.
        case passOn(Int)
        /// The budget is spent: end the connection.
        case end
    }

    /// Far more than a client needs that acknowledges each frame of an answer.
    static let budgetMaximum = 10_000
    static let budgetPerSecond = 1_000
    /// A client may send a request's body, its end, and updates of two windows in a frame each.
    static let budgetPerRequest = 20
    /// A piece of a body without its end costs as much as ten other frames if it has less.
    static let pieceBytesMinimum = 1_024
    static let pieceCost = 10

    private enum FrameType {
        static let data: UInt8 = 0
        static let headers: UInt8 = 1
    }

    private static let prefaceBytes = 24
    private static let headerBytes = 9
    private static let endStream: UInt8 = 1

    /// Bytes of the preface or of a payload that have not come.
    private var missing = prefaceBytes
    /// The received part of a frame's header.
    private var headerBytesReceived = 0
    private var length = 0
    private var type: UInt8 = 0
    private var budget = budgetMaximum
    private var refilledAt: NIODeadline?

    mutating func received(_ bytes: UnsafeRawBufferPointer, at now: NIODeadline) -> Action {
        refill(at: now)
        var position = 0
        var end = 0
        while position < bytes.count {
            if missing > 0 {
                let count = min(missing, bytes.count - position)
                missing -= count
                position += count
            } else {
                headerByteReceived(bytes[position])
                position += 1
                if headerBytesReceived > 0 { continue }
            }
            if missing == 0 { end = position }
        }
        return budget < 0 ? .end : .passOn(end)
    }

    /// The length has three bytes; type and flags follow, then the stream's number.
    private mutating func headerByteReceived(_ byte: UInt8) {
        headerBytesReceived += 1
        switch headerBytesReceived {
        case 1...3: length = length << 8 | Int(byte)
        case 4: type = byte
        case 5: charge(flags: byte)
        case FrameInputStateMachine.headerBytes:
            missing = length
            (length, headerBytesReceived) = (0, 0)
        default: break
        }
    }

    private mutating func charge(flags: UInt8) {
        switch type {
        case FrameType.headers:
            budget = min(
                budget + FrameInputStateMachine.budgetPerRequest,
                FrameInputStateMachine.budgetMaximum
            )
        case FrameType.data:
            let hasEnd = flags & FrameInputStateMachine.endStream != 0
            if !hasEnd, length < FrameInputStateMachine.pieceBytesMinimum { budget -= FrameInputStateMachine.pieceCost }
        default: budget -= 1
        }
    }

    private mutating func refill(at now: NIODeadline) {
        let passed = (now - (refilledAt ?? now)).nanoseconds
        let refill = min(passed / 1_000, 60_000_000) * Int64(FrameInputStateMachine.budgetPerSecond) / 1_000_000
        guard refill > 0 || refilledAt == nil else { return }
        refilledAt = now
        budget = min(budget + Int(refill), FrameInputStateMachine.budgetMaximum)
    }
}
