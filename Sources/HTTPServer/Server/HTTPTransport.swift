import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOSSL
import ServiceCore

private protocol Finishable {
    func finish()
}

/// Sets up the handlers of connections: HTTP/1.1, with TLS if the service has a certificate.
struct HTTPTransport: Sendable {
    /// A connection whose first request for Hummingbird has arrived.
    struct Accepted: Sendable {
        let connection: HTTP1Channel.Value
        let limitHandler: NIOLoopBound<ConnectionLimitHandler>
    }

    private struct NotSetUp: Error {}

    /// Finishes the writer of a connection, which Hummingbird's task does for connections that have one. NIO deprecates
    /// the property against writing outside of a task; here it is only finished.
    private struct ConnectionWriter: Finishable {
        let connection: HTTP1Channel.Value

        @available(*, deprecated)
        func finish() {
            connection.outbound.finish()
        }
    }

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
                    maxHeaderListSize: 32_768,
                    maxHeaderFieldCount: 100
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
        let pipeline = channel.pipeline.syncOperations
        if let tls { try pipeline.addHandler(NIOSSLServerHandler(context: tls.currentWithoutClientCA)) }
        let pacing = RequestPacingHandler(limitHandler)
        try pipeline.addHandlers(PeerCloseHandler(), pacing)
        limitHandler.pacing = pacing
        var connection: HTTP1Channel.Value?
        // Complete when it returns: it only adds handlers, on the connection's event loop.
        plain.setup(channel: channel, logger: logger).assumeIsolated().whenSuccess { connection = $0 }
        guard let connection else { throw NotSetUp() }
        let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
        let writer: any Finishable = ConnectionWriter(connection: connection)
        let hummingbird = RequestAdmissionHandler.HummingbirdConnection {
            let bound = NIOLoopBound(limitHandler, eventLoop: channel.eventLoop)
            guard case .enqueued = accepted.yield(Accepted(connection: connection, limitHandler: bound)) else {
                return false
            }
            limitHandler.taskStarted()
            return true
        } finish: {
            writer.finish()
        }
        let admission = RequestAdmissionHandler(limitHandler, health: health, hummingbird: hummingbird)
        try pipeline.addHandler(admission, position: .after(decoder))
    }

    /// Answers a connection's requests until it ends.
    func handle(_ accepted: Accepted) async {
        await plain.handle(value: accepted.connection, logger: logger)
        let limitHandler = accepted.limitHandler
        accepted.connection.channel.eventLoop.execute { limitHandler.value.taskEnded() }
    }
}
