import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import HTTPServer

@Suite("Pipelined requests of one connection")
struct RequestPacingTests {
    private func connected(_ port: EmbeddedPort) throws -> (EmbeddedChannel, ReadCounter) {
        let channel = try port.connect()
        let counter = ReadCounter()
        try channel.pipeline.syncOperations.addHandler(counter, position: .first)
        return (channel, counter)
    }

    @Test("a pipelined request is decoded only after the response to the one before")
    func oneAtATime() throws {
        let port = EmbeddedPort()
        let (channel, _) = try connected(port)
        // Longer than `sliceBytesMaximum`, the most that the decoder gets at once, so that it never gets two heads.
        let request = "GET /\(String(repeating: "x", count: 600)) HTTP/1.1\r\nHost: x\r\n\r\n"
        try channel.send(String(repeating: request, count: 100))
        for _ in 0..<100 {
            #expect(try channel.heads() == 1)
            try channel.answer()
        }
        #expect(try channel.heads() == 0)
    }

    @Test("only a few small requests are decoded before a response is sent")
    func small() throws {
        let port = EmbeddedPort()
        let (channel, _) = try connected(port)
        let request = "GET / HTTP/1.1\r\n\r\n"
        try channel.send(String(repeating: request, count: 2_000))
        var answered = 0
        while case let heads = try channel.heads(), heads > 0 {
            #expect(heads <= RequestPacingHandler.sliceBytesMaximum / request.utf8.count + 1)
            answered += heads
            for _ in 0..<heads { try channel.answer() }
        }
        #expect(answered == 2_000)
    }

    @Test("reading pauses while a response is due")
    func reading() throws {
        let port = EmbeddedPort()
        let (channel, counter) = try connected(port)
        try channel.send(Sent.metrics)
        counter.reads = 0
        channel.read()
        #expect(counter.reads == 1, "nothing is buffered yet")
        try channel.send(Sent.metrics + Sent.metrics)
        counter.reads = 0
        for _ in 0..<3 { channel.read() }
        #expect(counter.reads == 0)
        try channel.answer()
        #expect(try channel.heads() >= 1)
        while try channel.heads() > 0 || port.metrics.snapshot.busy > 0 { try channel.answer() }
        #expect(counter.reads == 1)
    }

    @Test("a large body is passed on without waiting for a response")
    func bodies() throws {
        let port = EmbeddedPort()
        let (channel, counter) = try connected(port)
        try channel.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
        try channel.send(String(repeating: "x", count: 99_999))
        counter.reads = 0
        channel.read()
        #expect(counter.reads == 1)
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

    @Test("all buffered requests are decoded before the peer's half-close is passed on")
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
