import HeadroomServer
import NIOCore

/// Stands between the socket and everything else of a connection of the HTTP port: counts it in, and ends it when it
/// has taken too long or its place is needed. Before TLS, whose own way to end a connection waits for the peer.
///
/// A connection has nothing but this until its first byte comes: silent connections are cheap to accept and to close.
final class ConnectionGate: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    /// Adds the other handlers of a connection.
    typealias Build = (ConnectionGate, any Channel) throws -> Void

    private let keeper: ConnectionKeeper
    private let build: Build
    private var isBuilt = false
    private var clock: RequestClock
    /// nil before it is counted in, and once it is gone.
    private var number: Int?
    private var context: ChannelHandlerContext?
    private var timer: Scheduled<Void>?
    private var timerFiresAt = NIODeadline.distantFuture
    /// The framework has a task for it, which ends some time after the connection.
    private var hasTask = false
    /// Goes on when an answer is sent.
    var pacer: RequestPacer?

    init(_ keeper: ConnectionKeeper, build: @escaping Build) {
        self.keeper = keeper
        self.build = build
        clock = RequestClock(keeper.times)
    }

    func channelActive(context: ChannelHandlerContext) {
        self.context = context
        let network = context.remoteAddress.flatMap(PeerNetwork.init)
        number = keeper.arrive(self, from: network, on: context.eventLoop)
        clock.connected(at: context.eventLoop.now)
        schedule()
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        timer?.cancel()
        timer = nil
        pacer = nil
        self.context = nil
        leaveWhenOver()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        clock.bytesCame(at: context.eventLoop.now)
        schedule()
        if !isBuilt {
            isBuilt = true
            do {
                try build(self, context.channel)
            } catch {
                // Nothing would ever answer.
                close()
                return
            }
        }
        context.fireChannelRead(data)
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        clock.writabilityChanged(context.channel.isWritable, at: context.eventLoop.now)
        schedule()
        context.fireChannelWritabilityChanged()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if !isBuilt, case .some(ChannelEvent.inputClosed) = event as? ChannelEvent { close() }
        context.fireUserInboundEventTriggered(event)
    }

    // MARK: Requests

    /// Those whose answer the kernel does not have yet.
    var unanswered: Int { clock.unanswered }

    /// Its head came, and its last byte did not.
    var isWithinRequest: Bool { clock.isWithinRequest }

    /// - Returns: false where the request is to be refused, because all connections are busy.
    func requestBegins(asksForHealth: Bool) -> Bool {
        clock.headCame()
        guard let number, let context else { return true }
        return keeper.begin(number, asksForHealth: asksForHealth, on: context.eventLoop)
    }

    func requestEnds() {
        clock.requestEnded()
    }

    func answerIsWritten() {
        guard let context else { return }
        clock.answerWritten(at: context.eventLoop.now)
        schedule()
    }

    func answerIsSent() {
        guard let context, let number else { return }
        clock.answerSent(at: context.eventLoop.now)
        if clock.unanswered == 0 { keeper.wait(number) }
        schedule()
        pacer?.proceed()
    }

    func taskBegins() {
        hasTask = true
    }

    func taskEnds() {
        hasTask = false
        leaveWhenOver()
    }

    // MARK: The end

    /// At once, whatever is still to be sent.
    func close() {
        context?.close(promise: nil)
    }

    /// What is answered is answered to its end.
    func quiesce() {
        guard let context else { return }
        if hasTask {
            context.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
        } else if clock.unanswered == 0 {
            close()
        }
    }

    /// A connection keeps its place until its task has ended. Otherwise peers that ask and reset the connection could
    /// have any number of tasks waiting for a processor.
    private func leaveWhenOver() {
        guard context == nil, !hasTask, let number else { return }
        self.number = nil
        keeper.leave(number)
    }

    /// One timer a connection. Where it fires too early, because a deadline has moved on, it is set again.
    private func schedule() {
        guard let context, let next = clock.next, next < timerFiresAt else { return }
        timer?.cancel()
        timerFiresAt = next
        let gate = NIOLoopBound(self, eventLoop: context.eventLoop)
        timer = context.eventLoop.scheduleTask(deadline: next) { gate.value.timerFired() }
    }

    private func timerFired() {
        timer = nil
        timerFiresAt = .distantFuture
        guard let context else { return }
        let now = context.eventLoop.now
        if let reason = clock.expired(at: now) {
            keeper.turnAway(reason, on: context.eventLoop)
            close()
        } else if clock.isIdle(at: now) {
            close()
        } else {
            schedule()
        }
    }
}
