import NIOCore
import NIOPosix

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
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
        let limit = (milliseconds + unitMilliseconds - 1) / unitMilliseconds
        return [
            (.socketOption(.so_keepalive), 1), (.tcpOption(.init(rawValue: idleSeconds)), 60),
            (.tcpOption(.init(rawValue: TCP_KEEPINTVL)), 10), (.tcpOption(.init(rawValue: TCP_KEEPCNT)), 3),
            (.tcpOption(.init(rawValue: unacknowledgedTime)), SocketOptionValue(limit)),
        ]
    }

    #if canImport(Darwin)
    private static let idleSeconds = TCP_KEEPALIVE
    private static let unacknowledgedTime = TCP_RXT_CONNDROPTIME
    private static let unitMilliseconds: Int64 = 1_000
    #else
    private static let idleSeconds = TCP_KEEPIDLE
    private static let unacknowledgedTime = TCP_USER_TIMEOUT
    private static let unitMilliseconds: Int64 = 1
    #endif
}
