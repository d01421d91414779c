import Logging
import NIOCore
import NIOEmbedded
import NIOHTTP1
import TestSupport

@testable import HTTPServer

/// Some connections on one event loop, whose time the test moves.
final class EmbeddedPort {
    let loop = EmbeddedEventLoop()
    let figures = ConnectionFigures()
    let log = RecordingLog()
    let metrics = HTTPMetrics()
    let keeper: ConnectionKeeper
    /// The connections that got more than a gate, and those of them that the framework has.
    var built = 0
    var accepted: [ConnectionGate] = []
    var ended = 0
    var acceptsMore = true

    init(all: Int = 2, perNetwork: Int = .max, newcomers: Int = 1) {
        keeper = ConnectionKeeper(
            ConnectionRoster.Limits(all: all, perNetwork: perNetwork, newcomers: newcomers),
            RequestClock.Limits(
                firstHead: .seconds(10),
                head: .seconds(5),
                output: .seconds(20),
                idle: .seconds(60)
            ),
            figures: figures,
            logger: log.logger
        )
    }

    func connect(from address: String = "192.0.2.1") throws -> EmbeddedChannel {
        let gate = ConnectionGate(keeper) { [self] gate, channel in try build(gate, channel) }
        let channel = EmbeddedChannel(handler: gate, loop: loop)
        channel.remoteAddress = try SocketAddress(ipAddress: address, port: 1_000)
        channel.connect(to: try SocketAddress(ipAddress: address, port: 1_000), promise: nil)
        return channel
    }

    private func build(_ gate: ConnectionGate, _ channel: any Channel) throws {
        built += 1
        let pipeline = channel.pipeline.syncOperations
        let pacer = RequestPacer(gate)
        gate.pacer = pacer
        try pipeline.addHandler(pacer)
        try pipeline.configureHTTPServerPipeline(withPipeliningAssistance: false, withErrorHandling: false)
        let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
        let health = Health(metrics: metrics) {
            Readiness(
                .init(lanesConnected: 0, databaseAnswers: true, tokensProblem: nil, isDraining: false)
            )
        }
        let framework = RequestGate.Framework { [self] in
            guard acceptsMore else { return false }
            accepted.append(gate)
            gate.taskBegins()
            return true
        } end: { [self] in
            ended += 1
        }
        try pipeline.addHandler(RequestGate(gate, health: health, framework: framework), position: .after(decoder))
    }
}

extension EmbeddedChannel {
    func send(_ text: String) throws {
        try writeInbound(ByteBuffer(string: text))
    }

    /// How many requests came through to the framework.
    func heads() throws -> Int {
        var count = 0
        while let part = try readInbound(as: HTTPServerRequestPart.self) {
            if case .head = part { count += 1 }
        }
        return count
    }

    func answer() throws {
        let head = HTTPResponseHead(version: .http1_1, status: .ok, headers: ["Content-Length": "0"])
        try writeOutbound(HTTPServerResponsePart.head(head))
        try writeOutbound(HTTPServerResponsePart.end(nil))
    }

    func sent() throws -> String {
        var text = ""
        while let buffer = try readOutbound(as: ByteBuffer.self) { text += String(buffer: buffer) }
        return text
    }
}

/// What peers ask.
enum Asked {
    static let metrics = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
    static let health = "HEAD /healthz?a HTTP/1.1\r\nHost: x\r\n\r\n"
    static let readiness = "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"
    static let post = "POST /v1/x HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"
}

/// Counts the user events that reach the end of a pipeline.
final class EventCounter: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    private(set) var count = 0
    private let counts: (Any) -> Bool

    init(where counts: @escaping (Any) -> Bool) {
        self.counts = counts
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if counts(event) { count += 1 }
    }
}
