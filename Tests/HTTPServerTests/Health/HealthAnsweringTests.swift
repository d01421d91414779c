import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import HTTPServer

@Suite("A question about health")
struct HealthAnsweringTests {
    @Test("is answered on a connection that the framework never sees, as often as it is asked")
    func withoutFramework() throws {
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
        try channel.send(Asked.health + Asked.readiness)
        let answer = try channel.sent()
        #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n") && !answer.contains("ok\n"))
        #expect(answer.contains("HTTP/1.1 503 Service Unavailable\r\n") && answer.contains("no lane is connected"))
        #expect(port.accepted.isEmpty && port.figures.snapshot.busy == 0)
        var text = MetricsText()
        port.metrics.write(to: &text)
        let counted = "headroom_http_requests_total{route=\"/healthz\",method=\"GET\",status=\"2xx\"} 3\n"
        #expect(text.text.contains(counted))
        try channel.send(Asked.metrics)
        #expect(!channel.isActive, "the framework takes none any more")
        #expect(port.ended == 1)
    }

    @Test("waits its turn behind a request that the framework has")
    func behindAnother() throws {
        let port = EmbeddedPort()
        let channel = try port.connect()
        try channel.send(Asked.post)
        try channel.send("123456789" + Asked.health)
        #expect(try channel.sent() == "" && channel.heads() == 2, "the framework has both")
        for _ in 0..<2 { try channel.answer() }
        #expect(port.figures.snapshot.waiting == 1)
        try channel.send(Asked.health)
        #expect(try channel.heads() == 0 && port.accepted.count == 1)
    }

    @Test("ends the connection where it says so")
    func close() throws {
        let port = EmbeddedPort()
        for request in ["GET /healthz HTTP/1.0\r\n\r\n", "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n"] {
            let channel = try port.connect()
            try channel.send(request)
            #expect(try channel.sent().lowercased().contains("\r\nconnection: close\r\n"))
            #expect(!channel.isActive)
        }
    }

    @Test("needs nothing that a silent connection does not have")
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

    @Test("that is no HTTP is answered and closed")
    func noHTTP() throws {
        let port = EmbeddedPort()
        let channel = try port.connect()
        try channel.send("CONSUME someone\r\n\r\n")
        #expect(try channel.sent().hasPrefix("HTTP/1.1 400 Bad Request\r\n"))
        port.loop.advanceTime(by: .seconds(1))
        #expect(!channel.isActive && port.accepted.isEmpty)
    }
}
