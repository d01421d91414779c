import NIOCore

/// Stands before the library's handler of HTTP/2, and bounds what that keeps of the received bytes and how many frames
/// it processes.
final class FrameInputHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// The peer sends too many frames that carry nothing.
    struct TooManyFrames: Error {}

    private let connection: ConnectionLimitHandler
    private var frames = FrameInputStateMachine()

    init(_ connection: ConnectionLimitHandler) {
        self.connection = connection
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !connection.isInputStopped else { return }
        var bytes = unwrapInboundIn(data)
        let now = context.eventLoop.now
        switch bytes.withUnsafeReadableBytes({ frames.received($0, at: now) }) {
        case .end: context.fireErrorCaught(TooManyFrames())
        case .passOn(let end):
            if end > 0, end < bytes.readableBytes, let frames = bytes.readSlice(length: end) {
                context.fireChannelRead(wrapInboundOut(frames))
                // One of them was an error.
                guard !connection.isInputStopped else { return }
            }
            context.fireChannelRead(wrapInboundOut(bytes))
        }
    }
}
