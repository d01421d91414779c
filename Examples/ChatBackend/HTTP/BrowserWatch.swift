import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Notices when a browser is gone.
///
/// Closing a page, or the Stop button, closes the connection: all that is heard of it is the end of what comes. A browser whose
/// machine is gone, or that takes nothing any more, is given up after a time: it has a place among those that may be open.
final class BrowserWatch: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = NIOAny

    private static let timeoutMilliseconds = SocketOptionValue(30_000)

    private var end: EventLoopPromise<Void>?

    /// Succeeds when the browser is gone.
    fileprivate var ended: EventLoopFuture<Void>? { end?.futureResult }

    func handlerAdded(context: ChannelHandlerContext) {
        end = context.eventLoop.makePromise()
        let options: [(ChannelOptions.Types.SocketOption, SocketOptionValue)] = [
            (.socketOption(.so_keepalive), 1), (.tcpOption(.init(rawValue: TCP_KEEPIDLE)), 30),
            (.tcpOption(.init(rawValue: TCP_KEEPINTVL)), 10), (.tcpOption(.init(rawValue: TCP_KEEPCNT)), 3),
            (.tcpOption(.init(rawValue: TCP_USER_TIMEOUT)), BrowserWatch.timeoutMilliseconds),
        ]
        // Where the system has no such option the connection lives without.
        for (option, value) in options { _ = context.channel.setOption(option, value: value) }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        end?.succeed()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed? = event as? ChannelEvent { end?.succeed() }
        context.fireUserInboundEventTriggered(event)
    }
}

extension Channel {
    /// Succeeds when the browser at the other end is gone.
    func browserEnded() -> EventLoopFuture<Void> {
        let channel = self
        return eventLoop.flatSubmit {
            let watch = try? channel.pipeline.syncOperations.handler(type: BrowserWatch.self)
            return watch?.ended ?? channel.closeFuture
        }
    }
}
