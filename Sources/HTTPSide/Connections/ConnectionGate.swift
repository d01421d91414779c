import HeadroomServer
import NIOCore

/// Stands between the socket and everything else of a connection of the HTTP port: counts it in, and ends it when it
/// has taken too long or its place is needed. Before TLS, whose own way to end a connection waits for the peer.
final class ConnectionGate: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let keeper: ConnectionKeeper
    private var clock: RequestClock
    /// nil before it is counted in, and once it is gone.
    private var number: Int?
    private var context: ChannelHandlerContext?
    private var timer: Scheduled<Void>?
    private var timerFiresAt = NIODeadline.distantFuture

    init(_ keeper: ConnectionKeeper) {
        self.keeper = keeper
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
        self.context = nil
        if let number { keeper.leave(number) }
        number = nil
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        clock.bytesCame(at: context.eventLoop.now)
        schedule()
        context.fireChannelRead(data)
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        clock.writabilityChanged(context.channel.isWritable, at: context.eventLoop.now)
        schedule()
        context.fireChannelWritabilityChanged()
    }

    // MARK: Requests

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
    }

    // MARK: The end

    /// At once, whatever is still to be sent.
    func close() {
        context?.close(promise: nil)
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
        if let reason = clock.expired(at: context.eventLoop.now) {
            keeper.turnAway(reason, on: context.eventLoop)
            close()
        } else {
            schedule()
        }
    }
}
