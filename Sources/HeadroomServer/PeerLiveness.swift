import NIOCore
import NIOPosix

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

extension ServerBootstrap {
    /// A peer whose machine or network is gone says nothing, not even that it is gone.
    ///
    /// What it does not acknowledge ends the connection after `outputTimeout`: it need not be so much that our buffers fill.
    /// Where nothing is to be sent, as to a subscriber, it is asked after a minute whether it is there. Options of the port
    /// are those of its connections, without a system call for each.
    package func whoseConnectionsNoticeTheirPeersEnd(outputTimeout: TimeAmount) -> ServerBootstrap {
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
