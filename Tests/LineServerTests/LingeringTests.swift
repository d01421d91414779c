import Logging
import NIOCore
import NIOEmbedded
import Postgres
import TestSupport
import Testing

@testable import LineServer
@testable import ServiceCore

/// The kernel resets a connection that is closed with unread bytes, and the peer loses the replies that it has not
/// read.
@Suite("A connection that is ended")
struct LingeringTests {
    private let address: SocketAddress

    init() throws { address = try SocketAddress(ipAddress: "127.0.0.1", port: 1) }

    /// The connection group of a service that accepts so many connections.
    private func makeGroup(connectionsMaximum: Int = 9) throws -> (ConnectionGroup, ConnectionLimits, EmbeddedEventLoop)
    {
        let flags = ["connections-maximum": "\(connectionsMaximum)"]
        let configuration = try ServerConfiguration(SettingsReader(flags: flags, environment: [:]))
        let dependencies = ServiceDependencies(
            configuration,
            database: DatabaseTopology(""),
            access: AccessControl(.off, connectionsPerTokenMaximum: 1, logger: .silent),
            tls: nil,
            logger: .silent
        )
        let limits = ConnectionLimits(configuration)
        let eventLoop = EmbeddedEventLoop()
        let group = ConnectionGroup(
            eventLoop: eventLoop,
            engine: dependencies.engine,
            access: dependencies.access,
            connectionCounter: dependencies.connectionCounter,
            serverInfo: dependencies.info,
            metrics: dependencies.metrics.loops[0],
            limits: limits,
            logger: .silent
        )
        return (group, limits, eventLoop)
    }

    /// A connection of the line port without TLS.
    private func connected(behind socket: Socket) throws -> EmbeddedChannel {
        let (group, limits, eventLoop) = try makeGroup()
        let handler = LineConnectionHandler(id: 1, group: group, limits: limits)
        let channel = EmbeddedChannel(handlers: [socket, handler], loop: eventLoop)
        try channel.connect(to: address).wait()
        return channel
    }

    @Test("continues a read that was pending until then")
    func heldBack() throws {
        let socket = Socket()
        let channel = try connected(behind: socket)
        // Like a peer that does not read its replies.
        channel.isWritable = false
        channel.read()
        #expect(socket.reads == 0)
        try channel.writeInbound(ByteBuffer(string: "QUIT\n"))
        #expect(socket.outputIsClosed && socket.reads == 1)
        _ = try channel.finish(acceptAlreadyClosed: true)
    }

    @Test("continues to read, and drops what it reads")
    func reads() throws {
        let socket = Socket()
        let channel = try connected(behind: socket)
        try channel.writeInbound(ByteBuffer(string: "QUIT\nPING\n"))
        #expect(try received(channel) == "+OK\r\n")
        try expectDiscarding(channel, socket)
        try flood(channel)
        #expect(!channel.isActive)
        _ = try channel.finish(acceptAlreadyClosed: true)
    }

    private func expectDiscarding(_ channel: EmbeddedChannel, _ socket: Socket) throws {
        #expect(socket.outputIsClosed)
        for _ in 0..<3 {
            let before = socket.reads
            try channel.writeInbound(ByteBuffer(string: "PING\nPI"))
            channel.read()
            #expect(socket.reads > before)
        }
        #expect(try received(channel) == "")
        #expect(channel.isActive)
    }

    @Test("because there are too many continues to read, too, unless many such connections do")
    func refused() throws {
        let (group, limits, eventLoop) = try makeGroup(connectionsMaximum: 1)
        func connect() throws -> (EmbeddedChannel, Socket) {
            let socket = Socket()
            let handler = LineConnectionHandler(id: 1, group: group, limits: limits)
            let channel = EmbeddedChannel(handlers: [socket, handler], loop: eventLoop)
            try channel.connect(to: address).wait()
            return (channel, socket)
        }
        let (admitted, _) = try connect()
        var refused: [EmbeddedChannel] = []
        for _ in 0..<ConnectionCounter.refusalsMaximum {
            let (channel, socket) = try connect()
            #expect(try received(channel).hasPrefix("-OVERLOADED retry_ms=1000 too many connections"))
            try expectDiscarding(channel, socket)
            refused.append(channel)
        }
        for _ in 0..<3 {
            let (channel, _) = try connect()
            #expect(!channel.isActive, "more may not linger")
            #expect(try received(channel).hasPrefix("-OVERLOADED"))
            _ = try channel.finish(acceptAlreadyClosed: true)
        }
        try flood(refused[0])
        #expect(!refused[0].isActive)
        let (channel, _) = try connect()
        #expect(channel.isActive, "in place of the closed one")
        #expect(admitted.isActive)
        for channel in refused + [channel, admitted] { _ = try channel.finish(acceptAlreadyClosed: true) }
        #expect(group.connectionCounter.snapshot.current == 0)
        for _ in 0..<ConnectionCounter.refusalsMaximum { #expect(group.connectionCounter.beginRefusal()) }
    }

    /// Sends every 200 ms; returns after how long the connection is closed.
    private func timeUntilClosed(_ channel: EmbeddedChannel, sendingFor time: TimeAmount) throws -> TimeAmount {
        let begin = channel.embeddedEventLoop.now
        while channel.isActive {
            if channel.embeddedEventLoop.now < begin + time { try channel.writeInbound(ByteBuffer(string: "x")) }
            for _ in 0..<4 where channel.isActive { channel.embeddedEventLoop.advanceTime(by: .milliseconds(50)) }
        }
        return channel.embeddedEventLoop.now - begin
    }

    @Test(
        "with TLS is closed once the peer is silent for a moment, and at the latest after the maximum",
        arguments: [(0, 250), (600, 650), (3_000, 1_000)]
    )
    func tls(sendingMilliseconds: Int64, closedAfterMilliseconds: Int64) throws {
        let socket = Socket()
        let channel = EmbeddedChannel(handlers: [socket, TLSSocketHandler(lingerMaximum: .seconds(1))])
        try channel.connect(to: address).wait()
        // Plain text is refused.
        try channel.writeInbound(ByteBuffer(string: "PING\n"))
        #expect(try received(channel).hasPrefix("-PROTOCOL this port speaks TLS"))
        #expect(socket.outputIsClosed)
        for _ in 0..<3 {
            let before = socket.reads
            try channel.writeInbound(ByteBuffer(string: "x"))
            #expect(socket.reads > before, "it continues to read")
        }
        let time = try timeUntilClosed(channel, sendingFor: .milliseconds(sendingMilliseconds))
        #expect(time == .milliseconds(closedAfterMilliseconds))
        _ = try channel.finish(acceptAlreadyClosed: true)
    }

    @Test("with TLS is closed when the peer sends without end")
    func endlessWithTLS() throws {
        let channel = EmbeddedChannel(handlers: [Socket(), TLSSocketHandler(lingerMaximum: .seconds(1))])
        try channel.connect(to: address).wait()
        try channel.writeInbound(ByteBuffer(string: "PING\n"))
        #expect(channel.isActive)
        try flood(channel)
        #expect(!channel.isActive)
        _ = try channel.finish(acceptAlreadyClosed: true)
    }

    /// Sends more than a lingering connection drops.
    private func flood(_ channel: EmbeddedChannel) throws {
        let piece = ByteBuffer(repeating: 0x78, count: 1 << 20)
        for _ in 0...(ConnectionLimits.discardedBytesMaximum >> 20) where channel.isActive {
            try channel.writeInbound(piece)
        }
    }

    private func received(_ channel: EmbeddedChannel) throws -> String {
        var text = ""
        while let buffer = try channel.readOutbound(as: ByteBuffer.self) { text += String(buffer: buffer) }
        return text
    }
}

/// Supports a close of the output only; an embedded channel would close as a whole.
private final class Socket: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer

    private(set) var reads = 0
    private(set) var outputIsClosed = false

    func read(context: ChannelHandlerContext) {
        reads += 1
        context.read()
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard case .output = mode else {
            context.close(mode: mode, promise: promise)
            return
        }
        outputIsClosed = true
        promise?.succeed()
    }
}
