import Engine
import LineProtocol
import Logging
import NIOCore
import Usage

/// Runs one connection on its event loop: bytes in, requests to the loop's stage, replies out with one flush.
///
/// Reading stops while too many requests are under way or the peer does not take its replies, so that a connection's
/// memory is bounded by its settings whatever the peer does.
final class ConnectionHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = Never
    typealias OutboundOut = ByteBuffer

    /// In the loop's table; nil before the connection is counted, and where it is refused.
    private var number: Int?
    private var network: PeerNetwork?
    private let shared: LoopShared
    private var limits: ConnectionLimits
    private var machine: ConnectionStateMachine
    private var decoder: RequestDecoder
    private var timers = ConnectionTimers()
    private var timer: Scheduled<Void>?
    private var timerFiresAt = NIODeadline.distantFuture
    /// Bytes that are not decoded yet.
    private var received: ByteBuffer?
    private var context: ChannelHandlerContext?
    private var readIsHeldBack = false
    /// It has had its turn, and goes on when the others have had theirs.
    private var awaitsTurn = false
    private var inputIsClosed = false
    /// Refused, and open until the peer has read why; the connectionCounter counts it.
    private var lingersRefused = false
    private var isEnding = false
    /// What came after the end and was thrown away.
    private var discardedBytes = 0
    /// The store's watcher has heard of this connection.
    private var watches = false
    /// In the mailbox's list of connections to flush.
    var awaitsFlush = false

    init(id: Int, shared: LoopShared, limits: ConnectionLimits) {
        self.shared = shared
        self.limits = limits
        machine = ConnectionStateMachine(
            connectionID: id,
            slotsMaximum: limits.inFlightMaximum,
            allowsWhenUnavailable: limits.allowsWhenUnavailable,
            subscriptionsMaximum: limits.subscriptionsMaximum
        )
        decoder = RequestDecoder(limits: limits.request)
    }

    // MARK: Life

    func channelActive(context: ChannelHandlerContext) {
        self.context = context
        let now = NIODeadline.now()
        timers.start(at: now, limits)
        network = context.remoteAddress.flatMap(PeerNetwork.init)
        do throws(ReplyError) {
            number = try shared.connect(self, from: network)
        } catch {
            refuse(context, error)
            return
        }
        permit(&decoder, machine.identity)
        schedule(context)
        context.fireChannelActive()
    }

    /// Closing at once would make the kernel discard the line where the peer has sent something already. So the connection
    /// lingers, if few refused ones do.
    private func refuse(_ context: ChannelHandlerContext, _ error: ReplyError) {
        machine.close()
        limits.lingerMaximum = min(limits.lingerMaximum, limits.refusalLingerMaximum)
        lingersRefused = shared.connectionCounter.beginRefusal()
        guard lingersRefused else {
            // With TLS the line could only follow a handshake.
            context.triggerUserOutboundEvent(ConnectionCut(), promise: nil)
            guard context.channel.isActive else { return }
            context.writeAndFlush(wrapOutboundOut(line(error, context)), promise: nil)
            context.close(promise: nil)
            return
        }
        context.write(wrapOutboundOut(line(error, context)), promise: nil)
        end(context)
    }

    private func line(_ error: ReplyError, _ context: ChannelHandlerContext) -> ByteBuffer {
        var buffer = context.channel.allocator.buffer(capacity: 128)
        Reply.error(error).encode(into: &buffer)
        return buffer
    }

    /// Closes the connection; a refused one has had its time, and gets no more of it from TLS.
    private func close(_ context: ChannelHandlerContext) {
        if number == nil { context.triggerUserOutboundEvent(ConnectionCut(), promise: nil) }
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        timer?.cancel()
        timer = nil
        machine.close()
        received = nil
        self.context = nil
        if let identity = machine.identity { shared.access.leave(identity) }
        if lingersRefused { shared.connectionCounter.endRefusal() }
        if let number {
            if watches { shared.leave(number) }
            shared.disconnect(number, from: network)
        }
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // A reset by the peer, most often: theirs to explain.
        shared.logger.debug("connection failed", metadata: ["error": "\(error)"])
        context.close(promise: nil)
    }

    // MARK: In

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // Of a refused connection that does not linger only its end matters.
        guard number != nil || isEnding else { return }
        if timers.lingers { timers.bytesCame(at: .now(), limits) }
        var buffer = unwrapInboundIn(data)
        // Nothing that comes after the last reply is taken in. It is read all the same: see `ConnectionTimers.bytesCame`.
        if isEnding {
            discardedBytes += buffer.readableBytes
            if discardedBytes > ConnectionLimits.discardedBytesMaximum { close(context) }
            return
        }
        if received == nil {
            received = buffer
        } else {
            received?.writeBuffer(&buffer)
        }
        if awaitsTurn { return }
        if shared.turnIsOver { awaitTurn(again: false) } else { shared.takeInTurn(decode(atMost: .max)) }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        flush()
        context.fireChannelReadComplete()
    }

    func read(context: ChannelHandlerContext) {
        if number == nil || isEnding || machine.takesRequests && context.channel.isWritable && !awaitsTurn {
            context.read()
        } else {
            readIsHeldBack = true
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .some(ChannelEvent.inputClosed) = event as? ChannelEvent {
            inputIsClosed = true
            if !awaitsTurn { decode() }
            flush()
        }
        context.fireUserInboundEventTriggered(event)
    }

    /// Takes as many requests out of what was received as may be under way.
    ///
    /// - Returns: whether there was one.
    @discardableResult
    private func decode() -> Bool {
        decode(atMost: .max) > 0
    }

    /// - Returns: how many there were.
    private func decode(atMost limit: Int) -> Int {
        guard var buffer = received, let number else {
            endInput()
            return 0
        }
        received = nil
        let count = decode(&buffer, atMost: limit, from: number, &decoder, &machine)
        if count > 0 { timers.requestsCame(at: .now()) }
        if buffer.readableBytes > 0 {
            buffer.discardReadBytes()
            received = buffer
        }
        // Nothing complete is left.
        if machine.takesRequests, count < limit {
            if received != nil { requestIsIncomplete() }
            endInput()
        }
        return count
    }

    private func requestIsIncomplete() {
        guard timers.requestIsIncomplete(at: .now()), let context else { return }
        let next = timers.next(isIdle: machine.isIdle)
        if next < timerFiresAt { schedule(context) }
    }

    /// Decoder and machine are taken once for all of them, and not anew for each.
    private func decode(
        _ buffer: inout ByteBuffer,
        atMost limit: Int,
        from number: Int,
        _ decoder: inout RequestDecoder,
        _ machine: inout ConnectionStateMachine
    ) -> Int {
        var count = 0
        while count < limit, machine.takesRequests, let request = decoder.next(&buffer) {
            shared.metrics.count(request)
            count += 1
            switch machine.receive(request, shared.dependencies, wasArray: decoder.wasArray) {
            case .replied: break
            case .submit(let user, let operation, let slot):
                shared.stage(user, operation, connection: number, slot: slot)
            case .read(let reading, let slot):
                shared.read(reading, connection: number, slot: slot)
            case .watch(let users, let slot):
                watches = true
                shared.watch(users, connection: number, slot: slot)
            case .unwatch(let users):
                shared.unwatch(users, connection: number)
            case .authenticate(let credentials, let hello):
                let verdict = shared.access.authenticate(
                    credentials,
                    under: shared.policy,
                    replacing: machine.identity
                )
                machine.conclude(verdict, hello: hello, shared.dependencies)
                permit(&decoder, machine.identity)
            }
        }
        return count
    }

    /// After the peer's last byte, once everything complete is decoded: an incomplete request is never executed.
    private func endInput() {
        guard inputIsClosed else { return }
        received = nil
        machine.inputEnded()
    }

    // MARK: Access

    /// What the peer may ask from now on, and until when it has to say who it is.
    private func permit(_ decoder: inout RequestDecoder, _ identity: Identity?) {
        let permissions = identity?.permissions ?? shared.policy.permissionsWithoutToken
        if permissions.contains(.token) {
            decoder.permit(permissions, within: limits.request)
            timers.authenticated()
        } else {
            decoder.permit(permissions, within: limits.requestBeforeAuthentication)
            timers.awaitsAuthentication(from: .now(), limits)
        }
    }

    /// Tokens or the need for one have changed.
    func apply(_ policy: AccessPolicy) {
        guard let context else { return }
        if let identity = machine.identity {
            // Also one whose scopes were changed by hand: what the connection may do was settled when it came.
            if policy.tokens.identity(identity.tokenID) != identity { drain(because: .tokenEnded) }
        } else if policy.isRequired, machine.isSubscribed {
            // It would go on listening, and while it does it cannot say who it is.
            drain(because: .tokenRequiredNow)
        } else {
            permit(&decoder, nil)
            schedule(context)
        }
    }

    // MARK: Out

    /// The store's outcome for one request; `flush` follows once for all of a batch.
    func complete(slot: UInt64, _ outcome: Outcome) {
        machine.complete(slot: slot, outcome, room: shared.takeRoom)
    }

    /// A changed snapshot of a user whom the peer is subscribed to; `flush` follows.
    func push(_ answer: Answer) {
        machine.push(answer)
    }

    /// Sends the replies that are ready, takes in what was held back, and closes when everything is done.
    func flush() {
        guard let context else { return }
        // Messages of subscriptions leave a portion at a time: while the peer does not take them they stay behind, where
        // newer ones replace them.
        while writeReplies(context), context.channel.isWritable {}
        // A read may hold more than the requests that may be under way, and nothing comes after them to go on with.
        if takesMore(context), decode() {
            writeReplies(context)
            if takesMore(context) { awaitTurn(again: true) }
        }
        if machine.isFinished {
            end(context)
            return
        }
        if readIsHeldBack, machine.takesRequests, context.channel.isWritable, !awaitsTurn {
            readIsHeldBack = false
            context.read()
        }
    }

    /// Everything is answered. Closes once the replies are with the kernel: earlier it would throw away those that the
    /// peer is slow to take.
    private func end(_ context: ChannelHandlerContext) {
        guard !isEnding else { return }
        isEnding = true
        received = nil
        if readIsHeldBack {
            readIsHeldBack = false
            context.read()
        }
        // Until then the peer has the time that it has for any replies.
        timers.writability(false, at: .now(), limits)
        schedule(context)
        let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
        // An empty write is done when those before it are.
        context.writeAndFlush(wrapOutboundOut(ByteBuffer())).whenSuccess { handler.value.repliesAreSent() }
    }

    private func repliesAreSent() {
        guard let context else { return }
        let channel = context.channel
        // Closing at once could make the kernel discard what the peer has not read yet, where it sent more than we
        // took: end our side, and let the peer's end or the timer close the rest.
        channel.close(mode: inputIsClosed ? .all : .output, promise: nil)
        timers.lingers(from: .now(), limits)
        schedule(context)
    }

    private func takesMore(_ context: ChannelHandlerContext) -> Bool {
        !awaitsTurn && machine.takesRequests && (received != nil || inputIsClosed) && context.channel.isWritable
    }

    /// A few kilobytes of requests whose replies are long, or those of very many connections, keep the event loop busy for
    /// many milliseconds: after some of them the other connections are served. Nothing is read meanwhile.
    private func awaitTurn(again: Bool) {
        awaitsTurn = true
        shared.awaitTurn(self, again: again)
    }

    /// So short that a round of a thousand connections is, too.
    private static let requestsPerTurn = 16

    func takeTurn() {
        awaitsTurn = false
        guard let context else { return }
        // Where the peer does not take what it is sent, `flush` goes on once it does.
        guard context.channel.isWritable else {
            flush()
            return
        }
        if decode(atMost: ConnectionHandler.requestsPerTurn) == ConnectionHandler.requestsPerTurn {
            awaitTurn(again: true)
        }
        flush()
    }

    /// - Returns: whether there was anything to write.
    @discardableResult
    private func writeReplies(_ context: ChannelHandlerContext) -> Bool {
        guard let replies = machine.takeReplies(withMessages: context.channel.isWritable, room: shared.takeRoom)
        else { return false }
        context.writeAndFlush(wrapOutboundOut(replies), promise: nil)
        shared.returnRoom(replies)
        guard !context.channel.isWritable else { return true }
        if unsentBytes(context) > limits.outputBytesMaximum {
            shared.logger.debug("connection closed: it does not read its replies")
            context.close(promise: nil)
        }
        return true
    }

    private func unsentBytes(_ context: ChannelHandlerContext) -> Int {
        (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        // While it ends the time runs until all is sent.
        if !isEnding { timers.writability(context.channel.isWritable, at: .now(), limits) }
        schedule(context)
        if context.channel.isWritable { flush() }
        context.fireChannelWritabilityChanged()
    }

    // MARK: Time

    /// The service shuts down, or the peer may not go on: answers what was accepted, refuses what comes now, and closes
    /// what says nothing.
    func drain(because reason: ReplyError = .draining) {
        guard let context else { return }
        machine.drain(because: reason)
        // The first reason for it counts; it lingers anew once the last reply is sent.
        if !timers.lingers { timers.lingers(from: .now(), limits) }
        schedule(context)
    }

    /// One timer a connection, set to the earliest limit; when it fires too early because a limit has moved on, it is
    /// set again.
    private func schedule(_ context: ChannelHandlerContext) {
        timer?.cancel()
        let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
        timerFiresAt = timers.next(isIdle: machine.isIdle)
        timer = context.eventLoop.scheduleTask(deadline: timerFiresAt) {
            handler.value.timerFired()
        }
    }

    private func timerFired() {
        guard let context else { return }
        // Who lingers has been told everything only when the kernel has it.
        let isIdle = machine.isIdle && (!timers.lingers || unsentBytes(context) == 0)
        if let reason = timers.expired(at: .now(), isIdle: isIdle, listens: machine.isSubscribed) {
            shared.logger.debug("connection closed", metadata: ["reason": "\(reason)"])
            close(context)
        } else {
            schedule(context)
        }
    }
}
