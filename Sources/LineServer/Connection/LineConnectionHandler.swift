import Engine
import LineProtocol
import Logging
import NIOCore
import ServiceCore
import Usage

/// Runs one connection on its event loop: decodes requests, gives them to the connection group, and writes the replies
/// with one flush.
///
/// `InputStateMachine` decides when to read, `ConnectionStateMachine` what to reply, and `ConnectionTimeouts` when to
/// close.
final class LineConnectionHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = Never
    typealias OutboundOut = ByteBuffer

    /// The id of the connection in its group; nil before the group admits it, and if it refuses it. Clients see another
    /// one, which is unique in the service.
    private var connectionID: Int?
    private var network: PeerNetwork?
    private let group: ConnectionGroup
    private var limits: ConnectionLimits
    private var input = InputStateMachine()
    private var machine: ConnectionStateMachine
    private var decoder: RequestDecoder
    private var timeouts = ConnectionTimeouts()
    private var timer: Scheduled<Void>?
    private var timerFiresAt = NIODeadline.distantFuture
    /// Bytes that are not decoded yet.
    private var received: ByteBuffer?
    private var context: ChannelHandlerContext?
    /// The engine may have subscriptions of this connection.
    private var hasSubscribed = false
    /// Maintained by the group: the connection is in its list of connections to flush.
    var flushIsScheduled = false

    init(id: Int, group: ConnectionGroup, limits: ConnectionLimits) {
        self.group = group
        self.limits = limits
        machine = ConnectionStateMachine(
            connectionID: id,
            slotsMaximum: limits.inFlightMaximum,
            allowsWhenUnavailable: limits.allowsWhenUnavailable,
            subscriptionsMaximum: limits.subscriptionsMaximum,
            words: group.words
        )
        decoder = RequestDecoder(limits: limits.request, namespace: limits.userNamespace)
    }

    // MARK: Begin and end

    func channelActive(context: ChannelHandlerContext) {
        self.context = context
        timeouts.start(at: .now(), limits)
        network = context.remoteAddress.flatMap(PeerNetwork.init)
        machine.opened(peer: context.remoteAddress, own: context.localAddress)
        do throws(ReplyError) {
            connectionID = try group.connect(self, from: network)
        } catch {
            refuse(context, error)
            return
        }
        input.admit()
        permit(&decoder, machine.identity)
        schedule(context)
        if group.isDraining { drain() }
        context.fireChannelActive()
    }

    /// Sends the error and closes. The connection lingers, unless too many refused ones do: if the peer has sent
    /// something, closing at once would make the kernel discard the error.
    private func refuse(_ context: ChannelHandlerContext, _ error: ReplyError) {
        machine.close()
        limits.lingerMaximum = min(limits.lingerMaximum, limits.refusalLingerMaximum)
        let mayLinger = group.connectionCounter.beginRefusal()
        if !mayLinger {
            // With TLS the error could only follow a handshake.
            context.triggerUserOutboundEvent(CloseImmediately(), promise: nil)
            guard context.channel.isActive else { return }
        }
        var line = context.channel.allocator.buffer(capacity: 128)
        Reply.error(error).encode(into: &line)
        context.writeAndFlush(wrapOutboundOut(line), promise: nil)
        if mayLinger { closeAfterReplies(context) } else { context.close(promise: nil) }
    }

    /// Closes the connection; a refused one has lingered already, and need not do so again for TLS.
    private func close(_ context: ChannelHandlerContext) {
        if connectionID == nil { context.triggerUserOutboundEvent(CloseImmediately(), promise: nil) }
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        timer?.cancel()
        timer = nil
        machine.close()
        received = nil
        self.context = nil
        if let identity = machine.identity { group.access.release(identity) }
        if let connectionID {
            if hasSubscribed { group.requests.unsubscribeAll(connection: connectionID) }
            group.disconnect(connectionID, from: network)
        } else if input.isDiscarding {
            group.connectionCounter.endRefusal()
        }
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // The error is most often a reset by the peer.
        group.logger.debug("connection failed", metadata: ["error": "\(error)"])
        context.close(promise: nil)
    }

    // MARK: In

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if timeouts.isLingering { timeouts.bytesReceived(at: .now(), limits) }
        var buffer = unwrapInboundIn(data)
        let action = input.received(bytes: buffer.readableBytes)
        switch action {
        case .drop: return
        case .close: return close(context)
        case .keep, .decode: break
        }
        if received == nil {
            received = buffer
        } else {
            received?.writeBuffer(&buffer)
        }
        guard action == .decode else { return }
        if group.turns.isFull {
            waitForTurn(hadTurn: false)
        } else {
            group.turns.count(decode(atMost: .max))
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        flush()
        context.fireChannelReadComplete()
    }

    func read(context: ChannelHandlerContext) {
        if input.read(canDecode: canDecode(context)) { context.read() }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .some(ChannelEvent.inputClosed) = event as? ChannelEvent {
            if input.closed() { decode(atMost: .max) }
            flush()
        }
        context.fireUserInboundEventTriggered(event)
    }

    private func canDecode(_ context: ChannelHandlerContext) -> Bool {
        machine.acceptsRequests && context.channel.isWritable
    }

    /// Decodes and executes received requests, as many as the state machine accepts.
    ///
    /// - Returns: how many there were.
    @discardableResult
    private func decode(atMost limit: Int) -> Int {
        guard var buffer = received, let connectionID else {
            endInput()
            return 0
        }
        received = nil
        let count = decode(&buffer, atMost: limit, from: connectionID, &decoder, &machine)
        if count > 0 { timeouts.requestsReceived(at: .now()) }
        if buffer.readableBytes > 0 {
            buffer.discardReadBytes()
            received = buffer
        }
        // No complete request is left.
        if machine.acceptsRequests, count < limit {
            if received != nil { incompleteRequestReceived() }
            endInput()
        }
        return count
    }

    private func incompleteRequestReceived() {
        guard timeouts.incompleteRequestReceived(at: .now()), let context else { return }
        if timeouts.nextDeadline < timerFiresAt { schedule(context) }
    }

    /// The decoder and the state machine are parameters so that exclusive access to them is checked once, not per
    /// request.
    private func decode(
        _ buffer: inout ByteBuffer,
        atMost limit: Int,
        from connectionID: Int,
        _ decoder: inout RequestDecoder,
        _ machine: inout ConnectionStateMachine
    ) -> Int {
        var count = 0
        while count < limit, machine.acceptsRequests, let request = decoder.next(&buffer) {
            group.metrics.count(request)
            count += 1
            switch machine.receive(request, group.dependencies, wasArray: decoder.wasArray) {
            case .replied: break
            case .submit(let user, let operation, let slot):
                group.requests.stage(user, operation, connection: connectionID, slot: slot)
            case .read(let query, let slot):
                group.requests.read(query, connection: connectionID, slot: slot)
            case .subscribe(let users, let slot):
                hasSubscribed = true
                group.requests.subscribe(users, connection: connectionID, slot: slot)
            case .unsubscribe(let users):
                group.requests.unsubscribe(users, connection: connectionID)
            case .authenticate(let credentials, let hello):
                let result = group.access.authenticate(
                    credentials,
                    under: group.policy,
                    replacing: machine.identity
                )
                machine.completeAuthentication(result, hello: hello, group.dependencies)
                permit(&decoder, machine.identity)
            }
        }
        return count
    }

    /// Ends the input once the peer has closed its side and all complete requests are decoded. An incomplete one is
    /// dropped.
    private func endInput() {
        guard input.isClosed else { return }
        received = nil
        machine.inputEnded()
    }

    // MARK: Access

    /// Applies the permissions of `identity`, nil for an unauthenticated peer.
    private func permit(_ decoder: inout RequestDecoder, _ identity: Identity?) {
        let permissions = identity?.permissions ?? group.policy.permissionsWithoutToken
        if permissions.contains(.authenticated) {
            decoder.permit(permissions, within: limits.request)
            timeouts.authenticated()
        } else {
            decoder.permit(permissions, within: limits.requestBeforeAuthentication)
            timeouts.requireAuthentication(from: .now(), limits)
        }
    }

    /// Applies changed tokens, or a changed requirement for one.
    func apply(_ policy: AccessPolicy) {
        guard let context else { return }
        if let identity = machine.identity {
            // The connection ends also when only the token's scopes have changed: it keeps the permissions that it
            // began with.
            if policy.identity(ofToken: identity.tokenID) != identity { drain(because: .tokenEnded) }
        } else if policy.isRequired, machine.isSubscribed {
            // It cannot authenticate while it is subscribed.
            drain(because: .tokenIsRequired)
        } else {
            permit(&decoder, nil)
            schedule(context)
        }
    }

    // MARK: Out

    /// Completes one request. The caller calls `flush` once for all outcomes of a batch.
    func complete(slot: UInt64, _ outcome: Outcome) {
        machine.complete(slot: slot, outcome, newBuffer: group.takeReplyBuffer)
    }

    func complete(slot: UInt64, _ answer: Answer) {
        machine.complete(slot: slot, answer, newBuffer: group.takeReplyBuffer)
    }

    /// Queues a message about a user's changed usage snapshot. The caller calls `flush`.
    func push(_ answer: Answer) {
        machine.push(answer)
    }

    /// Writes the replies that are ready, decodes requests that have waited for that, and closes the connection after
    /// its last reply.
    func flush() {
        guard let context else { return }
        // Messages of subscriptions are written in portions. What a slow peer does not read stays in the state machine,
        // where newer messages replace it.
        while writeReplies(context), context.channel.isWritable {}
        // One read may hold more requests than may be in flight, and no further read may follow it.
        if hasMore(context), decode(atMost: .max) > 0 {
            writeReplies(context)
            if hasMore(context) { waitForTurn(hadTurn: true) }
        }
        if machine.isFinished {
            closeAfterReplies(context)
        } else if input.resumeRead(canDecode: canDecode(context)) {
            context.read()
        }
    }

    /// Closes the connection once the kernel has the last reply: closing it earlier would discard replies.
    private func closeAfterReplies(_ context: ChannelHandlerContext) {
        guard !input.isDiscarding else { return }
        received = nil
        if input.discard() { context.read() }
        // The peer has the usual time to read these replies.
        timeouts.writabilityChanged(to: false, at: .now(), limits)
        schedule(context)
        let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
        // An empty write completes after those before it.
        context.writeAndFlush(wrapOutboundOut(ByteBuffer())).whenSuccess { handler.value.repliesWereSent() }
    }

    private func repliesWereSent() {
        guard let context else { return }
        // Closes our side only: if bytes of the peer are unread, closing both would make the kernel discard replies
        // that the peer has not read. The peer's end, or the timer, closes the rest.
        context.channel.close(mode: input.isClosed ? .all : .output, promise: nil)
        timeouts.linger(from: .now(), limits)
        schedule(context)
    }

    private func hasMore(_ context: ChannelHandlerContext) -> Bool {
        input.isDecoding && (received != nil || input.isClosed) && canDecode(context)
    }

    /// Lets other connections go first. Some kilobytes of requests with long replies, or the requests of very many
    /// connections, would otherwise keep the event loop busy for many milliseconds.
    private func waitForTurn(hadTurn: Bool) {
        input.waitForTurn()
        group.turns.wait(self, hadTurn: hadTurn)
    }

    /// The number is so small that a thousand connections can have their turns in some milliseconds.
    private static let requestsPerTurn = 16

    func takeTurn() {
        guard input.takeTurn(), let context else { return }
        let limit = LineConnectionHandler.requestsPerTurn
        // `flush` decodes more once the peer reads the replies.
        if context.channel.isWritable, decode(atMost: limit) == limit { waitForTurn(hadTurn: true) }
        flush()
    }

    /// - Returns: whether there was anything to write.
    @discardableResult
    private func writeReplies(_ context: ChannelHandlerContext) -> Bool {
        let isWritable = context.channel.isWritable
        guard let replies = machine.takeReplies(withMessages: isWritable, newBuffer: group.takeReplyBuffer)
        else { return false }
        context.writeAndFlush(wrapOutboundOut(replies), promise: nil)
        group.giveBackReplyBuffer(replies)
        guard !context.channel.isWritable else { return true }
        if unsentBytes(context) > limits.outputBytesMaximum {
            group.logger.debug("connection closed: it does not read its replies")
            context.close(promise: nil)
        }
        return true
    }

    private func unsentBytes(_ context: ChannelHandlerContext) -> Int {
        (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        // After the last reply, the time until all is sent stays limited.
        if !input.isDiscarding { timeouts.writabilityChanged(to: context.channel.isWritable, at: .now(), limits) }
        schedule(context)
        if context.channel.isWritable { flush() }
        context.fireChannelWritabilityChanged()
    }

    // MARK: Time

    /// Answers accepted requests, refuses the next one, and closes a connection without requests. For a shutdown, or a
    /// token that is not valid any more.
    func drain(because reason: ReplyError = .draining) {
        guard let context else { return }
        machine.drain(because: reason)
        // Only the first call counts; the connection lingers anew once its last reply is sent.
        if !timeouts.isLingering { timeouts.linger(from: .now(), limits) }
        schedule(context)
    }

    /// One timer per connection, for the earliest deadline. If a deadline has moved when it fires, it is set again.
    private func schedule(_ context: ChannelHandlerContext) {
        timer?.cancel()
        let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
        timerFiresAt = timeouts.nextDeadline
        timer = context.eventLoop.scheduleTask(deadline: timerFiresAt) {
            handler.value.timerFired()
        }
    }

    private func timerFired() {
        guard let context else { return }
        // A lingering connection waits until the kernel has all replies.
        let isIdle = machine.isIdle && (!timeouts.isLingering || unsentBytes(context) == 0)
        if let reason = timeouts.expire(at: .now(), isIdle: isIdle, isSubscribed: machine.isSubscribed) {
            group.logger.debug("connection closed", metadata: ["reason": "\(reason.rawValue)"])
            close(context)
        } else {
            schedule(context)
        }
    }
}
