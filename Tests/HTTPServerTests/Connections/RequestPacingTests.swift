import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import HTTPServer

@Suite("Pipelined requests of one connection")
struct RequestPacingTests {
    /// Counts the reads from the socket.
    private final class Socket: ChannelOutboundHandler {
        typealias OutboundIn = Any
        var reads = 0

        func read(context: ChannelHandlerContext) {
            reads += 1
            context.read()
        }
    }

    private func connected(_ port: EmbeddedPort) throws -> (EmbeddedChannel, Socket) {
        let channel = try port.connect()
        let socket = Socket()
        try channel.pipeline.syncOperations.addHandler(socket, position: .first)
        return (channel, socket)
    }

    @Test("the next request is decoded when the response is sent")
    func oneAtATime() throws {
        let port = EmbeddedPort()
        let (channel, _) = try connected(port)
        // Longer than a part, so that no part has two heads.
        let request = "GET /\(String(repeating: "x", count: 600)) HTTP/1.1\r\nHost: x\r\n\r\n"
        try channel.send(String(repeating: request, count: 100))
        for _ in 0..<100 {
            #expect(try channel.heads() == 1)
            try channel.answer()
        }
        #expect(try channel.heads() == 0)
    }

    @Test("few small requests are decoded at once")
    func small() throws {
        let port = EmbeddedPort()
        let (channel, _) = try connected(port)
        let request = "GET / HTTP/1.1\r\n\r\n"
        try channel.send(String(repeating: request, count: 2_000))
        var answered = 0
        while case let heads = try channel.heads(), heads > 0 {
            #expect(heads <= RequestPacingHandler.partBytes / request.utf8.count + 1)
            answered += heads
            for _ in 0..<heads { try channel.answer() }
        }
        #expect(answered == 2_000)
    }

    @Test("reading pauses while a response is due")
    func reading() throws {
        let port = EmbeddedPort()
        let (channel, socket) = try connected(port)
        try channel.send(Sent.metrics)
        socket.reads = 0
        channel.read()
        #expect(socket.reads == 1, "nothing is buffered yet")
        try channel.send(Sent.metrics + Sent.metrics)
        socket.reads = 0
        for _ in 0..<3 { channel.read() }
        #expect(socket.reads == 0)
        try channel.answer()
        #expect(try channel.heads() >= 1)
        while try channel.heads() > 0 || port.metrics.snapshot.busy > 0 { try channel.answer() }
        #expect(socket.reads == 1)
    }

    @Test("large bodies are passed on")
    func bodies() throws {
        let port = EmbeddedPort()
        let (channel, socket) = try connected(port)
        try channel.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
        try channel.send(String(repeating: "x", count: 99_999))
        socket.reads = 0
        channel.read()
        #expect(socket.reads == 1)
        try channel.send("x" + Sent.metrics)
        var bytes = 0
        var heads = 0
        while let part = try channel.readInbound(as: HTTPServerRequestPart.self) {
            switch part {
            case .head: heads += 1
            case .body(let buffer): bytes += buffer.readableBytes
            case .end: break
            }
        }
        #expect(bytes == 100_000 && heads >= 1)
    }

    @Test("buffered requests are answered before the peer's close is passed on")
    func halfClosed() throws {
        let port = EmbeddedPort()
        let (channel, _) = try connected(port)
        let long = "GET /\(String(repeating: "x", count: 600)) HTTP/1.1\r\nHost: x\r\n\r\n"
        try channel.send(long)
        let ends = EventCounter { $0 as? ChannelEvent == .inputClosed }
        try channel.pipeline.syncOperations.addHandler(ends)
        try channel.send(long)
        channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        #expect(ends.count == 0)
        try channel.answer()
        #expect(ends.count == 1 && channel.isActive)
        try channel.answer()
    }
}
