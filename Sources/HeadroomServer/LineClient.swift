import DequeModule
import LineProtocol
import NIOCore
import NIOPosix
import TransportSecurity

/// One connection to a service, for the commands that ask a running one.
public struct LineClient: Sendable {
    public struct NoAnswer: Error, CustomStringConvertible {
        public let description = "the service did not answer in time"
    }

    /// Nobody could be connected to; the description says why.
    public struct Unreachable: Error, CustomStringConvertible {
        public let description: String
    }

    /// The service ended the connection where an answer was due.
    public struct Ended: Error, CustomStringConvertible {
        public let description = "the service ended the connection"
    }

    /// An answer that begins with `-`.
    public struct RefusedReply: Error, Equatable, CustomStringConvertible {
        /// `BADARG`, `UNAVAILABLE` and so on.
        public var code: String
        public var text: String

        init(_ line: String) {
            let words = line.dropFirst().split(separator: " ", maxSplits: 1)
            code = words.first.map(String.init) ?? ""
            text = words.count > 1 ? String(words[1]) : ""
        }

        public var description: String { text.isEmpty ? code : "\(code) \(text)" }
    }

    private let channel: any Channel
    private let replies: NIOLoopBound<ReplyHandler>

    /// - Throws: `Unreachable` when nothing listens there, or not within `timeout`, or when TLS fails; `RefusedReply` when the
    ///   token is not taken.
    public static func connect(
        to address: ListenAddress,
        access: ClientAccess = .open,
        timeout: Duration
    ) async throws -> LineClient {
        let client = try await open(address, access.tls, timeout: timeout)
        guard let token = access.token else { return client }
        do {
            _ = try await client.ask("AUTH \(token.secret)", timeout: timeout)
        } catch let refusal as RefusedReply where refusal.code == "BADARG" {
            // Nobody needs one there. If that is not what it means, the answer to the first question says what does.
        } catch {
            await client.close()
            throw error
        }
        return client
    }

    private static func open(
        _ address: ListenAddress,
        _ tls: ClientTLS?,
        timeout: Duration
    ) async throws -> LineClient {
        let loop = MultiThreadedEventLoopGroup.singletonMultiThreadedEventLoopGroup.next()
        let handshake = loop.makePromise(of: Void.self)
        let replies = try await loop.submit { NIOLoopBound(ReplyHandler(), eventLoop: loop) }.get()
        if tls == nil { handshake.succeed() }
        let timer = loop.scheduleTask(in: .nanoseconds(timeout.nanoseconds)) { handshake.fail(NoAnswer()) }
        defer { timer.cancel() }
        let channel: any Channel
        do {
            channel = try await ClientBootstrap(group: loop)
                .connectTimeout(.nanoseconds(timeout.nanoseconds))
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try tls?.add(to: channel.pipeline.syncOperations, host: address.host, handshake: handshake)
                        try channel.pipeline.syncOperations.addHandler(replies.value)
                    }
                }
                .connect(host: address.host, port: address.port)
                .get()
        } catch {
            // Nobody else would, where there is no connection.
            handshake.fail(NoAnswer())
            throw Unreachable(
                description: """
                    \(ConnectFailure(error)); start the service (headroom serve), or name its address (--target, \
                    HEADROOM_TARGET)
                    """
            )
        }
        do {
            try await handshake.futureResult.get()
        } catch {
            channel.close(promise: nil)
            throw Unreachable(description: "\(error)")
        }
        return LineClient(channel: channel, replies: replies)
    }

    /// Asks one question.
    ///
    /// - Returns: the lines of the answer, without their line ends; of a list, those after its count.
    /// - Throws: `NoAnswer` after `timeout` and `Ended` when the connection ends, after both of which it is closed;
    ///   `RefusedReply` for an answer that begins with `-`.
    public func ask(_ request: String, timeout: Duration) async throws -> [String] {
        let promise = channel.eventLoop.makePromise(of: [String].self)
        channel.eventLoop.execute { [channel, replies] in
            replies.value.expect(promise)
            let timer = channel.eventLoop.scheduleTask(in: .nanoseconds(timeout.nanoseconds)) {
                promise.fail(NoAnswer())
                channel.close(promise: nil)
            }
            promise.futureResult.whenComplete { _ in timer.cancel() }
            channel.writeAndFlush(ByteBuffer(string: request + "\n"), promise: nil)
        }
        let lines = try await withTaskCancellationHandler {
            try await promise.futureResult.get()
        } onCancel: { [channel] in
            channel.close(promise: nil)
        }
        if lines.count == 1, lines[0].hasPrefix("-") { throw RefusedReply(lines[0]) }
        return lines
    }

    public func close() async {
        try? await channel.close()
    }

    /// Asks one question on a connection of its own.
    public static func ask(
        _ request: String,
        at address: ListenAddress,
        access: ClientAccess = .open,
        timeout: Duration
    ) async throws -> [String] {
        let client = try await connect(to: address, access: access, timeout: timeout)
        do {
            let lines = try await client.ask(request, timeout: timeout)
            await client.close()
            return lines
        } catch {
            await client.close()
            throw error
        }
    }
}

/// Puts replies together and hands them out in the order of the questions.
private final class ReplyHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private var expected: Deque<EventLoopPromise<[String]>> = []
    private var received = ByteBuffer()
    private var decoder = ReplyFrameDecoder()
    /// Why nothing can be expected any more.
    private var failure: (any Error)?

    func expect(_ promise: EventLoopPromise<[String]>) {
        if let failure { promise.fail(failure) } else { expected.append(promise) }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        received.writeBuffer(&bytes)
        do {
            while let frame = try decoder.next(in: &received) { expected.popFirst()?.succeed(lines(frame)) }
        } catch {
            fail(error)
            context.close(promise: nil)
        }
        received.discardReadBytes()
    }

    private func lines(_ frame: ReplyFrameDecoder.Frame) -> [String] {
        switch frame {
        case .single(let element): [element.line]
        case .list(let elements): elements.map(\.line)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        fail(LineClient.Ended())
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        fail(error)
        context.close(promise: nil)
    }

    private func fail(_ error: any Error) {
        failure = failure ?? error
        while let promise = expected.popFirst() { promise.fail(error) }
    }
}

extension ReplyElement {
    /// With the byte that says its kind.
    fileprivate var line: String { String(UnicodeScalar(kind.rawValue)) + text }
}

extension Duration {
    fileprivate var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}
