import DequeModule
import Engine
import LineProtocol
import NIOCore
import ServiceCore
import Usage

/// The requests and replies of one connection. Does no I/O; `LineConnectionHandler` executes the actions that it
/// returns, and writes the bytes that it collects.
///
/// Each request gets exactly one reply, in the order of the requests, whatever the order of the engine's outcomes. An
/// outcome for the oldest request, as nearly all are, is encoded at once. Others wait in their slots.
struct ConnectionStateMachine {
    private enum State: Equatable {
        /// Can transition to: draining, answering, closed.
        case open
        /// The service is shutting down, or the peer's token is not valid any more: the next request is refused with
        /// `drainReason`. Can transition to: answering, closed.
        case draining
        /// No more requests are accepted. The connection ends once the accepted ones are answered. Can transition to:
        /// closed.
        case answering
        /// Final.
        case closed
    }

    private enum Slot {
        /// A reply that waits for earlier ones, with the sentences that the request wants. Boxed, because it is rare:
        /// unboxed, every slot would have its size.
        indirect case ready(Reply, SentenceOptions?)
        /// A change of subscriptions, applied when its reply is written.
        indirect case change(Subscriptions.Change)
        /// The engine executes the request.
        case waiting(FallbackReply)
        /// The slot is as `waiting`; the answer has the sentences that the request wants.
        indirect case waitingWithSentences(FallbackReply, SentenceOptions)
        /// The engine subscribes to these users.
        indirect case subscribing([UsageChannel])

        var isWaiting: Bool {
            switch self {
            case .waiting, .waitingWithSentences, .subscribing: true
            case .ready, .change: false
            }
        }
    }

    private var state = State.open
    private var slots: Deque<Slot> = []
    /// Number of the slot at the front of `slots`.
    private var firstSlot: UInt64 = 0
    /// Encoded replies that are not written yet.
    private var output = ByteBuffer()
    private var subscriptions: Subscriptions
    private var drainReason = ReplyError.draining
    /// The identity of the peer's token; nil before it authenticates.
    private(set) var identity: Identity?
    private let connectionID: Int
    private var client = ClientDescription()
    /// The HELLO whose credentials are being checked.
    private var offeredName: String?
    private let slotsMaximum: Int
    private let allowsWhenUnavailable: Bool
    private var words: CurrentWords.Reader

    /// - Parameters:
    ///   - connectionID: sent in the reply to `HELLO`.
    ///   - slotsMaximum: how many requests may be in flight.
    ///   - allowsWhenUnavailable: whether messages are allowed, uncounted, while the database cannot be reached.
    ///   - subscriptionsMaximum: how many users the connection may be subscribed to.
    ///   - words: those of answers.
    init(
        connectionID: Int,
        slotsMaximum: Int,
        allowsWhenUnavailable: Bool,
        subscriptionsMaximum: Int,
        words: CurrentWords
    ) {
        self.words = CurrentWords.Reader(words)
        subscriptions = Subscriptions(maximum: subscriptionsMaximum)
        self.connectionID = connectionID
        self.slotsMaximum = slotsMaximum
        self.allowsWhenUnavailable = allowsWhenUnavailable
    }

    /// What the replies depend on that need no engine.
    struct Dependencies {
        var serverVersion: String
        var info: () -> [String]
    }

    enum RequestAction: Equatable {
        /// Submit the operation to a lane, and complete the slot with its outcome.
        case submit(UserID, EngineOperation, slot: UInt64)
        /// Submit it to the engine's reader, and complete the slot with its outcome.
        case read(ReportQuery, slot: UInt64)
        /// Subscribe to the users, and complete the slot with the outcome.
        case subscribe([UserID], slot: UInt64)
        /// Unsubscribe from the users. The reply is ready.
        case unsubscribe([UserID])
        /// Check the credentials, and call `completeAuthentication` before the next `receive`. `hello` is the RESP
        /// version of a HELLO with credentials.
        case authenticate(Credentials, hello: Int?)
        /// Nothing to do. The reply is ready.
        case replied
    }

    /// With so much output no more requests are accepted. This limits the memory and the event loop's time of requests
    /// with long replies, such as HELP.
    private static let outputBytesMaximum = 32_768

    /// Notes the addresses of the peer and of this end, which `CLIENT INFO` shows.
    mutating func opened(peer: SocketAddress?, own: SocketAddress?) {
        client.addresses = (peer, own)
    }

    /// Whether another request may be decoded.
    var acceptsRequests: Bool {
        switch state {
        case .open, .draining:
            slots.count < slotsMaximum && output.readableBytes < ConnectionStateMachine.outputBytesMaximum
        case .answering, .closed: false
        }
    }

    /// All requests are answered, and the replies taken.
    var isIdle: Bool { slots.isEmpty && output.readableBytes == 0 }

    /// The connection has subscriptions: its peer may be silent.
    var isSubscribed: Bool { subscriptions.isSubscribed }

    /// All requests are answered, and no more are accepted.
    var isFinished: Bool { state == .answering && isIdle }

    mutating func receive(
        _ request: DecodedRequest,
        _ dependencies: Dependencies,
        wasArray: Bool = false
    ) -> RequestAction {
        if state == .draining {
            // The last reply: no later request is accepted.
            state = .answering
            return reply(.error(drainReason))
        }
        switch request {
        case .command(.echo(let text)) where !subscriptions.restrictsVerbs:
            return reply(text.reply(toArray: wasArray))
        case .command(.info) where wasArray && !subscriptions.restrictsVerbs:
            return reply(.bulk(EchoedBytes(ServerInfo.bulk(dependencies.info()))))
        case .command(.ping(let text)):
            return ping(text, wasArray: wasArray)
        case .command(let command):
            return perform(command, dependencies)
        case .failure(let error):
            return reply(.error(error))
        case .fatal(let error):
            state = .answering
            return reply(.error(error))
        }
    }

    private mutating func ping(_ text: EchoedBytes?, wasArray: Bool) -> RequestAction {
        let pong = text.map { $0.reply(toArray: wasArray) } ?? .pong
        guard subscriptions.isSubscribed else { return reply(pong) }
        slots.append(.change(.ping(text, pong)))
        return .replied
    }

    private mutating func perform(_ command: Command, _ dependencies: Dependencies) -> RequestAction {
        subscriptions.isSubscribed ? performWhileSubscribed(command, dependencies) : answer(command, dependencies)
    }

    private mutating func performWhileSubscribed(
        _ command: Command,
        _ dependencies: Dependencies
    ) -> RequestAction {
        switch command {
        case .subscribe, .unsubscribe, .quit: return answer(command, dependencies)
        case _ where subscriptions.restrictsVerbs: return reply(.error(.onlySubscriptions))
        case .hello where subscriptions.willBeSubscribed, .authenticate where subscriptions.willBeSubscribed:
            return reply(.error(.helloWhileSubscribed))
        default: return answer(command, dependencies)
        }
    }

    private mutating func unsubscribe(_ channels: [UsageChannel]?) -> RequestAction {
        let users = subscriptions.unsubscribe(from: channels)
        slots.append(.change(.unsubscribed(channels)))
        return .unsubscribe(users)
    }

    private mutating func subscribe(_ channels: [UsageChannel]) -> RequestAction {
        if let error = subscriptions.subscribe(to: channels) { return reply(.error(error)) }
        return .subscribe(channels.map(\.user), slot: append(.subscribing(channels)))
    }

    private mutating func answer(_ command: Command, _ dependencies: Dependencies) -> RequestAction {
        switch EngineCall(command, by: identity) {
        case .operation(let user, let operation, let fallback)?:
            if let sentences = command.sentences {
                .submit(user, operation, slot: append(.waitingWithSentences(fallback, sentences)))
            } else {
                .submit(user, operation, slot: append(.waiting(fallback)))
            }
        case .report(let query)?: .read(query, slot: append(.waiting(.other)))
        case nil: answerHere(command, dependencies)
        }
    }

    /// Commands that need no engine, and subscriptions.
    private mutating func answerHere(_ command: Command, _ dependencies: Dependencies) -> RequestAction {
        switch command {
        case .help(let verb): reply(.help(about: verb))
        case .info: reply(.lines(dependencies.info()))
        case .hello(let version, let credentials, let name):
            hello(version ?? subscriptions.intendedVersion, credentials, name, dependencies)
        case .authenticate(let credentials): .authenticate(credentials, hello: nil)
        case .client(let request): reply(about: request)
        case .select: reply(.ok)
        case .command(.descriptions): reply(.empty)
        case .command(.count): reply(.integer(Verb.allCases.count))
        case .command(.names): reply(.lines(Verb.allCases.map(\.rawValue)))
        case .quit: quit()
        case .subscribe(let channels): subscribe(channels)
        case .unsubscribe(let channels): unsubscribe(channels)
        default: preconditionFailure("EngineCall has the other commands")
        }
    }

    private mutating func reply(about request: ClientRequest) -> RequestAction {
        reply(
            client.reply(
                to: request,
                id: connectionID,
                version: subscriptions.intendedVersion,
                user: identity?.name,
                subscriptions: subscriptions.count
            )
        )
    }

    private mutating func hello(
        _ version: Int,
        _ credentials: Credentials?,
        _ name: String?,
        _ dependencies: Dependencies
    ) -> RequestAction {
        offeredName = name
        return credentials.map { .authenticate($0, hello: version) } ?? hello(version, dependencies)
    }

    private mutating func hello(_ version: Int, _ dependencies: Dependencies) -> RequestAction {
        if let offeredName { client.name = offeredName }
        let hello = Reply.hello(
            version: version,
            serverVersion: dependencies.serverVersion,
            connectionID: connectionID
        )
        guard !subscriptions.setVersion(version) else { return reply(hello) }
        slots.append(.change(.hello(version: version, hello)))
        return .replied
    }

    /// Replies to an authentication. After a failure the connection keeps its identity.
    mutating func completeAuthentication(
        _ result: Result<Identity, ReplyError>,
        hello version: Int?,
        _ dependencies: Dependencies
    ) {
        switch result {
        case .failure(let error):
            _ = reply(.error(error))
        case .success(let identity):
            self.identity = identity
            _ = if let version { hello(version, dependencies) } else { reply(.ok) }
        }
    }

    private mutating func quit() -> RequestAction {
        state = .answering
        return reply(.ok)
    }

    private mutating func reply(_ reply: Reply) -> RequestAction {
        if slots.isEmpty {
            firstSlot += 1
            reply.encode(into: &output)
        } else {
            slots.append(.ready(reply, nil))
        }
        return .replied
    }

    /// - Returns: the number of the slot.
    private mutating func append(_ slot: Slot) -> UInt64 {
        slots.append(slot)
        return firstSlot + UInt64(slots.count - 1)
    }

    /// Encodes the reply to a request, or keeps it until the earlier requests are answered.
    ///
    /// - Parameter newBuffer: returns an empty buffer for encoded replies; called where there are none yet.
    mutating func complete(slot: UInt64, _ outcome: Outcome, newBuffer: () -> ByteBuffer = { ByteBuffer() }) {
        // A closed connection has no peer to reply to.
        guard state != .closed, slot >= firstSlot else { return }
        let index = Int(slot - firstSlot)
        guard index < slots.count else { return assertionFailure("there is no slot for an outcome") }
        let fallback: FallbackReply
        let sentences: SentenceOptions?
        switch slots[index] {
        case .waiting(let waiting): (fallback, sentences) = (waiting, nil)
        case .waitingWithSentences(let waiting, let named): (fallback, sentences) = (waiting, named)
        case .ready, .change, .subscribing: return completeSubscription(index, outcome, newBuffer)
        }
        let vocabulary = words.vocabulary(for: sentences)
        guard index == 0 else {
            slots[index] = .ready(reply(to: outcome, fallback, vocabulary), sentences)
            return
        }
        removeFirst(newBuffer)
        reply(to: outcome, fallback, vocabulary).encode(into: &output, in: vocabulary)
        encodeReady(newBuffer)
    }

    /// Encodes an answer as the method above does, for the oldest request, as nearly all are, without a copy.
    mutating func complete(slot: UInt64, _ answer: Answer, newBuffer: () -> ByteBuffer = { ByteBuffer() }) {
        guard state != .closed, slot == firstSlot, !slots.isEmpty, case .waiting = slots[0] else {
            return complete(slot: slot, .answer(answer), newBuffer: newBuffer)
        }
        removeFirst(newBuffer)
        answer.encode(into: &output, in: words.vocabulary(for: nil))
        encodeReady(newBuffer)
    }

    @discardableResult
    private mutating func removeFirst(_ newBuffer: () -> ByteBuffer) -> Slot {
        firstSlot += 1
        if output.readableBytes == 0 { output = newBuffer() }
        return slots.removeFirst()
    }

    private mutating func completeSubscription(_ index: Int, _ outcome: Outcome, _ newBuffer: () -> ByteBuffer) {
        guard case .subscribing(let channels) = slots[index] else {
            return assertionFailure("a slot was completed twice")
        }
        slots[index] = .change(ConnectionStateMachine.change(to: channels, outcome))
        encodeReady(newBuffer)
    }

    /// Encodes the replies at the front of the queue.
    private mutating func encodeReady(_ newBuffer: () -> ByteBuffer) {
        // The slot is checked in place: removing it first would retain each waiting request.
        while slots.first?.isWaiting == false {
            switch removeFirst(newBuffer) {
            case .ready(let reply, let sentences):
                reply.encode(into: &output, in: words.vocabulary(for: sentences))
            case .change(let change): subscriptions.apply(change, into: &output)
            case .waiting, .waitingWithSentences, .subscribing: break
            }
        }
    }

    private static func change(to channels: [UsageChannel], _ outcome: Outcome) -> Subscriptions.Change {
        switch outcome {
        case .failure(let error): .refused(ReplyError(error))
        default: .subscribed(channels)
        }
    }

    private func reply(to outcome: Outcome, _ fallback: FallbackReply, _ vocabulary: Vocabulary) -> Reply {
        switch outcome {
        case .answer(let answer): .answer(answer)
        case .periodUsages(let periods): .periodUsages(periods)
        case .allowances(let period, let allowances): .allowances(period, allowances)
        case .done: .ok
        case .report(let report): .report(report)
        case .subscribed: .ok
        case .periods:
            .error(ReplyError(EngineError(.internal, "no verb has this outcome; please report it")))
        case .failure(let error):
            switch fallback.answer(to: error, allowsWhenUnavailable: allowsWhenUnavailable, in: vocabulary) {
            case .success(let answer): .uncounted(answer)
            case .failure(let error): .error(error)
            }
        }
    }

    /// The most bytes of messages in one write. A slow peer gets the others later, replaced by newer ones.
    private static let messageBytesMaximum = 16_384

    /// Queues a message about a user's changed usage snapshot.
    mutating func push(_ answer: Answer) {
        if state != .closed { subscriptions.push(answer) }
    }

    /// Removes all replies that are ready, in the order of the requests; nil when there are none.
    ///
    /// - Parameter withMessages: append some messages of subscriptions. False while the peer does not read its replies.
    mutating func takeReplies(
        withMessages: Bool = true,
        newBuffer: () -> ByteBuffer = { ByteBuffer() }
    ) -> ByteBuffer? {
        encodeReady(newBuffer)
        if withMessages, subscriptions.hasUnsent, mayReceiveMessages {
            if output.readableBytes == 0 { output = newBuffer() }
            subscriptions.writeMessages(
                into: &output,
                in: words.vocabulary(for: nil),
                upToBytes: ConnectionStateMachine.messageBytesMaximum
            )
        }
        guard output.readableBytes > 0 else { return nil }
        defer { output = ByteBuffer() }
        return output
    }

    /// Whether messages may be sent: no more as soon as the peer's token has ended, before the connection closes.
    private var mayReceiveMessages: Bool {
        state == .open || state == .draining && drainReason == .draining
    }

    /// The peer has closed its side. Accepted requests are still answered.
    mutating func inputEnded() {
        if state != .closed { state = .answering }
    }

    /// Accepts no more requests, because of a shutdown, or because the peer lost its permission.
    ///
    /// - Parameter reason: the reply to the next request.
    mutating func drain(because reason: ReplyError = .draining) {
        switch state {
        case .open:
            state = .draining
            drainReason = reason
        // The token may end while the service shuts down; its peer may not receive messages any more.
        case .draining: if reason != .draining { drainReason = reason }
        case .answering, .closed: break
        }
    }

    mutating func close() {
        state = .closed
        slots.removeAll()
        output = ByteBuffer()
    }
}
