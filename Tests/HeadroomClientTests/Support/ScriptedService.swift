import HeadroomClient
import NIOCore
import NIOPosix
import Synchronization
import TestSupport

/// A server whose answers a test scripts.
final class ScriptedService: Sendable {
    enum Answer: Sendable {
        case answer(String)
        case answerAndClose(String)
        case answerLater(String, TimeAmount)
        case nothing
    }

    private struct State {
        var requests: [String] = []
        var connections = 0
        var open: [ObjectIdentifier: any Channel] = [:]
    }

    let endpoint: HeadroomClient.Endpoint
    private let listener: any Channel
    private let state: Shared

    private final class Shared: Sendable {
        let mutex = Mutex(State())
    }

    /// The received lines, in order.
    var requests: [String] { state.mutex.withLock { $0.requests } }
    var connections: Int { state.mutex.withLock { $0.connections } }
    var openConnections: Int { state.mutex.withLock { $0.open.count } }

    /// - Parameter script: the answer to a line; connections are numbered from 1.
    static func start(
        _ script: @escaping @Sendable (_ line: String, _ connection: Int) -> Answer
    ) async throws -> ScriptedService {
        let state = Shared()
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let number = state.mutex.withLock { state in
                        state.connections += 1
                        state.open[ObjectIdentifier(channel)] = channel
                        return state.connections
                    }
                    channel.closeFuture.whenComplete { _ in
                        state.mutex.withLock { _ = $0.open.removeValue(forKey: ObjectIdentifier(channel)) }
                    }
                    try channel.pipeline.syncOperations.addHandler(
                        Reader { line in
                            state.mutex.withLock { $0.requests.append(line) }
                            return script(line, number)
                        }
                    )
                }
            }
            .bind(host: "127.0.0.1", port: 0)
            .get()
        return ScriptedService(listener, state)
    }

    private init(_ listener: any Channel, _ state: Shared) {
        self.listener = listener
        self.state = state
        endpoint = HeadroomClient.Endpoint(host: "127.0.0.1", port: listener.localAddress?.port ?? 0)
    }

    /// Stops listening.
    func close() async {
        try? await listener.close()
        for channel in state.mutex.withLock({ Array($0.open.values) }) { channel.close(promise: nil) }
    }

    /// An endpoint without a listener.
    static func endpointOfNobody() async throws -> HeadroomClient.Endpoint {
        HeadroomClient.Endpoint(host: "127.0.0.1", port: try await freePort())
    }

    /// The answer to an allowed message in the silent tier.
    static func allowed(_ line: String) -> Answer {
        let words = line.split(separator: " ")
        let user = words.dropFirst().first ?? ""
        let status =
            switch words.first {
            case "RESERVE": "HELD"
            case "CONSUME", "CHECK", "COMMIT": "ALLOWED"
            default: "OK"
            }
        return .answer(
            "+\(status) user=\(user) plan=pro state=active tier=silent display=hidden used=1 limit=unlimited"
                + " remaining=unlimited period=2026-11\r\n"
        )
    }
}

/// Splits the received bytes into lines.
private final class Reader: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private var received = ByteBuffer()
    private var freeAt = NIODeadline.now()
    private let script: (String) -> ScriptedService.Answer

    init(_ script: @escaping (String) -> ScriptedService.Answer) { self.script = script }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        received.writeBuffer(&bytes)
        while let end = received.readableBytesView.firstIndex(of: UInt8(ascii: "\n")) {
            guard let line = received.readString(length: end - received.readerIndex + 1) else { return }
            answer(script(String(line.dropLast())), on: context.channel)
        }
    }

    private func answer(_ saying: ScriptedService.Answer, on channel: any Channel) {
        switch saying {
        case .answer(let text): send(text, on: channel, after: .zero)
        case .answerLater(let text, let delay): send(text, on: channel, after: delay)
        case .answerAndClose(let text):
            channel.writeAndFlush(ByteBuffer(string: text)).whenComplete { _ in channel.close(promise: nil) }
        case .nothing: break
        }
    }

    /// In the order of the requests.
    private func send(_ text: String, on channel: any Channel, after delay: TimeAmount) {
        freeAt = max(freeAt, .now() + delay)
        guard freeAt > .now() else { return channel.writeAndFlush(ByteBuffer(string: text), promise: nil) }
        channel.eventLoop.scheduleTask(deadline: freeAt) {
            channel.writeAndFlush(ByteBuffer(string: text), promise: nil)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
