import NIOCore
import NIOSSL
import NIOTLS
import ServiceCore
import TransportSecurity

/// The channel handler between TLS and the connection. Limits the handshake's time, and makes a TLS connection behave
/// like one of plain TCP.
final class TLSSessionHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private enum State {
        /// Can transition to: open, closed.
        case handshaking(Scheduled<Void>?)
        /// Can transition to: closed.
        case open
        /// Final. Received bytes are dropped, because no reply could be sent.
        case closed
    }

    private var state = State.handshaking(nil)
    private let contexts: TLSContexts
    private let handshakeTimeout: TimeAmount

    /// The size of the largest TLS record. TLS keeps a buffer as large as the largest write for the connection's
    /// lifetime, so larger writes are split.
    private static let pieceBytesMaximum = 16_384

    init(_ contexts: TLSContexts, handshakeTimeout: TimeAmount) {
        self.contexts = contexts
        self.handshakeTimeout = handshakeTimeout
    }

    func channelActive(context: ChannelHandlerContext) {
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        state = .handshaking(
            context.eventLoop.scheduleTask(in: handshakeTimeout) { bound.value.close(promise: nil) }
        )
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        endHandshake(isComplete: false)
        state = .closed
        context.fireChannelInactive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .some(TLSUserEvent.handshakeCompleted) = event as? TLSUserEvent {
            endHandshake(isComplete: true)
        }
        context.fireUserInboundEventTriggered(event)
    }

    private func endHandshake(isComplete: Bool) {
        guard case .handshaking(let timer) = state else { return }
        timer?.cancel()
        state = isComplete ? .open : .closed
        if !isComplete { contexts.countFailure() }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // The peer has closed without close_notify. All received records are authentic, and an incomplete request is
        // not executed, so this is a normal end.
        if case .some(.uncleanShutdown) = error as? NIOSSLError { return }
        context.fireErrorCaught(TLSFailure(error))
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if case .closed = state { return }
        context.fireChannelRead(data)
    }

    // MARK: Out

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        var rest = unwrapOutboundIn(data)
        while rest.readableBytes > TLSSessionHandler.pieceBytesMaximum,
            let piece = rest.readSlice(length: TLSSessionHandler.pieceBytesMaximum)
        {
            context.writeAndFlush(wrapOutboundOut(piece), promise: nil)
        }
        context.write(wrapOutboundOut(rest), promise: promise)
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        if case .all = mode {
            endHandshake(isComplete: false)
            state = .closed
        }
        context.close(mode: mode, promise: promise)
    }
}
