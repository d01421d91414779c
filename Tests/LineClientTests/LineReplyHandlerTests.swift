import NIOCore
import NIOEmbedded
import Testing

@testable import LineClient

@Suite("The replies that a command reads")
struct LineReplyHandlerTests {
    private let handler = LineReplyHandler()
    private let channel: EmbeddedChannel

    init() throws {
        channel = EmbeddedChannel(handler: handler)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
    }

    private func request() -> EventLoopFuture<LineClient.Reply> {
        let promise = channel.eventLoop.makePromise(of: LineClient.Reply.self)
        handler.expect(promise)
        return promise.futureResult
    }

    private func receive(_ text: String) throws { try channel.writeInbound(ByteBuffer(string: text)) }

    @Test("are lines and lists, in the order of the requests")
    func order() throws {
        let replies = [request(), request()]
        try receive("+OK a=1\r\n*2\r\n+x\r\n")
        try receive("+y\r\n")
        #expect(try replies[0].wait() == LineClient.Reply(lines: ["+OK a=1"], isList: false))
        #expect(try replies[1].wait() == LineClient.Reply(lines: ["+x", "+y"], isList: true))
        _ = try channel.finish()
    }

    @Test(
        "include a refusal that arrived before the first request, or crosses it",
        arguments: [false, true],
        [false, true]
    )
    func refusal(isSentFirst: Bool, isReset: Bool) throws {
        let early = isSentFirst ? request() : nil
        try receive("-OVERLOADED retry_ms=1000 too many connections\r\n")
        if let early { #expect(try early.wait().isError) }
        let late = request()
        // The write of the request fails if the service has closed the connection.
        if isReset { channel.pipeline.fireErrorCaught(ChannelError.ioOnClosedChannel) }
        _ = try channel.finish(acceptAlreadyClosed: true)
        let after = request()
        for reply in [late, after] {
            #expect {
                try reply.wait()
            } throws: { error in
                if isSentFirst { return !(error is LineClient.ErrorReply) }
                return (error as? LineClient.ErrorReply)?.code == "OVERLOADED"
            }
        }
    }
}
