import HeadroomServer
import HummingbirdCore
import Logging
import NIOCore
import NIOSSL

/// How bytes become requests: HTTP/1.1, in TLS where the service has a certificate.
struct HTTPTransport: Sendable {
    private let idleTimeout: TimeAmount
    private let tls: TLSContexts?
    private let outputTimeout: TimeAmount

    /// - Parameter outputTimeout: a peer that takes nothing for so long is gone.
    init(_ configuration: HTTPConfiguration, tls: TLSContexts?, outputTimeout: TimeAmount) {
        self.outputTimeout = outputTimeout
        idleTimeout = TimeAmount(configuration.idleTimeout)
        self.tls = tls
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
            return LivelyChannel(plain: plain, tls: tls, outputTimeout: outputTimeout)
        }
    }
}

/// A connection that notices when its peer is gone or takes nothing any more, as those of the line protocol do; in TLS with
/// the certificate that is current when it comes, since the framework's own keeps the first one for ever.
private struct LivelyChannel: ServerChildChannel {
    let plain: HTTP1Channel
    let tls: TLSContexts?
    let outputTimeout: TimeAmount

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<HTTP1Channel.Value> {
        channel.noticePeersEnd(outputTimeout: outputTimeout).flatMapThrowing {
            guard let tls else { return }
            try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls.currentForAnybody))
        }.flatMap {
            plain.setup(channel: channel, logger: logger)
        }
    }

    func handle(value: HTTP1Channel.Value, logger: Logger) async {
        await plain.handle(value: value, logger: logger)
    }
}
