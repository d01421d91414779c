import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOHTTPTypes
import ServiceCore
import Testing

@testable import HTTPServer

/// A connection of HTTP/2 on an `EmbeddedPort`, and streams on its event loop.
private struct MultiplexedConnection {
    let port: EmbeddedPort
    let channel: EmbeddedChannel
    let handler: ConnectionLimitHandler

    init(_ port: EmbeddedPort) throws {
        self.port = port
        channel = try port.connect()
        handler = try channel.pipeline.syncOperations.handler(type: ConnectionLimitHandler.self)
        handler.multiplexed()
    }

    func stream(starts: @escaping () -> Bool = { true }) throws -> EmbeddedChannel {
        let admission = StreamAdmissionHandler(handler, health: port.health) { _ in starts() }
        let stream = EmbeddedChannel(handler: admission, loop: port.loop)
        stream.connect(to: try SocketAddress(ipAddress: "192.0.2.1", port: 1_000), promise: nil)
        return stream
    }

    static func head(_ path: String, _ fields: HTTPFields = [:]) -> HTTPRequestPart {
        .head(HTTPRequest(method: .get, scheme: "https", authority: "x", path: path, headerFields: fields))
    }
}

extension EmbeddedChannel {
    fileprivate func receive(_ parts: HTTPRequestPart...) throws {
        for part in parts { pipeline.fireChannelRead(part) }
        pipeline.fireChannelReadComplete()
        try throwIfErrorCaught()
    }

    fileprivate func response() throws -> HTTPResponse? {
        guard case .head(let head)? = try readOutbound(as: HTTPResponsePart.self) else { return nil }
        return head
    }

    fileprivate func request() throws -> HTTPRequest? {
        guard case .head(let head)? = try readInbound(as: HTTPRequestPart.self) else { return nil }
        return head
    }
}

@Suite("Streams of HTTP/2")
struct StreamAdmissionTests {
    @Test("a connection and its first stream take one place, each further stream another")
    func places() throws {
        let port = EmbeddedPort(all: 3)
        let connection = try MultiplexedConnection(port)
        #expect(port.metrics.snapshot.idle == 1)
        let first = try #require(connection.handler.streamTaskStarts())
        #expect(port.metrics.snapshot.busy == 1 && port.metrics.snapshot.idle == 0)
        let (second, third) = (
            try #require(connection.handler.streamTaskStarts()), try #require(connection.handler.streamTaskStarts())
        )
        #expect(connection.handler.streamTaskStarts() == nil)
        #expect(port.metrics.snapshot == .init(idle: 0, busy: 3, rejections: [.busy: 1]))
        connection.handler.streamTaskEnded(first)
        connection.handler.streamTaskEnded(third)
        #expect(port.metrics.snapshot.busy == 1 && port.metrics.snapshot.idle == 0)
        connection.handler.streamTaskEnded(second)
        #expect(port.metrics.snapshot.busy == 0 && port.metrics.snapshot.idle == 1)
        #expect(connection.channel.isActive)
    }

    @Test("the places of a closed connection are taken until its tasks have ended")
    func tasksOfAClosedConnection() throws {
        let port = EmbeddedPort(all: 3)
        let connection = try MultiplexedConnection(port)
        let streams = [
            try #require(connection.handler.streamTaskStarts()), try #require(connection.handler.streamTaskStarts()),
        ]
        connection.handler.close()
        #expect(port.metrics.snapshot.busy == 2)
        for stream in streams { connection.handler.streamTaskEnded(stream) }
        #expect(port.metrics.snapshot.busy == 0 && port.metrics.snapshot.idle == 0)
        #expect(connection.handler.streamTaskStarts() == nil)
    }

    @Test("only the first head has a deadline, and a stream prevents the idle timeout")
    func timeouts() throws {
        let port = EmbeddedPort()
        let connection = try MultiplexedConnection(port)
        let stream = try connection.stream()
        try stream.receive(MultiplexedConnection.head("/metrics"), .end(nil))
        for _ in 0..<20 {
            try connection.channel.send("a ping")
            port.loop.advanceTime(by: .seconds(5))
        }
        #expect(connection.channel.isActive)
        port.loop.advanceTime(by: .seconds(100))
        #expect(connection.channel.isActive)
        stream.close(promise: nil)
        port.loop.advanceTime(by: .seconds(59))
        #expect(connection.channel.isActive)
        port.loop.advanceTime(by: .seconds(1))
        #expect(!connection.channel.isActive && port.metrics.snapshot.rejections == [:])
    }

    @Test("a body of unknown length is announced as in HTTP/1.1; no body is none")
    func bodies() throws {
        let connection = try MultiplexedConnection(EmbeddedPort())
        let none = try connection.stream()
        try none.receive(MultiplexedConnection.head("/v1/x"), .end(nil))
        #expect(try none.request()?.headerFields[.transferEncoding] == nil)
        let later = try connection.stream()
        try later.receive(MultiplexedConnection.head("/v1/x"))
        #expect(try later.request()?.headerFields[.transferEncoding] == "chunked")
        let check = try connection.stream()
        try check.receive(MultiplexedConnection.head("/healthz"))
        #expect(try check.request() == nil, "it waits for the end")
        try check.receive(.body(ByteBuffer(string: "x")))
        #expect(try check.request()?.headerFields[.transferEncoding] == "chunked", "with a body, it is no health check")
        let known = try connection.stream()
        try known.receive(MultiplexedConnection.head("/v1/x", [.contentLength: "1"]), .body(ByteBuffer(string: "1")))
        #expect(try known.request()?.headerFields[.transferEncoding] == nil)
        #expect(try known.readInbound(as: HTTPRequestPart.self) == .body(ByteBuffer(string: "1")))
    }

    @Test("health checks are answered here; a refused request ends its stream")
    func answers() throws {
        let connection = try MultiplexedConnection(EmbeddedPort())
        let health = try connection.stream { false }
        try health.receive(MultiplexedConnection.head("/healthz?a"), .end(nil))
        #expect(try health.response()?.status == .ok)
        let refused = try connection.stream { false }
        try refused.receive(MultiplexedConnection.head("/metrics"))
        #expect(try refused.response()?.status == .serviceUnavailable && refused.request() == nil)
        try refused.receive(.body(ByteBuffer(string: "discarded")))
        #expect(try refused.request() == nil && connection.channel.isActive)
        let fields = HTTPFields((0...100).map { HTTPField(name: .init("x-\($0)")!, value: "") })
        let large = try connection.stream()
        try large.receive(MultiplexedConnection.head("/healthz", fields), .end(nil))
        #expect(try large.response()?.status == .requestHeaderFieldsTooLarge)
    }

    @Test("a response loses Connection, and a stream whose peer does not read it is closed")
    func slowReader() throws {
        let connection = try MultiplexedConnection(EmbeddedPort())
        let stream = try connection.stream()
        try stream.receive(MultiplexedConnection.head("/metrics"), .end(nil))
        try stream.writeOutbound(HTTPResponsePart.head(HTTPResponse(status: .ok, headerFields: [.connection: "close"])))
        #expect(try stream.response()?.headerFields[.connection] == nil)
        stream.isWritable = false
        stream.pipeline.fireChannelWritabilityChanged()
        connection.port.loop.advanceTime(by: .seconds(19))
        #expect(stream.isActive)
        connection.port.loop.advanceTime(by: .seconds(1))
        #expect(!stream.isActive && connection.channel.isActive)
        #expect(connection.port.metrics.snapshot.rejections == [.outputTimeout: 1])
    }

    @Test("only fields with few values enter the table of fields, whose size the peer chooses")
    func indexing() throws {
        let connection = try MultiplexedConnection(EmbeddedPort())
        let stream = try connection.stream()
        try stream.receive(MultiplexedConnection.head("/healthz"), .end(nil))
        let fields = try #require(try stream.response()).headerFields
        let indexed = fields.filter { $0.indexingStrategy == .automatic }.map(\.name.canonicalName)
        #expect(indexed == ["content-type", "cache-control", "x-content-type-options"] && fields[.date] != nil)
    }

    @Test("a body is asked for once it is wanted, if nothing of it has come")
    func expectations() throws {
        let connection = try MultiplexedConnection(EmbeddedPort())
        let waiting = try connection.stream()
        try waiting.receive(MultiplexedConnection.head("/v1/x"))
        waiting.triggerUserOutboundEvent(BodyRequest(), promise: nil)
        #expect(try waiting.response()?.status == .continue)
        let begun = try connection.stream()
        try begun.receive(MultiplexedConnection.head("/v1/x"), .body(ByteBuffer(string: "x")))
        begun.triggerUserOutboundEvent(BodyRequest(), promise: nil)
        #expect(try begun.response() == nil)
        let channel = try connection.port.connect()
        try channel.send(Sent.post)
        channel.triggerUserOutboundEvent(BodyRequest(), promise: nil)
        #expect(try channel.sent() == "HTTP/1.1 100 Continue\r\n\r\n")
        try channel.send("n")
        channel.triggerUserOutboundEvent(BodyRequest(), promise: nil)
        #expect(try channel.sent() == "")
    }

    @Test("the end of a stream before that of its request is an error for the task")
    func incomplete() throws {
        let connection = try MultiplexedConnection(EmbeddedPort())
        let stream = try connection.stream()
        try stream.receive(MultiplexedConnection.head("/v1/x"))
        stream.close(promise: nil)
        #expect(throws: StreamAdmissionHandler.Incomplete.self) { try stream.throwIfErrorCaught() }
    }

    @Test("a response that is sent ends the timeout")
    func reader() throws {
        let connection = try MultiplexedConnection(EmbeddedPort())
        let stream = try connection.stream()
        try stream.receive(MultiplexedConnection.head("/metrics"), .end(nil))
        try stream.writeOutbound(HTTPResponsePart.end(nil))
        connection.port.loop.advanceTime(by: .seconds(30))
        #expect(stream.isActive && connection.port.metrics.snapshot.rejections == [:])
    }
}
