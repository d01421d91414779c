import DequeModule
import NIOCore

/// One connection: sends requests, reads replies, and keeps when each request was sent.
///
/// Starts with a handshake, AUTH if there is a token and PING, because the system also accepts connections over the
/// server's limit, which the server closes afterwards.
final class LoadConnection: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// Sends nothing after its handshake.
    let isIdle: Bool
    private let worker: LoadWorker
    private var handshake: EventLoopPromise<Void>?
    private var handshakeLine: [UInt8] = []
    /// The token until AUTH is answered.
    private var token: String?
    private var context: ChannelHandlerContext?
    private var scanner = ReplyScanner()
    private var output = ByteBuffer()
    private var reservations = RequestWriter.Reservations()
    /// When the requests in flight were sent, or due; the oldest first.
    private(set) var sentAt = Deque<UInt64>()
    private var replyCount = 0
    private var breakReason: String?
    /// Has prepared requests that are not written yet.
    var awaitsFlush = false

    var inFlight: Int { sentAt.count }

    init(worker: LoadWorker, isIdle: Bool, token: String? = nil, handshake: EventLoopPromise<Void>) {
        self.worker = worker
        self.isIdle = isIdle
        self.token = token
        self.handshake = handshake
    }

    // MARK: Sending

    func prepare(_ writer: inout RequestWriter) {
        writer.write(into: &output, reservations: &reservations)
    }

    /// - Returns: the number of COMMITs of reservations that are still open.
    func prepareCommits(_ writer: RequestWriter) -> Int {
        writer.writeCommits(into: &output, reservations: &reservations)
    }

    func noteSent(at instant: UInt64) {
        sentAt.append(instant)
    }

    func flush() {
        awaitsFlush = false
        guard let context else { return }
        context.writeAndFlush(wrapOutboundOut(output), promise: nil)
        // The buffer keeps its memory if the whole of it was written.
        output.clear()
    }

    func close() {
        context?.close(promise: nil)
    }

    // MARK: Channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if context.channel.isActive { startHandshake(context) }
    }

    func channelActive(context: ChannelHandlerContext) {
        startHandshake(context)
    }

    private func startHandshake(_ context: ChannelHandlerContext) {
        let request = token.map { "*2\r\n$4\r\nAUTH\r\n$\($0.utf8.count)\r\n\($0)\r\n" } ?? "*1\r\n$4\r\nPING\r\n"
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: request)), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data)
        if handshake != nil { return receiveHandshake(bytes) }
        let now = worker.now
        do {
            try bytes.withUnsafeReadableBytes { bytes throws(ReplyScanner.Malformed) in
                var position = 0
                while let reply = try scanner.next(in: bytes, at: &position) {
                    guard let sent = sentAt.popFirst() else {
                        throw ReplyScanner.Malformed(withoutRequest: reply)
                    }
                    replyCount += 1
                    worker.received(reply, sentAt: sent, now: now)
                }
            }
        } catch {
            fail(context, reason: "\(error)")
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        guard replyCount > 0 else { return }
        let count = replyCount
        replyCount = 0
        worker.readCompleted(on: self, replies: count)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        fail(context, reason: "\(error)")
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.context = nil
        let reason = breakReason ?? "the server closed it"
        if let handshake {
            self.handshake = nil
            handshake.fail(LoadError.refused(reason))
        } else {
            worker.lost(self, reason: reason)
        }
    }

    private func fail(_ context: ChannelHandlerContext, reason: String) {
        breakReason = breakReason ?? reason
        context.close(promise: nil)
    }

    // MARK: Handshake

    private static func refusalText(of verb: String, _ line: String) -> String {
        let advice = line.hasPrefix("-NOAUTH") ? "; name a token (HEADROOM_TOKEN, --token-file)" : ""
        return "it answered \(verb) with \(line.debugDescription)\(advice)"
    }

    private func receiveHandshake(_ bytes: ByteBuffer) {
        handshakeLine += bytes.readableBytesView.prefix(ReplyScanner.lineMaximum)
        guard let end = handshakeLine.firstIndex(of: UInt8(ascii: "\n")), let handshake else { return }
        let line = String(decoding: handshakeLine[..<end].filter { $0 != UInt8(ascii: "\r") }, as: UTF8.self)
        handshakeLine = []
        let verb = token == nil ? "PING" : "AUTH"
        // BADARG means that the service requires no token. If not, PING is refused next.
        guard line.hasPrefix("+") || token != nil && line.hasPrefix("-BADARG ") else {
            self.handshake = nil
            handshake.fail(LoadError.refused(LoadConnection.refusalText(of: verb, line)))
            close()
            return
        }
        if token != nil, let context {
            token = nil
            startHandshake(context)
            return
        }
        self.handshake = nil
        worker.add(self)
        handshake.succeed()
    }
}
