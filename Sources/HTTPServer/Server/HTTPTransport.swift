import HeadroomServer
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOSSL

private protocol Finishable {
    func finish()
}

/// How bytes become requests: HTTP/1.1, in TLS where the service has a certificate.
struct HTTPTransport: Sendable {
    /// A connection with its first request for the framework.
    struct Accepted: Sendable {
        let connection: HTTP1Channel.Value
        let gate: NIOLoopBound<ConnectionGate>
    }

    private struct NotSetUp: Error {}

    /// A connection's writer has to be finished at its end, and a connection that the framework never got has no task that
    /// does so. NIO deprecates the property against use of the writer outside of a task; here it is only finished.
    private struct ConnectionWriter: Finishable {
        let connection: HTTP1Channel.Value

        @available(*, deprecated)
        func finish() {
            connection.outbound.finish()
        }
    }

    private let plain: HTTP1Channel
    private let tls: TLSContexts?
    private let keeper: ConnectionKeeper
    private let health: Health
    private let logger: Logger

    init(
        _ responder: @escaping HTTPChannelHandler.Responder,
        tls: TLSContexts?,
        keeper: ConnectionKeeper,
        health: Health,
        logger: Logger
    ) {
        plain = HTTP1Channel(
            responder: responder,
            configuration: HTTP1Channel.Configuration(
                // `RequestClock` ends silent connections: the framework does not see what is asked about health.
                idleTimeout: nil,
                httpDecoderConfiguration: .init(
                    maxHeaderFieldSize: 16_384,
                    maxHeaderListSize: 32_768,
                    maxHeaderFieldCount: 100
                )
            )
        )
        self.tls = tls
        self.keeper = keeper
        self.health = health
        self.logger = logger
    }

    /// What an accepted connection begins with.
    func gate(accepted: AsyncStream<Accepted>.Continuation) -> ConnectionGate {
        ConnectionGate(keeper) { gate, channel in try build(gate, channel, accepted) }
    }

    /// In TLS with the certificate that is current when the connection comes.
    private func build(
        _ gate: ConnectionGate,
        _ channel: any Channel,
        _ accepted: AsyncStream<Accepted>.Continuation
    ) throws {
        let pipeline = channel.pipeline.syncOperations
        if let tls { try pipeline.addHandler(NIOSSLServerHandler(context: tls.currentWithoutClientCA)) }
        let pacer = RequestPacer(gate)
        try pipeline.addHandlers(PeerWatch(), pacer)
        gate.pacer = pacer
        var connection: HTTP1Channel.Value?
        // Done by the time it returns: it only adds handlers, on the connection's event loop.
        plain.setup(channel: channel, logger: logger).assumeIsolated().whenSuccess { connection = $0 }
        guard let connection else { throw NotSetUp() }
        let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
        let writer: any Finishable = ConnectionWriter(connection: connection)
        let framework = RequestGate.Framework {
            let bound = NIOLoopBound(gate, eventLoop: channel.eventLoop)
            guard case .enqueued = accepted.yield(Accepted(connection: connection, gate: bound)) else { return false }
            gate.taskBegins()
            return true
        } end: {
            writer.finish()
        }
        try pipeline.addHandler(RequestGate(gate, health: health, framework: framework), position: .after(decoder))
    }

    /// Answers a connection's requests until it ends.
    func handle(_ accepted: Accepted) async {
        await plain.handle(value: accepted.connection, logger: logger)
        let gate = accepted.gate
        accepted.connection.channel.eventLoop.execute { gate.value.taskEnds() }
    }
}
