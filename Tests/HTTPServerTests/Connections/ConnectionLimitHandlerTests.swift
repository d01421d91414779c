import Logging
import NIOCore
import NIOEmbedded
import NIOHTTP1
import TestSupport
import Testing

@testable import HTTPServer

/// Unless a test sets it, `EmbeddedPort` allows two connections.
@Suite("Limits and timeouts of HTTP connections")
struct ConnectionLimitHandlerTests {
    @Test("at the limit, a new connection replaces the one that has been idle longest")
    func eviction() throws {
        let port = EmbeddedPort()
        let (first, second) = (try port.connect(), try port.connect())
        try first.send(Sent.metrics)
        #expect(try first.heads() == 1)
        try first.answer()
        #expect(port.metrics.snapshot.idle == 2)
        let third = try port.connect()
        #expect(first.isActive && !second.isActive && third.isActive)
        try third.send(Sent.metrics)
        #expect(try third.heads() == 1)
        #expect(port.metrics.snapshot.rejections == [.connectionLimit: 1])
        #expect(port.metrics.snapshot.idle == 1 && port.metrics.snapshot.busy == 1)
    }

    @Test("while all connections are busy, only health checks are answered")
    func probe() throws {
        let port = EmbeddedPort()
        let busy = [try port.connect(), try port.connect()]
        for channel in busy { try channel.send(Sent.post) }
        let probe = try port.connect()
        try probe.send(Sent.health)
        #expect(try probe.heads() == 0 && port.accepted.count == 2, "it is answered without Hummingbird")
        #expect(try probe.sent().hasPrefix("HTTP/1.1 200 OK\r\n"))
        try probe.send(Sent.metrics + Sent.health)
        #expect(try probe.heads() == 0, "neither the refused request nor the next one reaches Hummingbird")
        let refusal = try probe.sent()
        #expect(refusal.hasPrefix("HTTP/1.1 503 Service Unavailable\r\n"))
        #expect(refusal.contains("\r\nConnection: close\r\n") && refusal.contains("\"code\":\"OVERLOADED\""))
        #expect(probe.isActive)
        port.loop.advanceTime(by: .seconds(1))
        #expect(!probe.isActive && port.metrics.snapshot.rejections == [.busy: 1])
        let next = try port.connect()
        try busy[0].answer()
        try next.send(Sent.metrics)
        #expect(try next.heads() == 1)
        #expect(busy[0].isActive && next.isActive)
    }

    @Test("answers tell the client to open another connection once the service is shutting down")
    func draining() throws {
        let port = EmbeddedPort()
        let client = try port.connect()
        for isDraining in [false, true] {
            if isDraining { port.draining.set() }
            try client.send(Sent.readiness)
            #expect(try client.sent().contains("\r\nConnection: close\r\n") == isDraining)
            try client.send(Sent.metrics)
            try client.answer()
            #expect(try client.sent().contains("\r\nConnection: close\r\n") == isDraining)
        }
    }

    @Test(
        "only GET and HEAD of /healthz or /readyz, without a body, are health checks",
        arguments: [
            ("GET /healthz", true), ("HEAD /readyz?x=1", true), ("GET /healthz/", false), ("POST /healthz", false),
            ("GET /metrics", false), ("GET http://x/healthz", false),
        ]
    )
    func health(line: String, isHealth: Bool) {
        let words = line.split(separator: " ").map(String.init)
        var head = HTTPRequestHead(version: .http1_1, method: HTTPMethod(rawValue: words[0]), uri: words[1])
        #expect((HealthCheck(head) != nil) == isHealth)
        head.headers = ["Content-Length": "0"]
        #expect((HealthCheck(head) != nil) == isHealth)
        head.headers = ["Content-Length": "1"]
        #expect(HealthCheck(head) == nil)
        head.headers = ["Transfer-Encoding": "chunked"]
        #expect(HealthCheck(head) == nil)
    }

    @Test("a connection without a complete request head times out, even if bytes trickle in")
    func slowHead() throws {
        let port = EmbeddedPort()
        let (first, later) = (try port.connect(), try port.connect())
        try later.send(Sent.metrics)
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
        #expect(port.metrics.snapshot.rejections == [.headTimeout: 2])
        #expect(port.metrics.snapshot.idle == 1, "the other one's task has not ended")
        port.accepted[0].taskEnded()
        #expect(port.metrics.snapshot.idle == 0)
    }

    @Test("a connection whose peer does not read its response times out")
    func slowReader() throws {
        let port = EmbeddedPort()
        let channel = try port.connect()
        try channel.send(Sent.metrics)
        channel.isWritable = false
        channel.pipeline.fireChannelWritabilityChanged()
        port.loop.advanceTime(by: .seconds(19))
        #expect(channel.isActive)
        port.loop.advanceTime(by: .seconds(1))
        #expect(!channel.isActive && port.metrics.snapshot.rejections == [.outputTimeout: 1])
    }

    @Test("rejections are logged once a minute")
    func log() throws {
        let port = EmbeddedPort(all: 1)
        // One connection is within the limit; 1000 are rejections.
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
