import Logging
import NIOCore
import NIOEmbedded
import NIOHTTP1
import TestSupport
import Testing

@testable import HTTPSide

@Suite("A connection of the HTTP port")
struct ConnectionGateTests {
    /// Some connections on one event loop, whose time the test moves.
    private final class Port {
        let loop = EmbeddedEventLoop()
        let figures = ConnectionFigures()
        let log = RecordingLog()
        let keeper: ConnectionKeeper

        init(all: Int = 2, perNetwork: Int = .max, probes: Int = 1) {
            keeper = ConnectionKeeper(
                ConnectionRoster.Limits(all: all, perNetwork: perNetwork, probes: probes),
                RequestClock.Limits(firstHead: .seconds(10), head: .seconds(5), output: .seconds(20)),
                figures: figures,
                logger: log.logger
            )
        }

        func connect(from address: String = "192.0.2.1") throws -> EmbeddedChannel {
            let gate = ConnectionGate(keeper)
            let channel = EmbeddedChannel(loop: loop)
            let pipeline = channel.pipeline.syncOperations
            try pipeline.addHandler(gate)
            try pipeline.configureHTTPServerPipeline(withPipeliningAssistance: false, withErrorHandling: false)
            let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
            try pipeline.addHandler(RequestGate(gate), position: .after(decoder))
            channel.remoteAddress = try SocketAddress(ipAddress: address, port: 1_000)
            channel.connect(to: try SocketAddress(ipAddress: address, port: 1_000), promise: nil)
            return channel
        }
    }

    private func send(_ text: String, to channel: EmbeddedChannel) throws {
        try channel.writeInbound(ByteBuffer(string: text))
    }

    /// How many requests came through.
    private func heads(_ channel: EmbeddedChannel) throws -> Int {
        var count = 0
        while let part = try channel.readInbound(as: HTTPServerRequestPart.self) {
            if case .head = part { count += 1 }
        }
        return count
    }

    private func answer(_ channel: EmbeddedChannel) throws {
        let head = HTTPResponseHead(version: .http1_1, status: .ok, headers: ["Content-Length": "0"])
        try channel.writeOutbound(HTTPServerResponsePart.head(head))
        try channel.writeOutbound(HTTPServerResponsePart.end(nil))
    }

    private func sent(_ channel: EmbeddedChannel) throws -> String {
        var text = ""
        while let buffer = try channel.readOutbound(as: ByteBuffer.self) { text += String(buffer: buffer) }
        return text
    }

    private static let metrics = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
    private static let health = "HEAD /healthz?a HTTP/1.1\r\nHost: x\r\n\r\n"

    @Test("that has waited longest is closed when another one comes, and that one is answered")
    func givesWay() throws {
        let port = Port()
        let (first, second) = (try port.connect(), try port.connect())
        try send(ConnectionGateTests.metrics, to: first)
        #expect(try heads(first) == 1)
        try answer(first)
        #expect(port.figures.snapshot.waiting == 2)
        let third = try port.connect()
        #expect(first.isActive && !second.isActive && third.isActive)
        try send(ConnectionGateTests.health, to: third)
        #expect(try heads(third) == 1)
        #expect(port.figures.snapshot.turnedAway == [.all: 1])
        #expect(port.figures.snapshot.waiting == 1 && port.figures.snapshot.busy == 1)
    }

    @Test("is refused anything but health while all others are busy, until one of them is answered")
    func probe() throws {
        let port = Port()
        let busy = [try port.connect(), try port.connect()]
        for channel in busy { try send("POST /v1/x HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n", to: channel) }
        let probe = try port.connect()
        try send(ConnectionGateTests.health, to: probe)
        #expect(try heads(probe) == 1)
        try answer(probe)
        #expect(try sent(probe).hasPrefix("HTTP/1.1 200 OK\r\n"))
        try send(ConnectionGateTests.metrics + ConnectionGateTests.health, to: probe)
        #expect(try heads(probe) == 0, "neither it nor what follows it")
        let refusal = try sent(probe)
        #expect(refusal.hasPrefix("HTTP/1.1 503 Service Unavailable\r\n"))
        #expect(refusal.contains("\r\nConnection: close\r\n") && refusal.contains("\"code\":\"OVERLOADED\""))
        #expect(probe.isActive)
        port.loop.advanceTime(by: .seconds(1))
        #expect(!probe.isActive && port.figures.snapshot.turnedAway == [.busy: 1])
        let next = try port.connect()
        try answer(busy[0])
        try send(ConnectionGateTests.metrics, to: next)
        #expect(try heads(next) == 1)
        #expect(!busy[0].isActive && next.isActive && port.figures.snapshot.probes == 0)
    }

    @Test(
        "may ask for health without a body only, in its own words",
        arguments: [
            ("GET /healthz", true), ("HEAD /readyz?x=1", true), ("GET /healthz/", false), ("POST /healthz", false),
            ("GET /metrics", false), ("GET http://x/healthz", false),
        ]
    )
    func health(line: String, isHealth: Bool) {
        let words = line.split(separator: " ").map(String.init)
        var head = HTTPRequestHead(version: .http1_1, method: HTTPMethod(rawValue: words[0]), uri: words[1])
        #expect(RequestGate.asksForHealth(head) == isHealth)
        head.headers = ["Content-Length": "0"]
        #expect(RequestGate.asksForHealth(head) == isHealth)
        head.headers = ["Content-Length": "1"]
        #expect(!RequestGate.asksForHealth(head))
        head.headers = ["Transfer-Encoding": "chunked"]
        #expect(!RequestGate.asksForHealth(head))
    }

    @Test("without a complete head is closed in time, however its bytes trickle")
    func slowHead() throws {
        let port = Port()
        let (first, later) = (try port.connect(), try port.connect())
        try send(ConnectionGateTests.metrics, to: later)
        try answer(later)
        port.loop.advanceTime(by: .seconds(4))
        for character in "GET /" {
            try send(String(character), to: first)
            try send(String(character), to: later)
            #expect(first.isActive && later.isActive)
            port.loop.advanceTime(by: .seconds(1))
        }
        #expect(first.isActive && !later.isActive, "5 s from its first byte")
        port.loop.advanceTime(by: .seconds(1))
        #expect(!first.isActive, "10 s from connecting")
        #expect(port.figures.snapshot.turnedAway == [.head: 2] && port.figures.snapshot.waiting == 0)
    }

    @Test("whose peer does not take its answer is closed in time")
    func slowReader() throws {
        let port = Port()
        let channel = try port.connect()
        try send(ConnectionGateTests.metrics, to: channel)
        channel.isWritable = false
        channel.pipeline.fireChannelWritabilityChanged()
        port.loop.advanceTime(by: .seconds(19))
        #expect(channel.isActive)
        port.loop.advanceTime(by: .seconds(1))
        #expect(!channel.isActive && port.figures.snapshot.turnedAway == [.output: 1])
    }

    @Test("that is turned away is told to the log once for all of a burst")
    func log() throws {
        let port = Port(all: 1)
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
