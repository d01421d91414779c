import LineProtocol
import NIOCore

/// An event on its way out: the socket is closed at once, without the time that a connection has otherwise for what is still
/// on its way.
struct ConnectionCut {}

/// Stands between the socket and TLS: tells peers in plain text that do not speak it, and ends connections without losing
/// what was said last.
final class TLSEdge: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private enum State {
        /// Nothing has come. Can transition to: passing, ending.
        case first
        /// Can transition to: ending.
        case passing
        /// Our side is ended, or will be once everything is sent; what comes is thrown away.
        case ending(EventLoopPromise<Void>?, Linger)
    }

    private struct Linger {
        var timer: Scheduled<Void>
        var lastBytesAt: NIODeadline
        var discardedBytes = 0
        let endsAt: NIODeadline
    }

    private var state = State.first
    private var inputIsClosed = false

    /// How long a peer that sends nothing more may take to end its side.
    private static let lingerTimeout = TimeAmount.milliseconds(250)
    /// How long one may that goes on sending: what comes to a closed connection is answered with a reset, which makes the
    /// peer's kernel discard what the peer has not read yet.
    private let lingerMaximum: TimeAmount
    /// The first byte of a record that begins a handshake (RFC 8446, 5.1).
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
            guard unwrapInboundIn(data).readableBytesView.first == TLSEdge.handshakeRecord else {
                refuse(context)
                return
            }
            state = .passing
            context.fireChannelRead(data)
        case .passing:
            context.fireChannelRead(data)
        case .ending(let promise, var linger):
            linger.lastBytesAt = context.eventLoop.now
            linger.discardedBytes += unwrapInboundIn(data).readableBytes
            state = .ending(promise, linger)
            guard linger.discardedBytes > ConnectionLimits.discardedBytesMaximum else { return }
            linger.timer.cancel()
            context.close(promise: promise)
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if case .ending = state {
            // Nobody behind this asks for more any longer.
            context.read()
        } else {
            context.fireChannelReadComplete()
        }
    }

    private func refuse(_ context: ChannelHandlerContext) {
        var buffer = context.channel.allocator.buffer(capacity: 128)
        Reply.error(TLSEdge.refusal).encode(into: &buffer)
        context.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
        end(context, promise: nil)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case .some(ChannelEvent.inputClosed) = event as? ChannelEvent else {
            context.fireUserInboundEventTriggered(event)
            return
        }
        inputIsClosed = true
        if case .ending(let promise, let linger) = state {
            linger.timer.cancel()
            context.close(promise: promise)
        } else {
            context.fireUserInboundEventTriggered(event)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        if case .ending(let promise, let linger) = state {
            linger.timer.cancel()
            promise?.succeed()
        }
        context.fireChannelInactive()
    }

    // MARK: Out

    /// TLS closes the socket right after its last record, an alert say. The kernel would throw that away where the peer
    /// has sent something we did not read: end our side first, as without TLS. A handshake that fails asks twice, so asking
    /// again is no reason to be quicker.
    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard case .all = mode, !inputIsClosed, context.channel.isActive else {
            context.close(mode: mode, promise: promise)
            return
        }
        if case .ending(let earlier, let linger) = state {
            guard let promise else { return }
            if let earlier { earlier.futureResult.cascade(to: promise) } else { state = .ending(promise, linger) }
        } else {
            end(context, promise: promise)
        }
    }

    func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        if event is ConnectionCut {
            context.close(promise: promise)
        } else {
            context.triggerUserOutboundEvent(event, promise: promise)
        }
    }

    private func end(_ context: ChannelHandlerContext, promise: EventLoopPromise<Void>?) {
        let now = context.eventLoop.now
        let linger = Linger(
            timer: schedule(context, at: now + min(TLSEdge.lingerTimeout, lingerMaximum)),
            lastBytesAt: now,
            endsAt: now + lingerMaximum
        )
        state = .ending(promise, linger)
        context.close(mode: .output, promise: nil)
        context.read()
    }

    private func schedule(_ context: ChannelHandlerContext, at deadline: NIODeadline) -> Scheduled<Void> {
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        return context.eventLoop.scheduleTask(deadline: deadline) { bound.value.0.timerFired(bound.value.1) }
    }

    private func timerFired(_ context: ChannelHandlerContext) {
        guard case .ending(let promise, var linger) = state else { return }
        let end = min(linger.lastBytesAt + TLSEdge.lingerTimeout, linger.endsAt)
        if context.eventLoop.now >= end {
            context.close(promise: promise)
        } else {
            linger.timer = schedule(context, at: end)
            state = .ending(promise, linger)
        }
    }
}
