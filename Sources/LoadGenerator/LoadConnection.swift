import DequeModule
import NIOCore

/// One connection: requests out, replies in, and when which request was sent.
///
/// Begins with its token, where there is one, and a PING, so that the run starts with connections that the server really took: one that is over its limit is
/// accepted by the system first and closed then.
final class LoadConnection: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// Says nothing after its greeting.
    let isIdle: Bool
    private let worker: LoadWorker
    private var greeting: EventLoopPromise<Void>?
    private var greetingLine: [UInt8] = []
    /// Sent, or to be sent, and not answered yet.
    private var token: String?
    private var context: ChannelHandlerContext?
    private var scanner = ReplyScanner()
    private var output = ByteBuffer()
    private var held: RequestWriter.Held?
    /// When the requests in flight were sent, or due, the oldest first.
    private(set) var sentAt = Deque<UInt64>()
    private var repliesOfThisRead = 0
    private var breakReason: String?
    /// Has prepared requests in this turn of the event loop.
    var awaitsFlush = false

    var inFlight: Int { sentAt.count }

    init(worker: LoadWorker, isIdle: Bool, token: String? = nil, greeting: EventLoopPromise<Void>) {
        self.worker = worker
        self.isIdle = isIdle
        self.token = token
        self.greeting = greeting
    }

    // MARK: Sending

    func prepare(_ writer: inout RequestWriter) {
        writer.write(into: &output, held: &held)
    }

    func noteSent(at instant: UInt64) {
        sentAt.append(instant)
    }

    func flush() {
        awaitsFlush = false
        guard let context else { return }
        context.writeAndFlush(wrapOutboundOut(output), promise: nil)
        // Keeps its memory unless the system took less than all of it.
        output.clear()
    }

    func close() {
        context?.close(promise: nil)
    }

    // MARK: Channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if context.channel.isActive { greet(context) }
    }

    func channelActive(context: ChannelHandlerContext) {
        greet(context)
    }

    private func greet(_ context: ChannelHandlerContext) {
        let request = token.map { "*2\r\n$4\r\nAUTH\r\n$\($0.utf8.count)\r\n\($0)\r\n" } ?? "*1\r\n$4\r\nPING\r\n"
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: request)), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data)
        if greeting != nil { return takeGreeting(bytes) }
        let now = worker.now
        do {
            try bytes.withUnsafeReadableBytes { bytes throws(ReplyScanner.Malformed) in
                var position = 0
                while let reply = try scanner.next(in: bytes, at: &position) {
                    guard let sent = sentAt.popFirst() else {
                        throw ReplyScanner.Malformed(description: "the server sent a reply to nothing")
                    }
                    repliesOfThisRead += 1
                    worker.answered(reply, sent: sent, now: now)
                }
            }
        } catch {
            fail(context, reason: "\(error)")
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        guard repliesOfThisRead > 0 else { return }
        let count = repliesOfThisRead
        repliesOfThisRead = 0
        worker.repliesEnded(on: self, count: count)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        fail(context, reason: "\(error)")
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.context = nil
        let reason = breakReason ?? "the server closed it"
        if let greeting {
            self.greeting = nil
            greeting.fail(LoadError.refused(reason))
        } else {
            worker.lost(self, reason: reason)
        }
    }

    private func fail(_ context: ChannelHandlerContext, reason: String) {
        breakReason = breakReason ?? reason
        context.close(promise: nil)
    }

    // MARK: Greeting

    private static func refusal(of verb: String, _ line: String) -> String {
        let advice = line.hasPrefix("-NOAUTH") ? "; name a token (HEADROOM_TOKEN, --token-file)" : ""
        return "it answered \(verb) with \(line.debugDescription)\(advice)"
    }

    private func takeGreeting(_ bytes: ByteBuffer) {
        greetingLine += bytes.readableBytesView.prefix(ReplyScanner.lineMaximum)
        guard let end = greetingLine.firstIndex(of: UInt8(ascii: "\n")), let greeting else { return }
        let line = String(decoding: greetingLine[..<end].filter { $0 != UInt8(ascii: "\r") }, as: UTF8.self)
        greetingLine = []
        let verb = token == nil ? "PING" : "AUTH"
        // The service requires no token. If BADARG means something else, it refuses PING.
        guard line.hasPrefix("+") || token != nil && line.hasPrefix("-BADARG ") else {
            self.greeting = nil
            greeting.fail(LoadError.refused(LoadConnection.refusal(of: verb, line)))
            close()
            return
        }
        if token != nil, let context {
            token = nil
            greet(context)
            return
        }
        self.greeting = nil
        worker.add(self)
        greeting.succeed()
    }
}
