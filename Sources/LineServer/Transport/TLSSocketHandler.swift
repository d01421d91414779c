import LineProtocol
import NIOCore
import ServiceCore

/// An outbound event: the next close of the connection does not linger.
struct CloseImmediately {}

/// The channel handler between the socket and TLS. Refuses plain text with a readable error, and closes connections
/// without losing the last reply.
final class TLSSocketHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private enum State {
        /// No bytes were received. Can transition to: open, lingering.
        case first
        /// Bytes pass in both directions. Can transition to: lingering.
        case open
        /// Final. Our side is closed, or will be once all is sent. Received bytes are dropped.
        case lingering(EventLoopPromise<Void>?, Linger)
    }

    private struct Linger {
        var timer: Scheduled<Void>
        var lastBytesAt: NIODeadline
        var discardedBytes = 0
        let endsAt: NIODeadline
    }

    private var state = State.first
    private var inputIsClosed = false

    /// How long a silent peer may take to close its side.
    private static let lingerTimeout = TimeAmount.milliseconds(250)
    /// How long a peer that continues to send may take. The kernel answers bytes to a closed connection with a reset,
    /// which may destroy replies that the peer has not read yet.
    private let lingerMaximum: TimeAmount
    /// The first byte of a handshake record (RFC 8446, 5.1).
    private static let handshakeRecord: UInt8 = 22

    private static let refusal = ReplyError(
        code: .protocol,
        text: "this port speaks TLS; connect with it (redis-cli --tls, headroom --tls); closing"
    )

    init(lingerMaximum: TimeAmount) {
        self.lingerMaximum = lingerMaximum
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch state {
        case .first:
            guard unwrapInboundIn(data).readableBytesView.first == TLSSocketHandler.handshakeRecord else {
                refuse(context)
                return
            }
            state = .open
            context.fireChannelRead(data)
        case .open:
            context.fireChannelRead(data)
        case .lingering(let promise, var linger):
            linger.lastBytesAt = context.eventLoop.now
            linger.discardedBytes += unwrapInboundIn(data).readableBytes
            state = .lingering(promise, linger)
            guard linger.discardedBytes > ConnectionLimits.discardedBytesMaximum else { return }
            linger.timer.cancel()
            context.close(promise: promise)
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if case .lingering = state {
            // The handlers behind this one read no more.
            context.read()
        } else {
            context.fireChannelReadComplete()
        }
    }

    private func refuse(_ context: ChannelHandlerContext) {
        var buffer = context.channel.allocator.buffer(capacity: 128)
        Reply.error(TLSSocketHandler.refusal).encode(into: &buffer)
        context.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
        linger(context, promise: nil)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case .some(ChannelEvent.inputClosed) = event as? ChannelEvent else {
            context.fireUserInboundEventTriggered(event)
            return
        }
        inputIsClosed = true
        if case .lingering(let promise, let linger) = state {
            linger.timer.cancel()
            context.close(promise: promise)
        } else {
            context.fireUserInboundEventTriggered(event)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        if case .lingering(let promise, let linger) = state {
            linger.timer.cancel()
            promise?.succeed()
        }
        context.fireChannelInactive()
    }

    // MARK: Out

    /// TLS closes the socket right after its last record, such as an alert. If bytes of the peer are unread, the kernel
    /// would discard that record. So this closes our side first, as connections without TLS do. A failed handshake
    /// closes twice, so a second close does not end the linger time.
    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard case .all = mode, !inputIsClosed, context.channel.isActive else {
            context.close(mode: mode, promise: promise)
            return
        }
        if case .lingering(let earlier, let linger) = state {
            guard let promise else { return }
            if let earlier { earlier.futureResult.cascade(to: promise) } else { state = .lingering(promise, linger) }
        } else {
            linger(context, promise: promise)
        }
    }

    func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        if event is CloseImmediately {
            context.close(promise: promise)
        } else {
            context.triggerUserOutboundEvent(event, promise: promise)
        }
    }

    private func linger(_ context: ChannelHandlerContext, promise: EventLoopPromise<Void>?) {
        let now = context.eventLoop.now
        let linger = Linger(
            timer: schedule(context, at: now + min(TLSSocketHandler.lingerTimeout, lingerMaximum)),
            lastBytesAt: now,
            endsAt: now + lingerMaximum
        )
        state = .lingering(promise, linger)
        context.close(mode: .output, promise: nil)
        context.read()
    }

    private func schedule(_ context: ChannelHandlerContext, at deadline: NIODeadline) -> Scheduled<Void> {
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        return context.eventLoop.scheduleTask(deadline: deadline) { bound.value.0.timerFired(bound.value.1) }
    }

    private func timerFired(_ context: ChannelHandlerContext) {
        guard case .lingering(let promise, var linger) = state else { return }
        let end = min(linger.lastBytesAt + TLSSocketHandler.lingerTimeout, linger.endsAt)
        if context.eventLoop.now >= end {
            context.close(promise: promise)
        } else {
            linger.timer = schedule(context, at: end)
            state = .lingering(promise, linger)
        }
    }
}
