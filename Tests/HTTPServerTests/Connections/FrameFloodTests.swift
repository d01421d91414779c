import NIOCore
import NIOEmbedded
import NIOHTTP1
import NIOHTTP2
import Testing

@testable import HTTPServer

/// Frames of RFC 9113.
private enum Frame {
    static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + frame(4)
    static let endHeaders: UInt8 = 4

    static func frame(_ type: UInt8, flags: UInt8 = 0, stream: UInt32 = 0, _ payload: [UInt8] = []) -> [UInt8] {
        let length = payload.count
        let header = [UInt8(length >> 16), UInt8(length >> 8 & 0xFF), UInt8(length & 0xFF), type, flags]
        return header + withUnsafeBytes(of: stream.bigEndian) { Array($0) } + payload
    }

    /// POST /x of a body.
    static func headers(_ stream: UInt32, flags: UInt8 = endHeaders) -> [UInt8] {
        frame(1, flags: flags, stream: stream, [0x83, 0x87, 0x44, 2] + Array("/x".utf8) + [0x41, 1] + Array("x".utf8))
    }
}

/// What a peer without a token sends without end.
private enum Flood: String, CaseIterable, CustomTestStringConvertible {
    case noFrames, continuation, ping, settings, priority, emptyData, pieces, resets, windowUpdates, unknown, goAway

    var testDescription: String { rawValue }

    var begin: [UInt8] {
        switch self {
        case .continuation: Frame.headers(1, flags: 0)
        case .emptyData, .pieces: Frame.headers(1)
        default: []
        }
    }

    func unit(_ number: Int) -> [UInt8] {
        switch self {
        case .noFrames: [UInt8](repeating: 0xFF, count: 64)
        case .continuation: Frame.frame(9, stream: 1)
        case .ping: Frame.frame(6, [UInt8](repeating: 0, count: 8))
        case .settings: Frame.frame(4, [0, 3, 0, 0, 0, 100])
        case .priority: Frame.frame(2, stream: 5, [0, 0, 0, 0, 1])
        case .emptyData: Frame.frame(0, stream: 1)
        case .pieces: Frame.frame(0, stream: 1, [1])
        case .resets:
            Frame.headers(UInt32(2 * number + 1)) + Frame.frame(3, stream: UInt32(2 * number + 1), [0, 0, 0, 8])
        case .windowUpdates: Frame.frame(8, [0, 0, 0, 1])
        case .unknown: Frame.frame(0x20, [1, 2, 3])
        case .goAway: Frame.frame(7, [UInt8](repeating: 0, count: 8))
        }
    }
}

/// Counts what passes.
private final class InputCounter: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private(set) var bytes = 0

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        bytes += unwrapInboundIn(data).readableBytes
        context.fireChannelRead(data)
    }
}

/// A connection of HTTP/2 as the service builds it behind TLS, all of whose requests are refused.
private struct Peer {
    let port = EmbeddedPort(all: 0)
    let channel: EmbeddedChannel
    let handler: ConnectionLimitHandler
    let library: NIOHTTP2Handler
    let input = InputCounter()
    let socket = ReadCounter()

    init() throws {
        let (_, accepted) = AsyncStream.makeStream(of: HTTPTransport.Accepted.self)
        let transport = HTTPTransport(
            { _, _, _ in },
            tls: nil,
            limiter: port.limiter,
            health: port.health,
            logger: port.log.logger
        )
        handler = ConnectionLimitHandler(port.limiter) { handler, channel in
            try transport.buildHTTP2(handler, channel, accepted)
        }
        channel = try port.connect(handler)
        try channel.writeInbound(ByteBuffer(bytes: Frame.preface))
        let pipeline = channel.pipeline.syncOperations
        library = try pipeline.handler(type: NIOHTTP2Handler.self)
        try pipeline.addHandler(input, position: .before(library))
        try pipeline.addHandler(socket, position: .first)
    }

    func send(_ bytes: [UInt8]) throws {
        try channel.writeInbound(ByteBuffer(bytes: bytes))
        channel.pipeline.read()
    }

    func received() throws -> [UInt8] {
        var bytes: [UInt8] = []
        while let data = try channel.readOutbound(as: IOData.self) {
            if case .byteBuffer(let buffer) = data { bytes += Array(buffer.readableBytesView) }
        }
        return bytes
    }

    /// The largest buffer of the library's decoder, which says nothing of it.
    var keptBytes: Int { Mirror(reflecting: library).descendant("frameDecoder").map(Peer.largestBuffer) ?? .max }

    private static func largestBuffer(in value: Any) -> Int {
        if let buffer = value as? ByteBuffer { return buffer.capacity }
        return Mirror(reflecting: value).children.map { largestBuffer(in: $0.value) }.max() ?? 0
    }
}

@Suite("Floods of HTTP/2")
struct FrameFloodTests {
    @Test("end the connection, and nothing that follows is read or kept", arguments: Flood.allCases)
    fileprivate func flood(_ flood: Flood) throws {
        let peer = try Peer()
        var number = 0
        try peer.send(flood.begin)
        while !peer.handler.isInputStopped, number < 20_000 {
            var bytes: [UInt8] = []
            while bytes.count < 4_000 {
                bytes += flood.unit(number)
                number += 1
            }
            try peer.send(bytes)
        }
        #expect(peer.handler.isInputStopped && peer.channel.isActive)
        #expect((1...65_536).contains(peer.keptBytes))
        let (bytes, reads) = (peer.input.bytes, peer.socket.reads)
        for _ in 0..<100 { try peer.send([UInt8](repeating: 0xFF, count: 4_096)) }
        #expect(peer.input.bytes == bytes && peer.socket.reads == reads)
        let sent = try peer.received()
        let goAways = sent.indices.filter { sent[$0...].starts(with: [0, 0, 8, 7, 0, 0, 0, 0, 0]) }
        #expect((1...3).contains(goAways.count), "the end is said, and not with each read")
        peer.port.loop.advanceTime(by: .seconds(2))
        #expect(!peer.channel.isActive)
    }

    @Test("Nothing is processed after malformed HTTP/1.1 either, at the beginning or within a request")
    func malformed() throws {
        for (sent, heads) in [("", 0), (Sent.chunked, 1)] {
            let port = EmbeddedPort()
            let channel = try port.connect()
            try channel.send(sent)
            let malformed = "\u{1}\r\n\r\n"
            // Without a task for the connection, the service answers it.
            if heads == 0 {
                try channel.send(malformed)
            } else {
                #expect(throws: HTTPParserError.self) { try channel.send(malformed) }
            }
            #expect(try channel.heads() == heads)
            for _ in 0..<10 { try channel.send(String(repeating: "x", count: 4_096)) }
            #expect(try channel.heads() == 0)
        }
    }

    @Test("Frames that never end with a read leave nothing behind in the decoder")
    func unaligned() throws {
        let peer = try Peer()
        let frames = (0..<2_000).flatMap { _ in Frame.frame(0x20, [UInt8](repeating: 1, count: 1_016)) }
        for start in stride(from: 0, to: frames.count, by: 1_000) {
            try peer.send(Array(frames[start..<min(start + 1_000, frames.count)]))
        }
        #expect(!peer.handler.isInputStopped && peer.input.bytes == frames.count)
        #expect((1...16_384).contains(peer.keptBytes))
    }

    @Test("A client that acknowledges each frame is not ended")
    func acknowledgements() throws {
        var frames = FrameInputStateMachine()
        var now = NIODeadline.uptimeNanoseconds(1)
        #expect(send(Frame.preface, to: &frames, at: now) == .passOn(Frame.preface.count))
        for number in 0..<20_000 {
            now = now + .microseconds(10)
            let request =
                Frame.headers(UInt32(2 * number + 1)) + Frame.frame(0, stream: 1, [1])
                + Frame.frame(0, flags: 1, stream: 1) + Frame.frame(8, [0, 0, 0, 1])
                + Frame.frame(8, stream: 1, [0, 0, 0, 1])
            #expect(send(request, to: &frames, at: now) == .passOn(request.count))
        }
        let update = Frame.frame(8, [0, 0, 0, 1])
        var updates = 0
        while send(update, to: &frames, at: now) == .passOn(update.count) { updates += 1 }
        #expect((9_900...10_000).contains(updates))
        #expect(send(update, to: &frames, at: now + .milliseconds(10)) == .passOn(update.count))
    }

    @Test("Frames are found however they are split")
    func splits() throws {
        let bytes = Frame.preface + Frame.headers(1) + Frame.frame(0, stream: 1, [1, 2, 3]) + Frame.frame(6)
        let ends = [24, 33, 33 + 9 + 9, 33 + 18 + 12, 33 + 18 + 12 + 9]
        for first in 1..<bytes.count {
            var frames = FrameInputStateMachine()
            let now = NIODeadline.uptimeNanoseconds(1)
            let end = ends.last { $0 <= first } ?? 0
            #expect(send(Array(bytes[..<first]), to: &frames, at: now) == .passOn(end))
            #expect(send(Array(bytes[first...]), to: &frames, at: now) == .passOn(bytes.count - first))
        }
    }

    private func send(
        _ bytes: [UInt8],
        to frames: inout FrameInputStateMachine,
        at now: NIODeadline
    ) -> FrameInputStateMachine.Action {
        bytes.withUnsafeBytes { frames.received($0, at: now) }
    }
}
