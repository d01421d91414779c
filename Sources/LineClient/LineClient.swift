import LineProtocol
import NIOCore
import NIOPosix
import TransportSecurity

/// A connection to a running service for subcommands of `headroom`, such as `ping` and `top`.
///
/// Why not HeadroomClient: a subcommand needs the lines of any reply, INFO and TOP included, and reports the first
/// error. HeadroomClient decodes replies, retries requests, and fails over to another service.
public struct LineClient: Sendable {
    public struct TimedOut: Error, CustomStringConvertible {
        public let description = "the service did not answer in time"
    }

    /// The connection could not be opened; the description says why.
    public struct Unreachable: Error, CustomStringConvertible {
        public let description: String
    }

    /// The service closed the connection before it answered.
    public struct ConnectionClosed: Error, CustomStringConvertible {
        public let description = "the service closed the connection"
    }

    /// A reply that begins with `-`.
    public struct ErrorReply: Error, Equatable, CustomStringConvertible {
        /// `BADARG`, `UNAVAILABLE` and so on.
        public var code: String
        public var text: String

        public init(_ line: String) {
            let words = line.dropFirst().split(separator: " ", maxSplits: 1)
            code = words.first.map(String.init) ?? ""
            text = words.count > 1 ? String(words[1]) : ""
        }

        public var description: String { text.isEmpty ? code : "\(code) \(text)" }
    }

    /// A reply as it was sent, without line ends.
    public struct Reply: Sendable, Equatable {
        /// The elements of a list, or one line.
        public var lines: [String]
        public var isList: Bool

        public var isError: Bool { !isList && lines.first?.hasPrefix("-") == true }
    }

    private let channel: any Channel
    private let replies: NIOLoopBound<LineReplyHandler>

    /// - Throws: `Unreachable` if nothing listens there, no connection is made within `timeout`, or TLS fails;
    ///   `ErrorReply` if the service refuses the token; `TimedOut` or `ConnectionClosed` if it does not answer AUTH.
    public static func connect(
        host: String,
        port: Int,
        access: ClientAccess = .open,
        timeout: Duration
    ) async throws -> LineClient {
        let client = try await open(host, port, access.tls, timeout: timeout)
        guard let token = access.token else { return client }
        do {
            _ = try await client.request("AUTH \(token.secret)", timeout: timeout)
        } catch let reply as ErrorReply where reply.code == "BADARG" {
            // The service requires no token. If the error means something else, the next request reports it.
        } catch {
            await client.close()
            throw error
        }
        return client
    }

    private static func open(
        _ host: String,
        _ port: Int,
        _ tls: ClientTLS?,
        timeout: Duration
    ) async throws -> LineClient {
        let loop = MultiThreadedEventLoopGroup.singletonMultiThreadedEventLoopGroup.next()
        let handshake = loop.makePromise(of: Void.self)
        let replies = try await loop.submit { NIOLoopBound(LineReplyHandler(), eventLoop: loop) }.get()
        if tls == nil { handshake.succeed() }
        let timer = loop.scheduleTask(in: .nanoseconds(timeout.nanoseconds)) { handshake.fail(TimedOut()) }
        defer { timer.cancel() }
        let channel: any Channel
        do {
            channel = try await ClientBootstrap(group: loop)
                .connectTimeout(.nanoseconds(timeout.nanoseconds))
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try tls?.add(to: channel.pipeline.syncOperations, host: host, handshake: handshake)
                        try channel.pipeline.syncOperations.addHandler(replies.value)
                    }
                }
                .connect(host: host, port: port)
                .get()
        } catch {
            // A promise must be completed. Without a connection, nothing else completes this one.
            handshake.fail(TimedOut())
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

    /// - Returns: the lines of the reply, without their line ends. The first line of a list, which has its count, is
    ///   left out.
    /// - Throws: as `reply`; also `ErrorReply` for a reply that begins with `-`.
    public func request(_ request: String, timeout: Duration) async throws -> [String] {
        let reply = try await reply(to: request, timeout: timeout)
        if reply.isError { throw ErrorReply(reply.lines[0]) }
        return reply.lines
    }

    /// - Parameter words: of any text; they are sent as an array.
    public func request(words: [String], timeout: Duration) async throws -> [String] {
        let array = words.map { "$\($0.utf8.count)\r\n\($0)\r\n" }.joined()
        // The service ignores the empty line that follows.
        return try await request("*\(words.count)\r\n\(array)", timeout: timeout)
    }

    /// - Throws: `TimedOut` after `timeout`, and closes the connection; if the service has closed it, the error that it
    ///   sent before, else `ConnectionClosed`.
    public func reply(to request: String, timeout: Duration) async throws -> Reply {
        let promise = channel.eventLoop.makePromise(of: Reply.self)
        channel.eventLoop.execute { [channel, replies] in
            replies.value.expect(promise)
            let timer = channel.eventLoop.scheduleTask(in: .nanoseconds(timeout.nanoseconds)) {
                promise.fail(TimedOut())
                channel.close(promise: nil)
            }
            promise.futureResult.whenComplete { _ in timer.cancel() }
            channel.writeAndFlush(ByteBuffer(string: request + "\n"), promise: nil)
        }
        return try await withTaskCancellationHandler {
            try await promise.futureResult.get()
        } onCancel: { [channel] in
            channel.close(promise: nil)
        }
    }

    public func close() async {
        try? await channel.close()
    }

    /// Sends one request on a connection of its own.
    public static func request(
        _ request: String,
        host: String,
        port: Int,
        access: ClientAccess = .open,
        timeout: Duration
    ) async throws -> [String] {
        let client = try await connect(host: host, port: port, access: access, timeout: timeout)
        do {
            let lines = try await client.request(request, timeout: timeout)
            await client.close()
            return lines
        } catch {
            await client.close()
            throw error
        }
    }
}

extension Duration {
    fileprivate var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}
