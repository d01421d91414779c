import DequeModule
import NIOCore
import NIOPosix

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
    public struct Refusal: Error, Equatable, CustomStringConvertible {
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

    /// - Throws: `Unreachable` when nothing listens there, or not within `timeout`.
    public static func connect(to address: ListenAddress, timeout: Duration) async throws -> LineClient {
        let channel: any Channel
        do {
            channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
                .connectTimeout(.nanoseconds(timeout.nanoseconds))
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(ReplyHandler())
                    }
                }
                .connect(host: address.host, port: address.port)
                .get()
        } catch let error as NIOConnectionError {
            throw Unreachable(
                description: error.connectionErrors.first.map { "\($0.error)" } ?? "no machine of that name is known"
            )
        }
        let replies = try await channel.eventLoop.submit {
            NIOLoopBound(
                try channel.pipeline.syncOperations.handler(type: ReplyHandler.self),
                eventLoop: channel.eventLoop
            )
        }.get()
        return LineClient(channel: channel, replies: replies)
    }

    /// Asks one question.
    ///
    /// - Returns: the lines of the answer, without their line ends; of a list, those after its count.
    /// - Throws: `NoAnswer` after `timeout` and `Ended` when the connection ends, after both of which it is closed;
    ///   `Refusal` for an answer that begins with `-`.
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
        if lines.count == 1, lines[0].hasPrefix("-") { throw Refusal(lines[0]) }
        return lines
    }

    public func close() async {
        try? await channel.close()
    }

    /// Asks one question on a connection of its own.
    public static func ask(
        _ request: String,
        at address: ListenAddress,
        timeout: Duration
    ) async throws -> [String] {
        let client = try await connect(to: address, timeout: timeout)
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
    private var lines: [String] = []
    /// Of the list that is being read; nil between replies.
    private var missing: Int?
    private var isOver = false

    func expect(_ promise: EventLoopPromise<[String]>) {
        if isOver { promise.fail(LineClient.Ended()) } else { expected.append(promise) }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        received.writeBuffer(&bytes)
        while let end = received.readableBytesView.firstIndex(of: UInt8(ascii: "\n")) {
            guard let line = received.readString(length: end + 1 - received.readerIndex) else { break }
            // CR and LF are one Character.
            take(String(line.dropLast()))
        }
        received.discardReadBytes()
    }

    private func take(_ line: String) {
        if let count = missing {
            lines.append(line)
            missing = count - 1
        } else if line.first == "*", let count = Int(line.dropFirst()) {
            missing = count
        } else {
            lines = [line]
            missing = 0
        }
        guard missing == 0 else { return }
        missing = nil
        let reply = lines
        lines = []
        expected.popFirst()?.succeed(reply)
    }

    func channelInactive(context: ChannelHandlerContext) {
        isOver = true
        while let promise = expected.popFirst() { promise.fail(LineClient.Ended()) }
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        while let promise = expected.popFirst() { promise.fail(error) }
        context.close(promise: nil)
    }
}

extension Duration {
    fileprivate var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}
