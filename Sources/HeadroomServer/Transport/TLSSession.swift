import NIOCore
import NIOSSL
import NIOTLS
import TransportSecurity

/// Stands between TLS and the connection: gives the handshake its time, and makes of TLS what the connection knows from
/// plain TCP.
final class TLSSession: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private enum State {
        /// Can transition to: open, closed.
        case handshaking(Scheduled<Void>?)
        /// Can transition to: closed.
        case open
        /// Final. What the peer still sends is thrown away, as an answer could not be sent any more.
        case closed
    }

    private var state = State.handshaking(nil)
    private let contexts: TLSContexts
    private let handshakeTimeout: TimeAmount

    /// The most that one record holds. TLS keeps a buffer as large as the largest write, for as long as the connection
    /// lives: in pieces of this size it stays small.
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
        endHandshake(isDone: false)
        state = .closed
        context.fireChannelInactive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .some(TLSUserEvent.handshakeCompleted) = event as? TLSUserEvent {
            endHandshake(isDone: true)
        }
        context.fireUserInboundEventTriggered(event)
    }

    private func endHandshake(isDone: Bool) {
        guard case .handshaking(let timer) = state else { return }
        timer?.cancel()
        state = isDone ? .open : .closed
        if !isDone { contexts.countFailure() }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // An end without TLS's own word for it. Each record that came is authentic, and a request that the end cut off
        // is not executed: it is an end like any other.
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
        while rest.readableBytes > TLSSession.pieceBytesMaximum,
            let piece = rest.readSlice(length: TLSSession.pieceBytesMaximum)
        {
            context.writeAndFlush(wrapOutboundOut(piece), promise: nil)
        }
        context.write(wrapOutboundOut(rest), promise: promise)
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        if case .all = mode {
            endHandshake(isDone: false)
            state = .closed
        }
        context.close(mode: mode, promise: promise)
    }
}
