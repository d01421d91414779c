import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTP2
import NIOHTTPTypes
import NIOHTTPTypesHTTP2
import NIOSSL
import NIOTLS
import ServiceCore

private protocol Finishable {
    func finish()
}

/// Sets up the handlers of connections: HTTP/1.1, and with TLS, if the service has a certificate, HTTP/2 for peers that
/// choose it.
struct HTTPTransport: Sendable {
    /// A connection of HTTP/1.1 whose first request for Hummingbird has arrived, or such a stream of HTTP/2.
    struct Accepted: Sendable {
        let channel: HTTP1Channel.Value
        /// It is called on the event loop when Hummingbird's task has ended.
        let ended: NIOLoopBound<() -> Void>
    }

    private struct NotSetUp: Error {}

    /// Finishes a writer, which Hummingbird's task does for connections and streams that have one. NIO deprecates the
    /// property against writing outside of a task; here it is only finished.
    private struct ChannelWriter: Finishable {
        let channel: HTTP1Channel.Value

        @available(*, deprecated)
        func finish() {
            channel.outbound.finish()
        }
    }

    private static let headerListBytesMaximum = 32_768

    private let plain: HTTP1Channel
    private let tls: TLSContexts?
    private let limiter: ConnectionLimiter
    private let health: HealthResponder
    private let logger: Logger

    init(
        _ responder: @escaping HTTPChannelHandler.Responder,
        tls: TLSContexts?,
        limiter: ConnectionLimiter,
        health: HealthResponder,
        logger: Logger
    ) {
        plain = HTTP1Channel(
            responder: responder,
            configuration: HTTP1Channel.Configuration(
                // `ConnectionLimitHandler` closes idle connections: Hummingbird does not see health checks.
                idleTimeout: nil,
                httpDecoderConfiguration: .init(
                    maxHeaderFieldSize: 16_384,
                    maxHeaderListSize: HTTPTransport.headerListBytesMaximum,
                    maxHeaderFieldCount: StreamAdmissionHandler.headerFieldsMaximum
                )
            )
        )
        self.tls = tls
        self.limiter = limiter
        self.health = health
        self.logger = logger
    }

    /// The first handler of an accepted connection.
    func handler(accepted: AsyncStream<Accepted>.Continuation) -> ConnectionLimitHandler {
        ConnectionLimitHandler(limiter) { handler, channel in try build(handler, channel, accepted) }
    }

    /// Uses the TLS certificate that is current when the connection opens.
    private func build(
        _ limitHandler: ConnectionLimitHandler,
        _ channel: any Channel,
        _ accepted: AsyncStream<Accepted>.Continuation
    ) throws {
        guard let tls else {
            try buildHTTP1(limitHandler, channel, accepted)
            return
        }
        let negotiation = ApplicationProtocolNegotiationHandler { result, channel in
            channel.eventLoop.makeCompletedFuture {
                do {
                    if result == .negotiated("h2") {
                        try buildHTTP2(limitHandler, channel, accepted)
                    } else {
                        try buildHTTP1(limitHandler, channel, accepted)
                    }
                } catch {
                    // Without handlers, nothing would ever answer.
                    limitHandler.close()
                    throw error
                }
            }
        }
        try channel.pipeline.syncOperations.addHandlers(NIOSSLServerHandler(context: tls.currentForHTTP), negotiation)
    }

    private func buildHTTP1(
        _ limitHandler: ConnectionLimitHandler,
        _ channel: any Channel,
        _ accepted: AsyncStream<Accepted>.Continuation
    ) throws {
        let pipeline = channel.pipeline.syncOperations
        let pacing = RequestPacingHandler(limitHandler)
        try pipeline.addHandlers(PeerCloseHandler(), pacing)
        limitHandler.pacing = pacing
        var connection: HTTP1Channel.Value?
        // Complete when it returns: it only adds handlers, on the connection's event loop.
        plain.setup(channel: channel, logger: logger).assumeIsolated().whenSuccess { connection = $0 }
        guard let connection else { throw NotSetUp() }
        let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
        let writer: any Finishable = ChannelWriter(channel: connection)
        let hummingbird = RequestAdmissionHandler.HummingbirdConnection {
            let ended = NIOLoopBound({ limitHandler.taskEnded() }, eventLoop: channel.eventLoop)
            guard case .enqueued = accepted.yield(Accepted(channel: connection, ended: ended)) else { return false }
            limitHandler.taskStarted()
            return true
        } finish: {
            writer.finish()
        }
        let admission = RequestAdmissionHandler(limitHandler, health: health, hummingbird: hummingbird)
        try pipeline.addHandler(admission, position: .after(decoder))
    }

    // MARK: HTTP/2

    private static let http2Settings: HTTP2Settings = [
        HTTP2Setting(parameter: .maxConcurrentStreams, value: 100),
        HTTP2Setting(parameter: .maxHeaderListSize, value: HTTPTransport.headerListBytesMaximum),
    ]

    func buildHTTP2(
        _ limitHandler: ConnectionLimitHandler,
        _ channel: any Channel,
        _ accepted: AsyncStream<Accepted>.Continuation
    ) throws {
        let eventLoop = channel.eventLoop
        // Ends the connection gracefully. `ConnectionLimitHandler` has the other timeouts.
        let management = NIOHTTP2ServerConnectionManagementHandler(
            eventLoop: eventLoop,
            configuration: .init(maxIdleTime: nil, maxAge: nil, maxGraceTime: nil, keepalive: nil)
        )
        var configuration = NIOHTTP2Handler.ConnectionConfiguration()
        configuration.initialSettings = HTTPTransport.http2Settings
        // Each of at most 100 streams has the head of an answer here, while the peer does not read.
        configuration.maximumBufferedControlFrames = 1_000
        let bound = NIOLoopBound(limitHandler, eventLoop: eventLoop)
        let handler = NIOHTTP2Handler(
            mode: .server,
            eventLoop: eventLoop,
            connectionConfiguration: configuration,
            streamDelegate: management.http2StreamDelegate
        ) { stream in
            stream.eventLoop.makeCompletedFuture {
                let limitHandler = bound.value
                let admission = StreamAdmissionHandler(limitHandler, health: health) { stream in
                    try start(stream, limitHandler, accepted)
                }
                try stream.pipeline.syncOperations.addHandlers(
                    PeerCloseHandler(),
                    HTTP2FramePayloadToHTTPServerCodec(),
                    admission
                )
            }
        }
        try channel.pipeline.syncOperations.addHandlers(
            FrameInputHandler(limitHandler),
            handler,
            management,
            MultiplexedErrorHandler(limitHandler)
        )
        limitHandler.multiplexed()
    }

    /// - Returns: false if the stream's request must be refused.
    private func start(
        _ stream: any Channel,
        _ limitHandler: ConnectionLimitHandler,
        _ accepted: AsyncStream<Accepted>.Continuation
    ) throws -> Bool {
        guard let id = limitHandler.streamTaskStarts() else { return false }
        let ended = NIOLoopBound({ limitHandler.streamTaskEnded(id) }, eventLoop: stream.eventLoop)
        do {
            let channel = try HTTP1Channel.Value(wrappingChannelSynchronously: stream)
            guard case .enqueued = accepted.yield(Accepted(channel: channel, ended: ended)) else {
                let writer: any Finishable = ChannelWriter(channel: channel)
                writer.finish()
                throw NotSetUp()
            }
        } catch {
            limitHandler.streamTaskEnded(id)
            throw error
        }
        return true
    }

    /// Answers a connection's requests until it ends, or the one of a stream.
    func handle(_ accepted: Accepted) async {
        await plain.handle(value: accepted.channel, logger: logger)
        let ended = accepted.ended
        accepted.channel.channel.eventLoop.execute { ended.value() }
    }
}
