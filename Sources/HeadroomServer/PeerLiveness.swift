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
    func whoseConnectionsNoticeTheirPeersEnd(outputTimeout: TimeAmount) -> ServerBootstrap {
        let milliseconds = min(outputTimeout.nanoseconds / 1_000_000, Int64(Int32.max))
        return serverChannelOption(.socketOption(.so_keepalive), value: 1)
            .serverChannelOption(.tcpOption(.init(rawValue: TCP_KEEPIDLE)), value: 60)
            .serverChannelOption(.tcpOption(.init(rawValue: TCP_KEEPINTVL)), value: 10)
            .serverChannelOption(.tcpOption(.init(rawValue: TCP_KEEPCNT)), value: 3)
            .serverChannelOption(.tcpOption(.init(rawValue: TCP_USER_TIMEOUT)), value: Int(milliseconds))
    }
}
