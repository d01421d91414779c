import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Ends connections whose browser takes nothing any more, or is gone without a word: each has a place among those that may
/// be open.
final class PeerLiveness: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = Never

    private static let timeoutMilliseconds = SocketOptionValue(30_000)

    func handlerAdded(context: ChannelHandlerContext) {
        let options: [(ChannelOptions.Types.SocketOption, SocketOptionValue)] = [
            (.socketOption(.so_keepalive), 1), (.tcpOption(.init(rawValue: TCP_KEEPIDLE)), 30),
            (.tcpOption(.init(rawValue: TCP_KEEPINTVL)), 10), (.tcpOption(.init(rawValue: TCP_KEEPCNT)), 3),
            (.tcpOption(.init(rawValue: TCP_USER_TIMEOUT)), PeerLiveness.timeoutMilliseconds),
        ]
        // Where the system has no such option the connection lives without.
        for (option, value) in options { _ = context.channel.setOption(option, value: value) }
    }
}
