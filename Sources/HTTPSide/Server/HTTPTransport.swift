import HeadroomServer
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOSSL

/// How bytes become requests: HTTP/1.1, in TLS where the service has a certificate.
struct HTTPTransport: Sendable {
    private let idleTimeout: TimeAmount
    private let tls: TLSContexts?
    private let keeper: ConnectionKeeper

    init(_ configuration: HTTPConfiguration, tls: TLSContexts?, keeper: ConnectionKeeper) {
        idleTimeout = TimeAmount(configuration.idleTimeout)
        self.tls = tls
        self.keeper = keeper
    }

    var builder: HTTPServerBuilder {
        HTTPServerBuilder { responder in
            let plain = HTTP1Channel(
                responder: responder,
                configuration: HTTP1Channel.Configuration(
                    additionalChannelHandlers: [PeerWatch()],
                    idleTimeout: idleTimeout,
                    httpDecoderConfiguration: .init(
                        maxHeaderFieldSize: 16_384,
                        maxHeaderListSize: 32_768,
                        maxHeaderFieldCount: 100
                    )
                )
            )
            return KeptChannel(plain: plain, tls: tls, keeper: keeper)
        }
    }
}

/// A connection that has its place and its time from the keeper, and notices when its peer is gone or takes nothing any
/// more, as those of the line protocol do; in TLS with the certificate that is current when it comes, since the
/// framework's own keeps the first one for ever.
private struct KeptChannel: ServerChildChannel {
    let plain: HTTP1Channel
    let tls: TLSContexts?
    let keeper: ConnectionKeeper

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<HTTP1Channel.Value> {
        channel.noticePeersEnd(outputTimeout: keeper.times.output).flatMapThrowing {
            let gate = ConnectionGate(keeper)
            let pipeline = channel.pipeline.syncOperations
            try pipeline.addHandler(gate)
            if let tls { try pipeline.addHandler(NIOSSLServerHandler(context: tls.currentForAnybody)) }
            return NIOLoopBound(gate, eventLoop: channel.eventLoop)
        }.flatMap { gate in
            plain.setup(channel: channel, logger: logger).flatMapThrowing { value in
                let pipeline = channel.pipeline.syncOperations
                let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
                try pipeline.addHandler(RequestGate(gate.value), position: .after(decoder))
                return value
            }
        }
    }

    func handle(value: HTTP1Channel.Value, logger: Logger) async {
        await plain.handle(value: value, logger: logger)
    }
}
