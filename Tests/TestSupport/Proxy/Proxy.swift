import NIOCore
import NIOPosix
import Synchronization

/// Stands between a client and a server, relays bytes over TCP or Unix sockets, and breaks connections as a test asks.
public final class Proxy: Sendable {
    /// The moment at which a connection is cut: around the request that contains a text.
    public enum Cut: Sendable {
        /// Before the server sees the request.
        case request(String)
        /// After PostgreSQL has answered and is ready for the next request: the client never sees the answer.
        case reply(String)
        /// Right after the request was sent: the client sees its connection end, PostgreSQL does not, and goes on.
        case abandon(String)

        var text: String {
            switch self {
            case .request(let text), .reply(let text), .abandon(let text): text
            }
        }
    }

    /// What happens to every connection, by chance.
    public struct Faults: Sendable {
        var cutAfterBytes: ClosedRange<Int>?
        var delayMilliseconds: ClosedRange<Int64>?
        var pieceBytes: ClosedRange<Int>?

        /// - Parameters:
        ///   - cutAfterBytes: a connection is cut once so many bytes have gone through; nil is never.
        ///   - delayMilliseconds: each piece waits for so long; nil is not at all.
        ///   - pieceBytes: what comes is passed on in pieces of so many bytes; nil is whole.
        public init(
            cutAfterBytes: ClosedRange<Int>? = nil,
            delayMilliseconds: ClosedRange<Int64>? = nil,
            pieceBytes: ClosedRange<Int>? = nil
        ) {
            self.cutAfterBytes = cutAfterBytes
            self.delayMilliseconds = delayMilliseconds
            self.pieceBytes = pieceBytes
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
        /// Set by `start`, which alone makes a proxy.
        var listener: (any Channel)?
        var relayed: [Int: Relayed] = [:]
        var connections = 0
        var cuts = 0
        var armed: Cut?
        var refuses = false
        var refusesAfterCut = false

        mutating func noteCut() {
            cuts += 1
            refuses = refuses || refusesAfterCut
        }
    }

    private let target: SocketAddress
    private let faults: Faults
    private let seed: UInt64
    private let state = Mutex(State())

    /// - Parameters:
    ///   - listeningOn: a free port of 127.0.0.1 unless given.
    ///   - seed: of the faults.
    public static func start(
        to target: SocketAddress,
        listeningOn address: SocketAddress? = nil,
        _ faults: Faults = Faults(),
        seed: UInt64 = 0
    ) async throws -> Proxy {
        let proxy = Proxy(target, faults, seed)
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            // The client is not read from before there is a server to pass it on to.
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

    // MARK: What a test asks

    /// Where clients connect to.
    public var address: SocketAddress {
        guard let address = state.withLock({ $0.listener })?.localAddress else {
            preconditionFailure("it listens nowhere")
        }
        return address
    }

    /// How many connections it has accepted.
    public var connections: Int { state.withLock { $0.connections } }

    /// How often it has cut a connection, whatever the reason was but `cutAll`.
    public var cuts: Int { state.withLock { $0.cuts } }

    /// Cuts once, at the next request that contains the cut's text.
    public func arm(_ cut: Cut) { state.withLock { $0.armed = cut } }

    /// While true, new connections are closed at once.
    public var refuses: Bool {
        get { state.withLock { $0.refuses } }
        set { state.withLock { $0.refuses = newValue } }
    }

    /// Whether `refuses` becomes true with the next cut.
    public var refusesAfterCut: Bool {
        get { state.withLock { $0.refusesAfterCut } }
        set { state.withLock { $0.refusesAfterCut = newValue } }
    }

    /// The clients of all connections see them end now; the server does not.
    public func abandonAll() {
        for number in state.withLock({ Array($0.relayed.keys) }) {
            perform(on: number, from: .client) { connection, _ in connection.abandon() }
        }
    }

    /// Cuts what is open now.
    public func cutAll() {
        let channels = state.withLock { state in state.relayed.values.flatMap { [$0.client, $0.server] } }
        for channel in channels { channel?.close(promise: nil) }
    }

    public func close() {
        refuses = true
        state.withLock { $0.listener }?.close(promise: nil)
        cutAll()
    }

    // MARK: Connections

    private func accept(_ client: any Channel) -> EventLoopFuture<Void> {
        let admitted = state.withLock { state -> Int? in
            guard !state.refuses else { return nil }
            state.connections += 1
            let connection = ProxiedConnection(faults, seed: seed &+ UInt64(state.connections))
            state.relayed[state.connections] = Relayed(connection: connection, client: client)
            return state.connections
        }
        // A client whose initializer fails is closed.
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
        // Not by who is active: one that was just accepted is not yet.
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
            // A server that is still to answer what was abandoned ends the connection.
            if end == .server || state.relayed[number]?.server == nil { state.relayed[number] = nil }
        }
    }

    /// Changes a connection under the lock, and runs what it says outside.
    private func perform(
        on number: Int,
        from end: ProxiedConnection.End,
        _ change: (inout ProxiedConnection, inout Cut?) -> ProxiedConnection.Action
    ) {
        let (action, relayed) = state.withLock { state -> (ProxiedConnection.Action, Relayed?) in
            guard var relayed = state.relayed[number] else { return (.init(), nil) }
            let action = change(&relayed.connection, &state.armed)
            state.relayed[number] = relayed
            if action.isCut { state.noteCut() }
            return (action, relayed)
        }
        if let other = relayed?.channel(end == .client ? .server : .client) {
            for piece in action.pieces {
                guard let due = piece.due else {
                    other.writeAndFlush(piece.bytes, promise: nil)
                    continue
                }
                // Tasks of one loop run in the order of their deadlines, and of being scheduled where these are equal.
                other.eventLoop.scheduleTask(deadline: due) { other.writeAndFlush(piece.bytes, promise: nil) }
            }
        }
        for end in action.closes { relayed?.channel(end)?.close(promise: nil) }
    }
}

/// Tells what comes.
private final class Receiver: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let receive: (ByteBuffer) -> Void

    init(_ receive: @escaping (ByteBuffer) -> Void) {
        self.receive = receive
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        receive(unwrapInboundIn(data))
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }
}
