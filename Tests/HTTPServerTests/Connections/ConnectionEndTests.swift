import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import HTTPServer

@Suite("The end of a connection")
struct ConnectionEndTests {
    @Test("a connection counts until its task has ended")
    func task() throws {
        let port = EmbeddedPort(all: 1)
        let channel = try port.connect()
        try channel.send(Sent.metrics)
        _ = try channel.finish()
        #expect(port.metrics.snapshot.busy == 1 && port.finished == 1)
        let next = try port.connect()
        try next.send(Sent.metrics)
        #expect(try next.sent().hasPrefix("HTTP/1.1 503 "))
        port.accepted[0].taskEnded()
        #expect(port.metrics.snapshot.busy == 0)
        let last = try port.connect()
        try last.send(Sent.metrics)
        #expect(try last.heads() == 1)
    }

    @Test("shutdown closes idle connections at once and busy ones after their response")
    func quiescing() throws {
        let port = EmbeddedPort()
        let (silent, busy) = (try port.connect(), try port.connect())
        try busy.send(Sent.post)
        let quiesced = EventCounter { $0 is ChannelShouldQuiesceEvent }
        try busy.pipeline.syncOperations.addHandler(quiesced)
        port.limiter.quiesce()
        #expect(!silent.isActive && busy.isActive && quiesced.count == 1)
    }
}
