import NIOCore
import ServiceCore

/// The first handler of a connection of the HTTP port: registers it with the limiter, and closes it on a timeout or
/// when the limiter evicts it. Stands before TLS, because TLS waits for the peer before it closes a connection.
///
/// The other handlers are added with the first byte, so that silent connections are cheap.
final class ConnectionLimitHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = IOData
    /// Adds the other handlers of a connection.
    typealias Build = (ConnectionLimitHandler, any Channel) throws -> Void

    private let limiter: ConnectionLimiter
    private let build: Build
    private var isBuilt = false
    private(set) var isInputStopped = false
    private var isReadingStopped = false
    private var timeouts: RequestTimeoutStateMachine
    /// The connection's id with the limiter; nil before it is registered and after it is released.
    private var id: Int?
    private var network: PeerNetwork?
    /// The ids of the streams that have a task. If there are any, the connection's own id is one of them.
    private var streams: Set<Int> = []
    private var context: ChannelHandlerContext?
    private var timer: Scheduled<Void>?
    private var timerFiresAt = NIODeadline.distantFuture
    /// Hummingbird has a task for the connection, which may end after the connection.
    private var hasTask = false
    /// Passes on buffered requests after each response.
    var pacing: RequestPacingHandler?

    init(_ limiter: ConnectionLimiter, build: @escaping Build) {
        self.limiter = limiter
        self.build = build
        timeouts = RequestTimeoutStateMachine(limiter.timeouts)
    }

    func channelActive(context: ChannelHandlerContext) {
        self.context = context
        network = context.remoteAddress.flatMap(PeerNetwork.init)
        id = limiter.opened(self, from: network, on: context.eventLoop)
        timeouts.connected(at: context.eventLoop.now)
        schedule()
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        timer?.cancel()
        timer = nil
        pacing = nil
        self.context = nil
        releaseIfFinished()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if isInputStopped { return }
        timeouts.bytesReceived(at: context.eventLoop.now)
        schedule()
        if !isBuilt {
            isBuilt = true
            do {
                try build(self, context.channel)
            } catch {
                // Without handlers, nothing would ever answer.
                close()
                return
            }
        }
        context.fireChannelRead(data)
    }

    func read(context: ChannelHandlerContext) {
        if !isReadingStopped { context.read() }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        timeouts.writabilityChanged(context.channel.isWritable, at: context.eventLoop.now)
        schedule()
        context.fireChannelWritabilityChanged()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // With HTTP/2, responses need what the peer sends (window updates), and so end with it.
        if !isBuilt || timeouts.isMultiplexed, case .some(ChannelEvent.inputClosed) = event as? ChannelEvent { close() }
        context.fireUserInboundEventTriggered(event)
    }

    // MARK: Requests

    /// Requests whose response the kernel does not have yet.
    var unanswered: Int { timeouts.unanswered }

    /// A request's head has been received, and its last byte has not.
    var isWithinRequest: Bool { timeouts.isWithinRequest }

    /// - Returns: false if the request must be refused, because the maximum of connections is busy.
    func requestBegan(isHealthCheck: Bool) -> Bool {
        timeouts.headReceived()
        guard let id, let context else { return true }
        return limiter.requestBegan(id, isHealthCheck: isHealthCheck, on: context.eventLoop)
    }

    func requestEnded() {
        timeouts.requestEnded()
    }

    func responseWritten() {
        guard let context else { return }
        timeouts.responseWritten(at: context.eventLoop.now)
        schedule()
    }

    func responseSent() {
        guard let context, let id else { return }
        timeouts.responseSent(at: context.eventLoop.now)
        if timeouts.unanswered == 0 { limiter.becameIdle(id) }
        schedule()
        pacing?.proceed()
    }

    func taskStarted() {
        hasTask = true
    }

    func taskEnded() {
        hasTask = false
        releaseIfFinished()
    }

    // MARK: Streams of HTTP/2

    /// The peer has chosen HTTP/2.
    func multiplexed() {
        timeouts.multiplexed()
    }

    func streamHeadReceived() {
        timeouts.headReceived()
    }

    /// It is called once for each stream whose head was received.
    func streamEnded() {
        guard let context else { return }
        timeouts.streamEnded(at: context.eventLoop.now)
        schedule()
    }

    /// Without other requests, the connection becomes the last to be evicted, as with HTTP/1.1.
    func streamHasHealthCheck() {
        guard let id, let context, streams.isEmpty else { return }
        _ = limiter.requestBegan(id, isHealthCheck: true, on: context.eventLoop)
        limiter.becameIdle(id)
    }

    /// A stream that needs a task counts as a connection until that task has ended, so that a peer cannot have more
    /// requests answered by opening streams, or by resetting them, than by opening connections. The connection and its
    /// first stream count as one.
    ///
    /// - Returns: an id for `streamTaskEnded`; nil if the request must be refused, because the maximum is busy.
    func streamTaskStarts() -> Int? {
        guard let id, let context else { return nil }
        guard limiter.hasRoom(for: network, on: context.eventLoop) else { return nil }
        let stream = streams.isEmpty ? id : limiter.opened(self, from: network, on: context.eventLoop)
        _ = limiter.requestBegan(stream, isHealthCheck: false, on: context.eventLoop)
        streams.insert(stream)
        return stream
    }

    func streamTaskEnded(_ stream: Int) {
        streams.remove(stream)
        if let other = streams.first {
            id = other
            limiter.closed(stream)
        } else {
            id = stream
            limiter.becameIdle(stream)
            releaseIfFinished()
        }
    }

    func countOutputTimeout() {
        guard let context else { return }
        limiter.countRejection(.outputTimeout, on: context.eventLoop)
    }

    var outputTimeout: TimeAmount { limiter.timeouts.output }

    // MARK: Closing

    /// Reads nothing more, after an error of the peer that ends the connection: until it is closed, the peer could send
    /// any amount, which handlers would process or keep.
    func stopInput() {
        (isInputStopped, isReadingStopped) = (true, true)
    }

    /// Reads on and passes nothing on, which suits a connection that is closed at once better than `stopInput()`. The
    /// system resets a connection that is closed before all its bytes are read, and the peer may lose the answer then.
    func dropInput() {
        isInputStopped = true
    }

    /// Closes at once and discards unsent data.
    func close() {
        context?.close(promise: nil)
    }

    /// Ends the connection for the shutdown. An open request is answered first.
    func quiesce() {
        guard let context else { return }
        if hasTask || timeouts.isMultiplexed {
            context.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
        } else if timeouts.unanswered == 0 {
            close()
        }
    }

    /// A connection counts until its task has ended. Otherwise peers that send a request and reset the connection could
    /// pile up any number of tasks.
    private func releaseIfFinished() {
        guard context == nil, !hasTask, streams.isEmpty, let id else { return }
        self.id = nil
        limiter.closed(id)
    }

    /// One timer per connection. If it fires early, because the deadline has moved, it is set again.
    private func schedule() {
        guard let context, let next = timeouts.nextDeadline, next < timerFiresAt else { return }
        timer?.cancel()
        timerFiresAt = next
        let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
        timer = context.eventLoop.scheduleTask(deadline: next) { handler.value.timerFired() }
    }

    private func timerFired() {
        timer = nil
        timerFiresAt = .distantFuture
        guard let context else { return }
        let now = context.eventLoop.now
        if let reason = timeouts.expired(at: now) {
            limiter.countRejection(reason, on: context.eventLoop)
            close()
        } else if timeouts.isIdle(at: now) {
            close()
        } else {
            schedule()
        }
    }
}
