import DequeModule
import Engine
import LineProtocol
import NIOCore
import Usage

/// One connection's requests and replies: which slot a request's reply belongs in, which replies may go out now, and
/// when the connection is over. Sans-IO; `ConnectionHandler` runs what it returns, and sends the bytes that gather here.
///
/// Replies leave in the order of their requests, each exactly once, however the store's answers come back. The first
/// one's answer, which nearly every answer is, becomes bytes at once; only one that comes too early is kept until then.
struct ConnectionStateMachine {
    private enum State: Equatable {
        /// Can transition to: draining, answering, closed.
        case open
        /// The service is shutting down, or the peer's token is no good any more: what comes now is refused, for
        /// `drainReason`. Can transition to: answering, closed.
        case draining
        /// Nothing more is read; what is under way is answered, then the connection closes. Can transition to: closed.
        case answering
        /// Final.
        case closed
    }

    private enum Slot {
        /// Boxed, because few come before their turn: nearly all slots wait, are taken, and would be moved about at the
        /// size of an answer.
        indirect case ready(Reply)
        /// Changes what is subscribed to when its turn comes, and its reply says how.
        indirect case change(Subscriptions.Change)
        /// Waits for the store.
        case waiting(Purpose)

        var isWaiting: Bool {
            if case .waiting = self { true } else { false }
        }
    }

    /// What a request is for, where that decides what it is told when the store cannot answer.
    enum Purpose: Equatable {
        /// May this user's message be sent?
        case gate(UserID)
        /// Usage, to be shown to a person.
        case reading
        /// To be told of changes.
        case subscribing([UsageChannel])
        case other
    }

    private var state = State.open
    private var slots: Deque<Slot> = []
    /// Number of the slot at the front of `slots`.
    private var firstSlot: UInt64 = 0
    /// Replies that may go out, as bytes.
    private var output = ByteBuffer()
    private var subscriptions: Subscriptions
    private var drainReason = ReplyError.draining
    /// Whose token the peer brought; nil before it brought one.
    private(set) var identity: Identity?
    private let connectionID: Int
    private let slotsMaximum: Int
    private let allowsWhenUnavailable: Bool

    /// - Parameters:
    ///   - connectionID: what `HELLO` tells the peer.
    ///   - slotsMaximum: requests under way after which nothing more is taken in until one is answered.
    ///   - allowsWhenUnavailable: answer that a message may be sent, uncounted, when the database is away.
    ///   - subscriptionsMaximum: users that may be subscribed to at a time.
    init(connectionID: Int, slotsMaximum: Int, allowsWhenUnavailable: Bool, subscriptionsMaximum: Int) {
        subscriptions = Subscriptions(maximum: subscriptionsMaximum)
        self.connectionID = connectionID
        self.slotsMaximum = slotsMaximum
        self.allowsWhenUnavailable = allowsWhenUnavailable
    }

    /// What a connection answers by itself, without the store.
    struct Dependencies {
        var serverVersion: String
        var info: () -> [String]
    }

    enum RequestAction: Equatable {
        /// Ask the store; the answer belongs into that slot.
        case submit(UserID, EngineOperation, slot: UInt64)
        /// Ask the store's reader; the answer belongs into that slot.
        case read(Reading, slot: UInt64)
        /// Have these users watched; the answer belongs into that slot.
        case watch([UserID], slot: UInt64)
        /// These need not be watched any more; the reply is in its slot already.
        case unwatch([UserID])
        /// See whose these are, and `conclude` before anything else is received; `hello` is the RESP version that the
        /// peer asked for by the way.
        case authenticate(Credentials, hello: Int?)
        /// The reply is in its slot already.
        case replied
    }

    /// Requests whose replies are long, as those of HELP, would else gather more output than a peer that reads slowly may
    /// have, and keep the event loop from the other connections meanwhile.
    private static let outputBytesBeforeMore = 32_768

    /// Whether another request may be decoded.
    var takesRequests: Bool {
        switch state {
        case .open, .draining:
            slots.count < slotsMaximum && output.readableBytes < ConnectionStateMachine.outputBytesBeforeMore
        case .answering, .closed: false
        }
    }

    /// There are no requests that are not answered yet.
    var isIdle: Bool { slots.isEmpty && output.readableBytes == 0 }

    /// The peer says nothing because it listens.
    var isSubscribed: Bool { subscriptions.isAny }

    /// Nothing is left to answer, and nothing more will be asked.
    var isFinished: Bool { state == .answering && isIdle }

    mutating func receive(
        _ request: DecodedRequest,
        _ dependencies: Dependencies,
        wasArray: Bool = false
    ) -> RequestAction {
        if state == .draining {
            // The last reply: whatever follows it on the wire was not accepted.
            state = .answering
            return reply(.error(drainReason))
        }
        switch request {
        case .command(.echo(let text)) where wasArray && !subscriptions.restrictsVerbs: return reply(.bulk(text))
        case .command(.info) where wasArray && !subscriptions.restrictsVerbs:
            return reply(.bulk(ServerInfo.bulk(dependencies.info())))
        case .command(let command):
            return perform(command, dependencies)
        case .failure(let error):
            return reply(.error(error))
        case .fatal(let error):
            state = .answering
            return reply(.error(error))
        }
    }

    private mutating func perform(_ command: Command, _ dependencies: Dependencies) -> RequestAction {
        subscriptions.isAny ? performAmongSubscriptions(command, dependencies) : answer(command, dependencies)
    }

    private mutating func performAmongSubscriptions(
        _ command: Command,
        _ dependencies: Dependencies
    ) -> RequestAction {
        switch command {
        case .ping(let text):
            slots.append(.change(.ping(text)))
            return .replied
        case .subscribe, .unsubscribe, .quit: return answer(command, dependencies)
        case _ where subscriptions.restrictsVerbs: return reply(.error(.onlySubscriptions))
        case .hello where subscriptions.isAnyIntended, .authenticate where subscriptions.isAnyIntended:
            return reply(.error(.helloWhileSubscribed))
        default: return answer(command, dependencies)
        }
    }

    private mutating func unsubscribe(_ channels: [UsageChannel]?) -> RequestAction {
        let users = subscriptions.dismiss(channels)
        slots.append(.change(.unsubscribed(channels)))
        return .unwatch(users)
    }

    private mutating func subscribe(_ channels: [UsageChannel]) -> RequestAction {
        if let error = subscriptions.accept(channels) { return reply(.error(error)) }
        return .watch(channels.map(\.user), slot: waitingSlot(.subscribing(channels)))
    }

    private mutating func answer(_ command: Command, _ dependencies: Dependencies) -> RequestAction {
        switch command {
        case .consume(let user, let messages, let key): submit(user, .consume(messages, key: key), .gate(user))
        case .reserve(let user, let messages, let key, let ttlSeconds):
            submit(user, .reserve(messages, key: key, ttlSeconds: ttlSeconds))
        case .commit(let user, let key): submit(user, .commit(key))
        case .release(let user, let key): submit(user, .release(key))
        case .check(let user, let messages): submit(user, .check(messages), .gate(user))
        case .usage(let user, nil): submit(user, .usage, .reading)
        case .usage(let user, let period?): submit(user, .usageInPeriod(period), .reading)
        case .history(let user, let months): submit(user, .history(months))
        case .report(let period): read(.report(period ?? .open))
        case .top(let period, let count): read(.top(period ?? .open, count: count))
        case .setPlan(let change): submit(change.user, attributed(.setPlan(change)))
        case .grant(let user, let messages, let key, let reason):
            submit(user, attributed(.grant(messages, key: key, reason: reason)))
        case .resetUsage(let user, let period): submit(user, attributed(.resetUsage(period)))
        case .forget(let user): submit(user, attributed(.forget))
        case .ping(nil): reply(.pong)
        case .ping(let text?), .echo(let text): reply(.text(text))
        case .help(let verb): reply(.help(about: verb))
        case .info: reply(.lines(dependencies.info()))
        case .hello(let version, let credentials?): .authenticate(credentials, hello: version)
        case .hello(let version, nil): hello(version, dependencies)
        case .authenticate(let credentials): .authenticate(credentials, hello: nil)
        case .client, .select: reply(.ok)
        case .command: reply(.empty)
        case .quit: quit()
        case .subscribe(let channels): subscribe(channels)
        case .unsubscribe(let channels): unsubscribe(channels)
        }
    }

    private mutating func hello(_ version: Int, _ dependencies: Dependencies) -> RequestAction {
        let hello = Reply.hello(
            version: version,
            serverVersion: dependencies.serverVersion,
            connectionID: connectionID
        )
        guard !subscriptions.accept(version: version) else { return reply(hello) }
        slots.append(.change(.hello(version: version, hello)))
        return .replied
    }

    /// The answer to `authenticate`. A refusal changes nothing: who was somebody stays so.
    mutating func conclude(
        _ verdict: Result<Identity, ReplyError>,
        hello version: Int?,
        _ dependencies: Dependencies
    ) {
        switch verdict {
        case .failure(let error):
            _ = reply(.error(error))
        case .success(let identity):
            self.identity = identity
            _ = if let version { hello(version, dependencies) } else { reply(.ok) }
        }
    }

    /// An operator's change goes on record under the token's name, not the service's role.
    private func attributed(_ change: EngineOperation) -> EngineOperation {
        identity.map { .attributed(change, actor: $0.actor) } ?? change
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
            slots.append(.ready(reply))
        }
        return .replied
    }

    private mutating func submit(
        _ user: UserID,
        _ operation: EngineOperation,
        _ purpose: Purpose = .other
    ) -> RequestAction {
        .submit(user, operation, slot: waitingSlot(purpose))
    }

    private mutating func read(_ reading: Reading) -> RequestAction {
        .read(reading, slot: waitingSlot(.other))
    }

    private mutating func waitingSlot(_ purpose: Purpose) -> UInt64 {
        slots.append(.waiting(purpose))
        return firstSlot + UInt64(slots.count - 1)
    }

    /// Takes the store's outcome for a request: makes bytes of it, or keeps it until those before it have come.
    ///
    /// - Parameter room: gives an empty buffer for bytes to gather in; asked for where there are none yet.
    mutating func complete(slot: UInt64, _ outcome: Outcome, room: () -> ByteBuffer = { ByteBuffer() }) {
        // Closed meanwhile: there is nobody to tell.
        guard state != .closed, slot >= firstSlot else { return }
        let index = Int(slot - firstSlot)
        guard index < slots.count, case .waiting(let purpose) = slots[index] else {
            assertionFailure("a slot was completed twice")
            return
        }
        if case .subscribing(let channels) = purpose {
            slots[index] = .change(ConnectionStateMachine.change(to: channels, outcome))
            encodeReady(room)
            return
        }
        guard index == 0 else {
            slots[index] = .ready(reply(to: outcome, purpose))
            return
        }
        slots.removeFirst()
        firstSlot += 1
        if output.readableBytes == 0 { output = room() }
        if case .answer(let answer) = outcome {
            answer.encode(into: &output)
        } else {
            reply(to: outcome, purpose).encode(into: &output)
        }
        encodeReady(room)
    }

    /// Makes bytes of the replies at the front.
    private mutating func encodeReady(_ room: () -> ByteBuffer) {
        // Looked at where it stands: taking it out to see costs each waiting request a retain.
        while slots.first?.isWaiting == false, let slot = slots.popFirst() {
            firstSlot += 1
            if output.readableBytes == 0 { output = room() }
            switch slot {
            case .ready(let reply): reply.encode(into: &output)
            case .change(let change): subscriptions.settle(change, into: &output)
            case .waiting: break
            }
        }
    }

    private static func change(to channels: [UsageChannel], _ outcome: Outcome) -> Subscriptions.Change {
        switch outcome {
        case .failure(let error): .refused(ReplyError(error))
        default: .subscribed(channels)
        }
    }

    private func reply(to outcome: Outcome, _ purpose: Purpose) -> Reply {
        switch outcome {
        case .answer(let answer): .answer(answer)
        case .history(let periods): .history(periods)
        case .done: .ok
        case .report(let report): .report(report)
        case .watching: .ok
        case .periods: .error(ReplyError(EngineError(.internal, "no verb asks for all periods; please report it")))
        case .failure(let error) where error.code == .unavailable && allowsWhenUnavailable:
            if case .gate(let user) = purpose {
                .text("ALLOWED user=\(user) degraded=1")
            } else {
                .error(reply(to: error, purpose))
            }
        case .failure(let error):
            .error(reply(to: error, purpose))
        }
    }

    private func reply(to error: EngineError, _ purpose: Purpose) -> ReplyError {
        purpose == .reading ? ReplyError(reading: error) : ReplyError(error)
    }

    /// Bytes of messages in one write: a peer that takes them slowly gets the rest later, and newer.
    private static let messageBytesMaximum = 16_384

    /// A user's snapshot has changed.
    mutating func push(_ answer: Answer) {
        if state != .closed { subscriptions.push(answer) }
    }

    /// All replies that may be sent, in the order of the requests; nil when there is nothing.
    ///
    /// - Parameter withMessages: the peer takes what it is sent, so some messages of its subscriptions may follow.
    mutating func takeReplies(
        withMessages: Bool = true,
        room: () -> ByteBuffer = { ByteBuffer() }
    ) -> ByteBuffer? {
        encodeReady(room)
        if withMessages, subscriptions.hasUnsent, mayListen {
            if output.readableBytes == 0 { output = room() }
            subscriptions.writeMessages(into: &output, upToBytes: ConnectionStateMachine.messageBytesMaximum)
        }
        guard output.readableBytes > 0 else { return nil }
        defer { output = ByteBuffer() }
        return output
    }

    /// Whose token has ended hears nothing more, also in the moment before the connection closes.
    private var mayListen: Bool {
        state == .open || state == .draining && drainReason == .draining
    }

    /// The peer sends nothing more; everything complete that it sent is still answered.
    mutating func inputEnded() {
        if state != .closed { state = .answering }
    }

    /// Takes in nothing more: the service shuts down, or the peer may not go on.
    ///
    /// - Parameter reason: what the next request is told.
    mutating func drain(because reason: ReplyError = .draining) {
        guard state == .open else { return }
        state = .draining
        drainReason = reason
    }

    mutating func close() {
        state = .closed
        slots.removeAll()
        output = ByteBuffer()
    }
}

extension ReplyError {
    static let draining = ReplyError(
        code: .draining,
        text: "this instance is shutting down; nothing was counted, try another; closing"
    )

    static let onlySubscriptions = ReplyError(
        code: .err,
        text: "only SUBSCRIBE, UNSUBSCRIBE, PING and QUIT while subscribed; use another connection, or HELLO 3 first"
    )

    /// A subscription belongs to who made it.
    static let helloWhileSubscribed = ReplyError(code: .err, text: "UNSUBSCRIBE before another HELLO or AUTH")

    static let tooManyConnections = ReplyError(
        code: .overloaded,
        retryAfterMilliseconds: 1_000,
        text: "too many connections; close some or raise connections-maximum; closing"
    )

    static let tooManyConnectionsFromAddress = ReplyError(
        code: .overloaded,
        retryAfterMilliseconds: 1_000,
        text: "too many connections from this address; close some or raise connections-per-address-maximum; closing"
    )

    package init(_ error: EngineError) {
        switch error.code {
        case .unavailable: self.init(code: .unavailable, retryAfterMilliseconds: 500, text: error.message)
        case .unknown: self.init(code: .unknown, text: error.message)
        case .overloaded:
            let retry = error.retryAfterMilliseconds ?? 100
            self.init(code: .overloaded, retryAfterMilliseconds: retry, text: error.message)
        case .notFound: self.init(code: .notFound, text: error.message)
        case .badArgument: self.init(code: .badArg, text: error.message)
        case .conflict: self.init(code: .conflict, text: error.message)
        case .expired: self.init(code: .expired, text: error.message)
        case .internal: self.init(code: .internal, text: error.message)
        }
    }

    /// Of a reading of a user's usage, whose answer is shown to a person: the text is one to show where usage cannot be read.
    package init(reading error: EngineError) {
        self.init(error)
        if error.isTransient { text = Words.unreadable.other }
    }
}
