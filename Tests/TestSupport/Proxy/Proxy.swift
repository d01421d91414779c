import NIOCore
import NIOPosix
import Synchronization

/// A proxy between a client and a server, over TCP or Unix sockets, that injects faults into connections.
public final class Proxy: Sendable {
    /// When to cut a connection, relative to the request that contains a text.
    public enum Cut: Sendable {
        /// Before the server sees the request.
        case request(String)
        /// After PostgreSQL has answered. The client does not receive the answer.
        case reply(String)
        /// Right after the request was sent. Only the client's end is closed, and PostgreSQL continues.
        case abandon(String)

        var text: String {
            switch self {
            case .request(let text), .reply(let text), .abandon(let text): text
            }
        }
    }

    /// Random faults of every connection.
    public struct Faults: Sendable {
        var cutAfterBytes: ClosedRange<Int>?
        var delayMilliseconds: ClosedRange<Int64>?
        var chunkBytes: ClosedRange<Int>?

        /// - Parameters:
        ///   - cutAfterBytes: the number of bytes after which a connection is cut; nil is never.
        ///   - delayMilliseconds: the delay of each chunk; nil is none.
        ///   - chunkBytes: the size of chunks; nil is the size in which the bytes arrive.
        public init(
            cutAfterBytes: ClosedRange<Int>? = nil,
            delayMilliseconds: ClosedRange<Int64>? = nil,
            chunkBytes: ClosedRange<Int>? = nil
        ) {
            self.cutAfterBytes = cutAfterBytes
            self.delayMilliseconds = delayMilliseconds
            self.chunkBytes = chunkBytes
        }
    }

    private struct Relayed {
        var connection: ProxiedConnection
        let client: any Channel
        /// Nil until the proxy has connected to the server.
        var server: (any Channel)?

        func channel(_ end: ProxiedConnection.End) -> (any Channel)? { end == .client ? client : server }
    }

    private struct State {
        /// Set by `start`.
        var listener: (any Channel)?
        var relayed: [Int: Relayed] = [:]
        var connections = 0
        var cuts = 0
        var armed: Cut?
        var refusesConnections = false
        var refusesConnectionsAfterCut = false

        mutating func countCut() {
            cuts += 1
            refusesConnections = refusesConnections || refusesConnectionsAfterCut
        }
    }

    private let target: SocketAddress
    private let faults: Faults
    private let seed: UInt64
    private let state = Mutex(State())

    /// - Parameters:
    ///   - listeningOn: the default is a free port of 127.0.0.1.
    ///   - seed: the seed of the faults.
    public static func start(
        to target: SocketAddress,
        listeningOn address: SocketAddress? = nil,
        _ faults: Faults = Faults(),
        seed: UInt64 = 0
    ) async throws -> Proxy {
        let proxy = Proxy(target, faults, seed)
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            // Bytes of the client are read after the proxy has connected to the server.
            .childChannelOption(.autoRead, value: false)
            .childChannelInitializer { proxy.accept($0) }
            .bind(to: address ?? SocketAddress(ipAddress: "127.0.0.1", port: 0))
            .get()
        proxy.state.withLock { $0.listener = listener }
        return proxy
    }

    private init(_ target: SocketAddress, _ faults: Faults, _ seed: UInt64) {
        self.target = target
        self.faults = faults
        self.seed = seed
    }

    // MARK: Control by tests

    /// The address for clients.
    public var address: SocketAddress {
        guard let address = state.withLock({ $0.listener })?.localAddress else {
            preconditionFailure("the proxy does not listen")
        }
        return address
    }

    /// The number of accepted connections.
    public var connections: Int { state.withLock { $0.connections } }

    /// The number of cuts, without those of `cutAll`.
    public var cuts: Int { state.withLock { $0.cuts } }

    /// Cuts once, at the next request with the text of the cut.
    public func arm(_ cut: Cut) { state.withLock { $0.armed = cut } }

    /// While true, new connections are closed at once.
    public var refusesConnections: Bool {
        get { state.withLock { $0.refusesConnections } }
        set { state.withLock { $0.refusesConnections = newValue } }
    }

    /// Whether `refusesConnections` becomes true with the next cut.
    public var refusesConnectionsAfterCut: Bool {
        get { state.withLock { $0.refusesConnectionsAfterCut } }
        set { state.withLock { $0.refusesConnectionsAfterCut = newValue } }
    }

    /// Closes the client's end of all connections.
    public func abandonAll() {
        for number in state.withLock({ Array($0.relayed.keys) }) {
            perform(on: number, from: .client) { connection, _ in connection.abandon() }
        }
    }

    /// Cuts all open connections.
    public func cutAll() {
        let channels = state.withLock { state in state.relayed.values.flatMap { [$0.client, $0.server] } }
        for channel in channels { channel?.close(promise: nil) }
    }

    public func close() {
        refusesConnections = true
        state.withLock { $0.listener }?.close(promise: nil)
        cutAll()
    }

    // MARK: Connections

    private func accept(_ client: any Channel) -> EventLoopFuture<Void> {
        let admitted = state.withLock { state -> Int? in
            guard !state.refusesConnections else { return nil }
            state.connections += 1
            let connection = ProxiedConnection(faults, seed: seed &+ UInt64(state.connections))
            state.relayed[state.connections] = Relayed(connection: connection, client: client)
            return state.connections
        }
        // A failed initializer closes the client.
        guard let number = admitted else { return client.eventLoop.makeFailedFuture(ChannelError.eof) }
        connect(number, client)
        return relay(client, .client, number)
    }

    private func connect(_ number: Int, _ client: any Channel) {
        ClientBootstrap(group: client.eventLoop)
            .connectTimeout(TimeAmount(waitLimit))
            .channelInitializer { self.relay($0, .server, number) }
            .connect(to: target)
            .whenComplete { result in
                guard case .success(let server) = result else { return client.close(promise: nil) }
                let isOpen = self.state.withLock { state in
                    state.relayed[number]?.server = server
                    return state.relayed[number] != nil
                }
                guard isOpen else { return server.close(promise: nil) }
                client.setOption(.autoRead, value: true).whenFailure { _ in client.close(promise: nil) }
            }
    }

    private func relay(_ channel: any Channel, _ end: ProxiedConnection.End, _ number: Int) -> EventLoopFuture<Void> {
        // Not in channelInactive, because a channel that was just accepted is not active yet.
        channel.closeFuture.whenComplete { _ in self.ended(end, number) }
        return channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandler(
                Receiver { bytes in
                    self.perform(on: number, from: end) { connection, armed in
                        connection.received(bytes, from: end, armed: &armed, now: .now())
                    }
                }
            )
        }
    }

    private func ended(_ end: ProxiedConnection.End, _ number: Int) {
        perform(on: number, from: end) { connection, _ in connection.ended(end) }
        state.withLock { state in
            // After an abandoned request, the connection ends with the server's answer.
            if end == .server || state.relayed[number]?.server == nil { state.relayed[number] = nil }
        }
    }

    /// Changes a connection under the lock, and executes the action outside.
    private func perform(
        on number: Int,
        from end: ProxiedConnection.End,
        _ change: (inout ProxiedConnection, inout Cut?) -> ProxiedConnection.Action
    ) {
        let (action, relayed) = state.withLock { state -> (ProxiedConnection.Action, Relayed?) in
            guard var relayed = state.relayed[number] else { return (.init(), nil) }
            let action = change(&relayed.connection, &state.armed)
            state.relayed[number] = relayed
            if action.isCut { state.countCut() }
            return (action, relayed)
        }
        if let other = relayed?.channel(end == .client ? .server : .client) {
            for chunk in action.chunks {
                guard let due = chunk.due else {
                    other.writeAndFlush(chunk.bytes, promise: nil)
                    continue
                }
                // Tasks of an event loop are executed by deadline, and those with equal deadlines in the order of
                // scheduling.
                other.eventLoop.scheduleTask(deadline: due) { other.writeAndFlush(chunk.bytes, promise: nil) }
            }
        }
        for end in action.closes { relayed?.channel(end)?.close(promise: nil) }
    }
}

/// Passes received bytes to a closure.
private final class Receiver: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let receive: (ByteBuffer) -> Void

    init(_ receive: @escaping (ByteBuffer) -> Void) { self.receive = receive }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { receive(unwrapInboundIn(data)) }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
