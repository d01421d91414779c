import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import HTTPServer

@Suite("The end of a connection")
struct ConnectionEndTests {
    @Test("leaves it its place until its task has ended")
    func task() throws {
        let port = EmbeddedPort(all: 1)
        let channel = try port.connect()
        try channel.send(Asked.metrics)
        _ = try channel.finish()
        #expect(port.figures.snapshot.busy == 1 && port.ended == 1)
        let next = try port.connect()
        try next.send(Asked.metrics)
        #expect(try next.sent().hasPrefix("HTTP/1.1 503 "))
        port.accepted[0].taskEnds()
        #expect(port.figures.snapshot.busy == 0)
        let last = try port.connect()
        try last.send(Asked.metrics)
        #expect(try last.heads() == 1)
    }

    @Test("of the service ends those that wait, and those that are busy when they are answered")
    func quiescing() throws {
        let port = EmbeddedPort()
        let (silent, busy) = (try port.connect(), try port.connect())
        try busy.send(Asked.post)
        let quiesced = EventCounter { $0 is ChannelShouldQuiesceEvent }
        try busy.pipeline.syncOperations.addHandler(quiesced)
        port.keeper.quiesce()
        #expect(!silent.isActive && busy.isActive && quiesced.count == 1)
    }
}
