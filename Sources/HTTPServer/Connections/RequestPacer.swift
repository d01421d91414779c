import NIOCore

/// Gives the HTTP decoder the bytes of one request at a time. While an answer is due, what follows is kept as it came,
/// and nothing more is read. A request takes about a kilobyte once it is decoded, and 18 bytes before.
final class RequestPacer: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = IOData
    typealias OutboundOut = IOData

    /// Only the decoder knows where a request ends, so that a part may hold several small ones: 28 at most.
    static let partBytes = 512

    private let gate: ConnectionGate
    private var context: ChannelHandlerContext?
    private var kept = ByteBuffer()
    private var isProceeding = false
    /// Somebody behind this wants to read on.
    private var wantsRead = false
    /// The peer ended its side behind what is kept.
    private var inputClosed: ChannelEvent?

    init(_ gate: ConnectionGate) {
        self.gate = gate
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        kept = ByteBuffer()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var buffer = unwrapInboundIn(data)
        if kept.readableBytes == 0 { kept = buffer } else { kept.writeBuffer(&buffer) }
        passOn(context)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if kept.readableBytes > 0, let event = event as? ChannelEvent, event == .inputClosed {
            inputClosed = event
        } else {
            context.fireUserInboundEventTriggered(event)
        }
    }

    func read(context: ChannelHandlerContext) {
        if kept.readableBytes == 0 { context.read() } else { wantsRead = true }
    }

    /// An answer is sent.
    func proceed() {
        guard let context, !isProceeding, kept.readableBytes > 0, passOn(context) else { return }
        // Nothing was read: those behind hear of the end of a reading from here.
        context.fireChannelReadComplete()
        if kept.readableBytes == 0, wantsRead {
            wantsRead = false
            context.read()
        }
    }

    /// - Returns: whether anything was passed on.
    @discardableResult
    private func passOn(_ context: ChannelHandlerContext) -> Bool {
        // An answer that is sent at once asks for more within this.
        guard !isProceeding else { return false }
        isProceeding = true
        defer { isProceeding = false }
        var hasPassed = false
        while kept.readableBytes > 0, gate.unanswered == 0 || gate.isWithinRequest, context.channel.isActive,
            let part = kept.readSlice(length: min(kept.readableBytes, RequestPacer.partBytes))
        {
            hasPassed = true
            context.fireChannelRead(wrapInboundOut(part))
        }
        if kept.readableBytes == 0 {
            kept = ByteBuffer()
            if let event = inputClosed {
                inputClosed = nil
                context.fireUserInboundEventTriggered(event)
            }
        }
        return hasPassed
    }
}
