import DequeModule
import LineProtocol
import NIOCore

/// Decodes replies and delivers them in the order of the requests.
final class LineReplyHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private var expected: Deque<EventLoopPromise<LineClient.Reply>> = []
    private var received = ByteBuffer()
    private var decoder = ReplyFrameDecoder()
    /// An error that the service sent without a request, before it closes the connection: too many are open, or it
    /// drains. The first request may follow it or cross it.
    private var refusal: LineClient.ErrorReply?
    /// Why the connection has failed, after which no more replies come.
    private var failure: (any Error)?

    func expect(_ promise: EventLoopPromise<LineClient.Reply>) {
        if let failure { promise.fail(failure) } else { expected.append(promise) }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        received.writeBuffer(&bytes)
        do {
            while let frame = try decoder.next(in: &received) { deliver(LineClient.Reply(frame)) }
        } catch {
            fail(error)
            context.close(promise: nil)
        }
        received.discardReadBytes()
    }

    private func deliver(_ reply: LineClient.Reply) {
        if let promise = expected.popFirst() {
            promise.succeed(reply)
        } else if reply.isError {
            refusal = LineClient.ErrorReply(reply.lines[0])
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        fail(LineClient.ConnectionClosed())
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        fail(error)
        context.close(promise: nil)
    }

    private func fail(_ error: any Error) {
        let failure = failure ?? refusal ?? error
        self.failure = failure
        while let promise = expected.popFirst() { promise.fail(failure) }
    }
}

extension LineClient.Reply {
    fileprivate init(_ frame: ReplyFrameDecoder.Frame) {
        switch frame {
        case .single(let element): self.init(lines: [element.line], isList: false)
        case .list(let elements): self.init(lines: elements.map(\.line), isList: true)
        }
    }
}

extension ReplyElement {
    /// The text after the byte that marks the element's kind: `+`, `-`, `:` or `$`.
    fileprivate var line: String { String(UnicodeScalar(kind.rawValue)) + text }
}
