import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import HTTPServer

@Suite("A health check")
struct HealthCheckTests {
    @Test("is answered without Hummingbird, any number of times")
    func withoutHummingbird() throws {
        let port = EmbeddedPort()
        port.acceptsMore = false
        let channel = try port.connect()
        for _ in 0..<3 {
            try channel.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            let answer = try channel.sent()
            #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n") && answer.hasSuffix("\r\n\r\nok\n"), "\(answer)")
            #expect(answer.contains("\r\nContent-Length: 3\r\n") && answer.contains("\r\nDate: "))
            #expect(answer.contains("\r\nCache-Control: no-store\r\n"))
        }
        try channel.send(Sent.health + Sent.readiness)
        let answer = try channel.sent()
        #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n") && !answer.contains("ok\n"))
        #expect(answer.contains("HTTP/1.1 503 Service Unavailable\r\n") && answer.contains("no lane is connected"))
        #expect(port.accepted.isEmpty && port.metrics.snapshot.busy == 0)
        let checks = HTTPMetrics.Kind(route: "/healthz", method: "GET", status: "2xx")
        #expect(port.httpMetrics.snapshot.requests[checks] == 3)
        try channel.send(Sent.metrics)
        #expect(!channel.isActive, "Hummingbird accepts no more connections")
        #expect(port.finished == 1)
    }

    @Test("waits for an earlier request of its connection")
    func behindAnother() throws {
        let port = EmbeddedPort()
        let channel = try port.connect()
        try channel.send(Sent.post)
        try channel.send("123456789" + Sent.health)
        #expect(try channel.sent() == "" && channel.heads() == 2, "Hummingbird has both")
        for _ in 0..<2 { try channel.answer() }
        #expect(port.metrics.snapshot.idle == 1)
        try channel.send(Sent.health)
        #expect(try channel.heads() == 0 && port.accepted.count == 1)
    }

    @Test("closes the connection on request")
    func close() throws {
        let port = EmbeddedPort()
        for request in ["GET /healthz HTTP/1.0\r\n\r\n", "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n"] {
            let channel = try port.connect()
            try channel.send(request)
            #expect(try channel.sent().lowercased().contains("\r\nconnection: close\r\n"))
            #expect(!channel.isActive)
        }
    }

    @Test("other handlers are added with the first byte")
    func silent() throws {
        let port = EmbeddedPort()
        let channel = try port.connect()
        #expect(port.built == 0)
        channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        #expect(!channel.isActive && port.built == 0)
        let other = try port.connect()
        try other.send("G")
        #expect(port.built == 1)
    }

    @Test("malformed input is answered with 400, and the connection closes")
    func noHTTP() throws {
        let port = EmbeddedPort()
        let channel = try port.connect()
        try channel.send("CONSUME someone\r\n\r\n")
        #expect(try channel.sent().hasPrefix("HTTP/1.1 400 Bad Request\r\n"))
        port.loop.advanceTime(by: .seconds(1))
        #expect(!channel.isActive && port.accepted.isEmpty)
    }
}
