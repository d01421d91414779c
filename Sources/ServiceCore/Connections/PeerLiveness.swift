import NIOCore
import NIOPosix

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

extension ServerBootstrap {
    /// Closes connections whose peer is unreachable, which TCP does not detect by itself.
    ///
    /// Sent bytes that are not acknowledged within `outputTimeout` end the connection, however few they are. A
    /// connection without traffic, such as a subscriber's, is probed after a minute (keep-alive). Connections inherit
    /// these options from the port, without system calls of their own.
    package func detectingDeadPeers(outputTimeout: TimeAmount) -> ServerBootstrap {
        PeerLiveness.options(outputTimeout: outputTimeout).reduce(self) { $0.serverChannelOption($1.0, value: $1.1) }
    }
}

private enum PeerLiveness {
    static func options(outputTimeout: TimeAmount) -> [(ChannelOptions.Types.SocketOption, SocketOptionValue)] {
        let milliseconds = min(outputTimeout.nanoseconds / 1_000_000, Int64(Int32.max))
        return [
            (.socketOption(.so_keepalive), 1), (.tcpOption(.init(rawValue: TCP_KEEPIDLE)), 60),
            (.tcpOption(.init(rawValue: TCP_KEEPINTVL)), 10), (.tcpOption(.init(rawValue: TCP_KEEPCNT)), 3),
            (.tcpOption(.init(rawValue: TCP_USER_TIMEOUT)), SocketOptionValue(milliseconds)),
        ]
    }
}
