import Logging
import NIOCore
import NIOEmbedded
import NIOHTTP1
import ServiceCore
import TestSupport

@testable import HTTPServer

/// Connections on one event loop, whose time the test advances.
final class EmbeddedPort {
    let loop = EmbeddedEventLoop()
    let metrics = ConnectionMetrics()
    let log = RecordingLog()
    let httpMetrics = HTTPMetrics()
    let draining = DrainingFlag()
    let limiter: ConnectionLimiter
    /// Connections that have received a byte.
    var built = 0
    /// Connections that Hummingbird has started.
    var accepted: [ConnectionLimitHandler] = []
    var finished = 0
    var acceptsMore = true

    init(all: Int = 2, perNetwork: Int = .max, newcomers: Int = 1) {
        limiter = ConnectionLimiter(
            ConnectionLimiterStateMachine.Limits(all: all, perNetwork: perNetwork, newcomers: newcomers),
            RequestTimeoutStateMachine.Limits(
                firstHead: .seconds(10),
                head: .seconds(5),
                output: .seconds(20),
                idle: .seconds(60)
            ),
            metrics: metrics,
            logger: log.logger
        )
    }

    func connect(from address: String = "192.0.2.1") throws -> EmbeddedChannel {
        let handler = ConnectionLimitHandler(limiter) { [self] handler, channel in try build(handler, channel) }
        return try connect(handler, from: address)
    }

    func connect(_ handler: ConnectionLimitHandler, from address: String = "192.0.2.1") throws -> EmbeddedChannel {
        let channel = EmbeddedChannel(handler: handler, loop: loop)
        channel.remoteAddress = try SocketAddress(ipAddress: address, port: 1_000)
        channel.connect(to: try SocketAddress(ipAddress: address, port: 1_000), promise: nil)
        return channel
    }

    var health: HealthResponder {
        HealthResponder(metrics: httpMetrics, draining: draining) {
            Readiness(.init(lanesConnected: 0, databaseAnswers: true, tokensProblem: nil, isDraining: false))
        }
    }

    private func build(_ connection: ConnectionLimitHandler, _ channel: any Channel) throws {
        built += 1
        let pipeline = channel.pipeline.syncOperations
        let pacing = RequestPacingHandler(connection)
        connection.pacing = pacing
        try pipeline.addHandler(pacing)
        try pipeline.configureHTTPServerPipeline(withPipeliningAssistance: false, withErrorHandling: false)
        let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
        let hummingbird = RequestAdmissionHandler.HummingbirdConnection { [self] in
            guard acceptsMore else { return false }
            accepted.append(connection)
            connection.taskStarted()
            return true
        } finish: { [self] in
            finished += 1
        }
        let admission = RequestAdmissionHandler(connection, health: health, hummingbird: hummingbird)
        try pipeline.addHandler(admission, position: .after(decoder))
    }
}

extension EmbeddedChannel {
    func send(_ text: String) throws { try writeInbound(ByteBuffer(string: text)) }

    /// The number of requests that have reached Hummingbird.
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

/// Requests of peers.
enum Sent {
    static let metrics = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
    static let health = "HEAD /healthz?a HTTP/1.1\r\nHost: x\r\n\r\n"
    static let readiness = "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"
    static let chunked = "POST /v1/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    static let post = "POST /v1/x HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"
}

/// Counts the user events that reach the end of a pipeline.
final class EventCounter: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    private(set) var count = 0
    private let counts: (Any) -> Bool

    init(where counts: @escaping (Any) -> Bool) { self.counts = counts }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if counts(event) { count += 1 }
    }
}

/// Counts the calls of `read` that reach the socket.
final class ReadCounter: ChannelOutboundHandler {
    typealias OutboundIn = Never
    var reads = 0

    func read(context: ChannelHandlerContext) {
        reads += 1
        context.read()
    }
}
