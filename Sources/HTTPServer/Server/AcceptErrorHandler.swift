import Logging
import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Ignores errors of accepting a connection for lack of descriptors or memory; the kernel keeps the connection until
/// the next attempt. If the error reached the pipeline's end, it would close the port, and with it end the service.
final class AcceptErrorHandler: ChannelInboundHandler {
    typealias InboundIn = any Channel

    private static let temporary: Set<CInt> = [EMFILE, ENFILE, ENOBUFS, ENOMEM]
    /// Limits what a flood of connections can write to the log.
    private static let logInterval = TimeAmount.seconds(60)

    private let logger: Logger
    private var nextLogAt = NIODeadline.uptimeNanoseconds(0)

    init(logger: Logger) {
        self.logger = logger
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? IOError, AcceptErrorHandler.temporary.contains(error.errnoCode) else {
            context.fireErrorCaught(error)
            return
        }
        guard NIODeadline.now() >= nextLogAt else { return }
        nextLogAt = .now() + AcceptErrorHandler.logInterval
        logger.warning("a connection of the HTTP server could not be accepted", metadata: ["error": "\(error)"])
    }
}
