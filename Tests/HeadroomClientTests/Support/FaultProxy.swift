import HeadroomClient
import NIOCore
import NIOPosix
import ServiceTestSupport
import Synchronization

/// Stands between a client and a service, and cuts, delays and splits what goes through, by chance.
final class FaultProxy: Sendable {
    struct Faults: Sendable {
        /// A connection is cut once so many bytes have gone through; nil is never.
        var cutAfterBytes: ClosedRange<Int>?
        /// Each piece waits for so long.
        var delayMilliseconds: ClosedRange<Int64> = 0...0
        /// What comes is passed on in pieces of so many bytes; nil is whole.
        var pieceBytes: ClosedRange<Int>?
    }

    private struct State {
        var generator: SeededGenerator
        var faults: Faults
        var cuts = 0
        var connections = 0
        var open: [ObjectIdentifier: any Channel] = [:]
    }

    let endpoint: HeadroomClient.Endpoint
    private let listener: any Channel
    private let state: Mutex<State>

    var cuts: Int { state.withLock { $0.cuts } }
    var connections: Int { state.withLock { $0.connections } }

    static func start(to target: HeadroomClient.Endpoint, _ faults: Faults, seed: UInt64) async throws -> FaultProxy {
        let shared = Box()
        let listener = try await ServerBootstrap(
            group: MultiThreadedEventLoopGroup.singletonMultiThreadedEventLoopGroup
        )
        .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
        .childChannelInitializer { channel in
            guard let proxy = shared.value else { return channel.eventLoop.makeFailedFuture(ChannelError.eof) }
            return proxy.accept(channel, target)
        }
        .bind(host: "127.0.0.1", port: 0)
        .get()
        let port = listener.localAddress?.port ?? 0
        let proxy = FaultProxy(listener, HeadroomClient.Endpoint(host: "127.0.0.1", port: port), faults, seed)
        shared.value = proxy
        return proxy
    }

    private init(_ listener: any Channel, _ endpoint: HeadroomClient.Endpoint, _ faults: Faults, _ seed: UInt64) {
        self.listener = listener
        self.endpoint = endpoint
        state = Mutex(State(generator: SeededGenerator(seed: seed), faults: faults))
    }

    /// Set once, before anybody connects.
    private final class Box: Sendable {
        private let held = Mutex<FaultProxy?>(nil)

        var value: FaultProxy? {
            get { held.withLock { $0 } }
            set { held.withLock { $0 = newValue } }
        }
    }

    func close() async {
        try? await listener.close()
        cutAll()
    }

    /// Cuts what is open now.
    func cutAll() {
        let open = state.withLock { state in
            defer { state.open = [:] }
            return Array(state.open.values)
        }
        for channel in open { channel.close(promise: nil) }
    }

    private func accept(_ channel: any Channel, _ target: HeadroomClient.Endpoint) -> EventLoopFuture<Void> {
        let limit = state.withLock { state in
            state.connections += 1
            state.open[ObjectIdentifier(channel)] = channel
            return state.faults.cutAfterBytes.map { Int.random(in: $0, using: &state.generator) }
        }
        channel.closeFuture.whenComplete { _ in
            self.state.withLock { _ = $0.open.removeValue(forKey: ObjectIdentifier(channel)) }
        }
        return channel.eventLoop.makeCompletedFuture {
            // One loop for both, so that what they share needs no lock.
            let budget = Budget(limit)
            let down = Passing(self, budget)
            let up = Passing(self, budget)
            let ends = NIOLoopBound((down: down, up: up), eventLoop: channel.eventLoop)
            try channel.pipeline.syncOperations.addHandler(down)
            // As long as a machine may take that is busy with other tests.
            ClientBootstrap(group: channel.eventLoop)
                .connectTimeout(.minutes(2))
                .channelInitializer { upstream in
                    upstream.eventLoop.makeCompletedFuture {
                        try upstream.pipeline.syncOperations.addHandler(ends.value.up)
                    }
                }
                .connect(to: try SocketAddress(ipAddress: target.host, port: target.port))
                .whenComplete { result in
                    switch result {
                    case .success(let upstream):
                        ends.value.down.pass(to: upstream)
                        ends.value.up.pass(to: channel)
                        // Not by who is active: one that was just accepted is not yet.
                        channel.closeFuture.whenComplete { _ in upstream.close(promise: nil) }
                        upstream.closeFuture.whenComplete { _ in channel.close(promise: nil) }
                    case .failure: channel.close(promise: nil)
                    }
                }
        }
    }

    /// How a chunk of so many bytes is to be passed on.
    fileprivate func plan(_ bytes: Int) -> [(bytes: Int, delay: TimeAmount)] {
        state.withLock { state in
            var left = bytes
            var pieces: [(Int, TimeAmount)] = []
            while left > 0 {
                let size = state.faults.pieceBytes.map { Int.random(in: $0, using: &state.generator) } ?? left
                let delay = Int64.random(in: state.faults.delayMilliseconds, using: &state.generator)
                pieces.append((min(size, left), .milliseconds(delay)))
                left -= min(size, left)
            }
            return pieces
        }
    }

    fileprivate func noteCut() { state.withLock { $0.cuts += 1 } }
}

/// Bytes that a connection may still pass, in either direction.
private final class Budget {
    var left: Int?
    init(_ left: Int?) { self.left = left }
}

/// Passes what one end says on to the other.
private final class Passing: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private var own: (any Channel)?
    private var other: (any Channel)?
    /// What came before there was another end.
    private var early: [ByteBuffer] = []
    private let proxy: FaultProxy
    private let budget: Budget
    /// Nothing overtakes what was said before.
    private var delayed: [ByteBuffer] = []
    private var freeAt = NIODeadline.now()

    init(_ proxy: FaultProxy, _ budget: Budget) {
        self.proxy = proxy
        self.budget = budget
    }

    func handlerAdded(context: ChannelHandlerContext) {
        own = context.channel
    }

    func pass(to other: any Channel) {
        self.other = other
        defer { early = [] }
        for bytes in early where !pass(bytes, to: other) {
            proxy.noteCut()
            own?.close(promise: nil)
            other.close(promise: nil)
            return
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data)
        guard let other else { return early.append(bytes) }
        guard pass(bytes, to: other) else { return cut(context) }
    }

    /// - Returns: false when the connection is to be cut.
    private func pass(_ bytes: ByteBuffer, to other: any Channel) -> Bool {
        var bytes = bytes
        for piece in proxy.plan(bytes.readableBytes) {
            guard let slice = bytes.readSlice(length: piece.bytes) else { break }
            freeAt = max(freeAt, .now()) + piece.delay
            if let left = budget.left {
                budget.left = left - piece.bytes
                if left <= piece.bytes { return false }
            }
            if freeAt <= .now(), delayed.isEmpty {
                other.writeAndFlush(slice, promise: nil)
            } else {
                delayed.append(slice)
                let this = NIOLoopBound(self, eventLoop: other.eventLoop)
                other.eventLoop.scheduleTask(deadline: freeAt) { this.value.passNext(to: other) }
            }
        }
        return true
    }

    /// The oldest, whichever timer has come first.
    private func passNext(to other: any Channel) {
        guard !delayed.isEmpty else { return }
        other.writeAndFlush(delayed.removeFirst(), promise: nil)
    }

    private func cut(_ context: ChannelHandlerContext) {
        if context.channel.isActive { proxy.noteCut() }
        context.close(promise: nil)
        other?.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        other?.close(promise: nil)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
        other?.close(promise: nil)
    }
}
