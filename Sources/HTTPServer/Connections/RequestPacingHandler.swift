import NIOCore

/// Passes one request at a time to the HTTP decoder. While a response is due, further bytes are buffered undecoded and
/// nothing more is read: a pipelined request takes about a kilobyte decoded, and as little as 18 bytes before.
final class RequestPacingHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = IOData
    typealias OutboundOut = IOData

    /// Only the decoder finds the end of a request, so a part can have several small requests: at most 28.
    static let sliceBytesMaximum = 512

    private let connection: ConnectionLimitHandler
    private var context: ChannelHandlerContext?
    private var buffered = ByteBuffer()
    private var isProceeding = false
    /// A later handler has requested a read.
    private var isReadPending = false
    /// The peer has closed its side after the buffered bytes.
    private var inputClosed: ChannelEvent?

    init(_ connection: ConnectionLimitHandler) {
        self.connection = connection
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        buffered = ByteBuffer()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var buffer = unwrapInboundIn(data)
        if buffered.readableBytes == 0 { buffered = buffer } else { buffered.writeBuffer(&buffer) }
        passOn(context)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if buffered.readableBytes > 0, let event = event as? ChannelEvent, event == .inputClosed {
            inputClosed = event
        } else {
            context.fireUserInboundEventTriggered(event)
        }
    }

    func read(context: ChannelHandlerContext) {
        if buffered.readableBytes == 0 { context.read() } else { isReadPending = true }
    }

    /// Continues after a response was sent.
    func proceed() {
        guard let context, !isProceeding, buffered.readableBytes > 0, passOn(context) else { return }
        // No read from the socket completes now, so this handler fires the event.
        context.fireChannelReadComplete()
        if buffered.readableBytes == 0, isReadPending {
            isReadPending = false
            context.read()
        }
    }

    /// - Returns: whether anything was passed on.
    @discardableResult
    private func passOn(_ context: ChannelHandlerContext) -> Bool {
        // A response that is sent immediately calls `proceed` from within this loop.
        guard !isProceeding else { return false }
        isProceeding = true
        defer { isProceeding = false }
        var hasPassedBytes = false
        while buffered.readableBytes > 0, connection.unanswered == 0 || connection.isWithinRequest,
            context.channel.isActive,
            let part = buffered.readSlice(length: min(buffered.readableBytes, RequestPacingHandler.sliceBytesMaximum))
        {
            hasPassedBytes = true
            context.fireChannelRead(wrapInboundOut(part))
        }
        if buffered.readableBytes == 0 {
            buffered = ByteBuffer()
            if let event = inputClosed {
                inputClosed = nil
                context.fireUserInboundEventTriggered(event)
            }
        }
        return hasPassedBytes
    }
}
