import Logging
import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A connection that cannot be accepted for want of descriptors or memory is tried again with the next one. Passed on, the
/// error would end the port, and with it the service.
final class AcceptFailures: ChannelInboundHandler {
    typealias InboundIn = any Channel

    private static let passing: Set<CInt> = [EMFILE, ENFILE, ENOBUFS, ENOMEM]
    /// Bounds what a flood of connections can write to the log.
    private static let logInterval = TimeAmount.seconds(60)

    private let logger: Logger
    private var logAgainAt = NIODeadline.uptimeNanoseconds(0)

    init(logger: Logger) {
        self.logger = logger
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? IOError, AcceptFailures.passing.contains(error.errnoCode) else {
            context.fireErrorCaught(error)
            return
        }
        guard NIODeadline.now() >= logAgainAt else { return }
        logAgainAt = .now() + AcceptFailures.logInterval
        logger.warning("a connection of the HTTP side could not be accepted", metadata: ["error": "\(error)"])
    }
}
