import LineProtocol
import NIOCore

/// Decodes replies and passes them to the connection.
final class PipelinedConnectionHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private var decoder = ReplyFrameDecoder()
    private var buffer = ByteBuffer()
    private var replies: [ReceivedReply] = []
    private let notify: @Sendable (PipelinedConnection.Event) -> Void
    /// The connection; nil before the handler is in a pipeline.
    private(set) var connection: PipelinedConnection?

    init(notify: @escaping @Sendable (PipelinedConnection.Event) -> Void) {
        self.notify = notify
    }

    func handlerAdded(context: ChannelHandlerContext) {
        connection = PipelinedConnection(context.channel, notify: notify)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        if buffer.readableBytes == 0 {
            buffer = bytes
        } else {
            buffer.discardReadBytes()
            buffer.writeBuffer(&bytes)
        }
        do {
            while let frame = try decoder.next(in: &buffer) { replies.append(try decode(frame)) }
            deliver()
        } catch {
            // The replies before the malformed one are valid.
            deliver()
            connection?.close(because: error)
        }
    }

    /// A complete line that cannot be decoded fails only its request, because it is known where the next reply begins.
    private func decode(_ frame: ReplyFrameDecoder.Frame) throws(MalformedReply) -> ReceivedReply {
        do {
            return try ReceivedReply(frame)
        } catch {
            guard case .single(let element) = frame, element.kind == .simple else { throw error }
            return .error(ReceivedError("\(HeadroomError.Code.malformedReply) \(error)"))
        }
    }

    /// `received` empties `replies`.
    private func deliver() {
        guard !replies.isEmpty else { return }
        connection?.received(&replies)
    }

    func channelInactive(context: ChannelHandlerContext) {
        connection?.closed()
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        connection?.close(because: error)
    }
}
