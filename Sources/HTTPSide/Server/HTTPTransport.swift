import HeadroomServer
import HummingbirdCore
import Logging
import NIOCore
import NIOSSL

/// How bytes become requests: HTTP/1.1, in TLS where the service has a certificate.
struct HTTPTransport: Sendable {
    private let idleTimeout: TimeAmount
    private let tls: TLSContexts?

    init(_ configuration: HTTPConfiguration, tls: TLSContexts?) {
        idleTimeout = TimeAmount(configuration.idleTimeout)
        self.tls = tls
    }

    var builder: HTTPServerBuilder {
        HTTPServerBuilder { responder in
            let plain = HTTP1Channel(
                responder: responder,
                configuration: HTTP1Channel.Configuration(
                    idleTimeout: idleTimeout,
                    httpDecoderConfiguration: .init(
                        maxHeaderFieldSize: 16_384,
                        maxHeaderListSize: 32_768,
                        maxHeaderFieldCount: 100
                    )
                )
            )
            guard let tls else { return plain }
            return ReloadingTLSChannel(plain: plain, tls: tls)
        }
    }
}

/// TLS with the certificate that is current when a connection comes: the framework's own keeps the first one for ever.
private struct ReloadingTLSChannel: ServerChildChannel {
    let plain: HTTP1Channel
    let tls: TLSContexts

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<HTTP1Channel.Value> {
        channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls.currentForAnybody))
        }.flatMap {
            plain.setup(channel: channel, logger: logger)
        }
    }

    func handle(value: HTTP1Channel.Value, logger: Logger) async {
        await plain.handle(value: value, logger: logger)
    }
}
