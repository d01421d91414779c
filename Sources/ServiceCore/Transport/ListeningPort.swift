import NIOCore
import NIOPosix

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A port that the service listens on: it opens the port itself, or inherits an open socket.
package struct ListeningPort: Sendable {
    private let address: ListenAddress
    private let inherited: InheritedSocket?
    private let isReusable: Bool

    /// - Parameters:
    ///   - address: not used where a socket is inherited.
    ///   - isReusable: whether another process of this user may open the same port (SO_REUSEPORT).
    init(_ address: ListenAddress, inherited: InheritedSocket?, isReusable: Bool) {
        self.address = address
        self.inherited = inherited
        self.isReusable = isReusable
    }

    /// - Throws: `IOError` when the address is in use or not one of this machine's.
    package func open(_ bootstrap: ServerBootstrap) async throws -> OpenPort {
        if let inherited {
            let channel = try await bootstrap.withBoundSocket(inherited.descriptor).get()
            // NIO listens again, and so shortens the queue of connections that wait to be accepted. The kernel limits
            // this number by net.core.somaxconn.
            listen(inherited.descriptor, .max)
            return OpenPort(channel: channel, address: inherited.address, isInherited: true)
        }
        if isReusable {
            _ = bootstrap.serverChannelOption(.socketOption(.init(rawValue: SO_REUSEPORT)), value: 1)
        }
        let channel = try await bootstrap.bind(host: address.host, port: address.port).get()
        let port = channel.localAddress?.port ?? 0
        return OpenPort(
            channel: channel,
            address: ListenAddress(host: address.host, port: port),
            isInherited: false
        )
    }
}

/// A port that is open.
package struct OpenPort: Sendable {
    package let channel: any Channel
    /// The address, with the port that the kernel chose where the setting is 0.
    package let address: ListenAddress
    let isInherited: Bool

    /// The time to accept the connections that wait. It takes a millisecond, unless descriptors are short.
    private static let acceptTimeout = TimeAmount.milliseconds(250)
    /// The pause is not zero: a task without delay would run before the event loop accepts connections.
    private static let acceptPause = TimeAmount.microseconds(200)

    /// Accepts the connections that wait, then closes the port: the kernel resets those that wait in a socket that is
    /// closed. Those of an inherited socket wait for the process that serves it next.
    ///
    /// - Returns: completes on the port's event loop, once no further connection is accepted.
    package func close() -> EventLoopFuture<Void> {
        let eventLoop = channel.eventLoop
        let closed = eventLoop.makePromise(of: Void.self)
        eventLoop.execute { closeWhenNoneWaits(until: .now() + OpenPort.acceptTimeout, closed) }
        return closed.futureResult
    }

    private func closeWhenNoneWaits(until deadline: NIODeadline, _ closed: EventLoopPromise<Void>) {
        if isInherited || waitingCount == 0 || .now() >= deadline {
            channel.close(promise: closed)
            return
        }
        channel.eventLoop.scheduleTask(in: OpenPort.acceptPause) { closeWhenNoneWaits(until: deadline, closed) }
    }

    /// Connections that the kernel has accepted and the service has not. To be called on the event loop.
    private var waitingCount: UInt32 {
        #if os(Linux)
        guard let options = channel as? any SocketOptionProvider else { return 0 }
        var count: UInt32 = 0
        // The future is complete when it returns. The field has this meaning for a listening socket (tcp_get_info in
        // the kernel).
        options.getTCPInfo().assumeIsolated().whenSuccess { count = $0.tcpi_unacked }
        return count
        #else
        // The number is not known: the port closes at once, and connections that wait are reset.
        return 0
        #endif
    }
}
