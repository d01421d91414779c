import Logging
import NIOCore
import NIOEmbedded
import NIOHTTP1
import TestSupport
import Testing

@testable import HTTPServer

@Suite("A connection of the HTTP port")
struct ConnectionGateTests {
    @Test("that has waited longest is closed when another one comes, and that one is answered")
    func givesWay() throws {
        let port = EmbeddedPort()
        let (first, second) = (try port.connect(), try port.connect())
        try first.send(Asked.metrics)
        #expect(try first.heads() == 1)
        try first.answer()
        #expect(port.figures.snapshot.waiting == 2)
        let third = try port.connect()
        #expect(first.isActive && !second.isActive && third.isActive)
        try third.send(Asked.metrics)
        #expect(try third.heads() == 1)
        #expect(port.figures.snapshot.turnedAway == [.all: 1])
        #expect(port.figures.snapshot.waiting == 1 && port.figures.snapshot.busy == 1)
    }

    @Test("is refused anything but health while all others are busy, until one of them is answered")
    func probe() throws {
        let port = EmbeddedPort()
        let busy = [try port.connect(), try port.connect()]
        for channel in busy { try channel.send(Asked.post) }
        let probe = try port.connect()
        try probe.send(Asked.health)
        #expect(try probe.heads() == 0 && port.accepted.count == 2, "it is answered without the framework")
        #expect(try probe.sent().hasPrefix("HTTP/1.1 200 OK\r\n"))
        try probe.send(Asked.metrics + Asked.health)
        #expect(try probe.heads() == 0, "neither it nor what follows it")
        let refusal = try probe.sent()
        #expect(refusal.hasPrefix("HTTP/1.1 503 Service Unavailable\r\n"))
        #expect(refusal.contains("\r\nConnection: close\r\n") && refusal.contains("\"code\":\"OVERLOADED\""))
        #expect(probe.isActive)
        port.loop.advanceTime(by: .seconds(1))
        #expect(!probe.isActive && port.figures.snapshot.turnedAway == [.busy: 1])
        let next = try port.connect()
        try busy[0].answer()
        try next.send(Asked.metrics)
        #expect(try next.heads() == 1)
        #expect(busy[0].isActive && next.isActive)
    }

    @Test(
        "asks for health without a body only, in its own words",
        arguments: [
            ("GET /healthz", true), ("HEAD /readyz?x=1", true), ("GET /healthz/", false), ("POST /healthz", false),
            ("GET /metrics", false), ("GET http://x/healthz", false),
        ]
    )
    func health(line: String, isHealth: Bool) {
        let words = line.split(separator: " ").map(String.init)
        var head = HTTPRequestHead(version: .http1_1, method: HTTPMethod(rawValue: words[0]), uri: words[1])
        #expect((Health.Question(head) != nil) == isHealth)
        head.headers = ["Content-Length": "0"]
        #expect((Health.Question(head) != nil) == isHealth)
        head.headers = ["Content-Length": "1"]
        #expect(Health.Question(head) == nil)
        head.headers = ["Transfer-Encoding": "chunked"]
        #expect(Health.Question(head) == nil)
    }

    @Test("without a complete head is closed in time, however its bytes trickle")
    func slowHead() throws {
        let port = EmbeddedPort()
        let (first, later) = (try port.connect(), try port.connect())
        try later.send(Asked.metrics)
        try later.answer()
        port.loop.advanceTime(by: .seconds(4))
        for character in "GET /" {
            try first.send(String(character))
            try later.send(String(character))
            #expect(first.isActive && later.isActive)
            port.loop.advanceTime(by: .seconds(1))
        }
        #expect(first.isActive && !later.isActive, "5 s from its first byte")
        port.loop.advanceTime(by: .seconds(1))
        #expect(!first.isActive, "10 s from connecting")
        #expect(port.figures.snapshot.turnedAway == [.head: 2])
        #expect(port.figures.snapshot.waiting == 1, "the other one's task has not ended")
        port.accepted[0].taskEnds()
        #expect(port.figures.snapshot.waiting == 0)
    }

    @Test("whose peer does not take its answer is closed in time")
    func slowReader() throws {
        let port = EmbeddedPort()
        let channel = try port.connect()
        try channel.send(Asked.metrics)
        channel.isWritable = false
        channel.pipeline.fireChannelWritabilityChanged()
        port.loop.advanceTime(by: .seconds(19))
        #expect(channel.isActive)
        port.loop.advanceTime(by: .seconds(1))
        #expect(!channel.isActive && port.figures.snapshot.turnedAway == [.output: 1])
    }

    @Test("that is turned away is told to the log once for all of a burst")
    func log() throws {
        let port = EmbeddedPort(all: 1)
        for _ in 0..<1_001 { _ = try port.connect() }
        #expect(port.log.events.isEmpty)
        port.loop.advanceTime(by: .seconds(1))
        let events = port.log.events
        #expect(events.count == 1 && events.first?.level == .warning)
        #expect(events.first?.metadata.contains("1000") == true, "\(events)")
        for _ in 0..<10 { _ = try port.connect() }
        port.loop.advanceTime(by: .seconds(59))
        #expect(port.log.events.count == 1)
        port.loop.advanceTime(by: .seconds(1))
        #expect(port.log.events.count == 2)
    }
}
