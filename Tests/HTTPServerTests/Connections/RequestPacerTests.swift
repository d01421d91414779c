import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import HTTPServer

@Suite("The requests of one connection")
struct RequestPacerTests {
    /// Counts what comes from the socket and asks for more of it.
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

    @Test("are decoded one after the other, and what follows stays as it came until the answer is sent")
    func oneAtATime() throws {
        let port = EmbeddedPort()
        let (channel, _) = try connected(port)
        // Longer than a part, so that none has the heads of two.
        let request = "GET /\(String(repeating: "x", count: 600)) HTTP/1.1\r\nHost: x\r\n\r\n"
        try channel.send(String(repeating: request, count: 100))
        for _ in 0..<100 {
            #expect(try channel.heads() == 1)
            try channel.answer()
        }
        #expect(try channel.heads() == 0)
    }

    @Test("are a few at most where they are small")
    func small() throws {
        let port = EmbeddedPort()
        let (channel, _) = try connected(port)
        let request = "GET / HTTP/1.1\r\n\r\n"
        try channel.send(String(repeating: request, count: 2_000))
        var answered = 0
        while case let heads = try channel.heads(), heads > 0 {
            #expect(heads <= RequestPacer.partBytes / request.utf8.count + 1)
            answered += heads
            for _ in 0..<heads { try channel.answer() }
        }
        #expect(answered == 2_000)
    }

    @Test("are not read while one is answered, and read on when it is")
    func reading() throws {
        let port = EmbeddedPort()
        let (channel, socket) = try connected(port)
        try channel.send(Asked.metrics)
        socket.reads = 0
        channel.read()
        #expect(socket.reads == 1, "nothing is kept yet")
        try channel.send(Asked.metrics + Asked.metrics)
        socket.reads = 0
        for _ in 0..<3 { channel.read() }
        #expect(socket.reads == 0)
        try channel.answer()
        #expect(try channel.heads() >= 1)
        while try channel.heads() > 0 || port.figures.snapshot.busy > 0 { try channel.answer() }
        #expect(socket.reads == 1)
    }

    @Test("have their bodies, however large")
    func bodies() throws {
        let port = EmbeddedPort()
        let (channel, socket) = try connected(port)
        try channel.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
        try channel.send(String(repeating: "x", count: 99_999))
        socket.reads = 0
        channel.read()
        #expect(socket.reads == 1)
        try channel.send("x" + Asked.metrics)
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

    @Test("are all answered before the end that the peer sent behind them")
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
