import Engine
import LineProtocol
import NIOCore
import Usage

@testable import LineServer
@testable import ServiceCore

/// The expected replies of a connection, computed in the simplest way: a list of requests that is answered from the
/// front. The subscriptions are computed anew each time, from all requests.
struct ExpectedReplies {
    private enum Entry {
        case ready(Reply, SentenceOptions = SentenceOptions())
        case waiting(DecodedRequest)
        case subscribed([UsageChannel])
        case refused(ReplyError, [UsageChannel])
        case unsubscribed([UsageChannel]?)
        case ping(EchoedBytes?)
        case hello(Int)
    }

    private var entries: [Entry] = []
    /// How many entries are answered.
    private var answered = 0
    /// The subscriptions once all accepted requests are answered.
    private var intended: Set<UserID> { intendedUsers() }
    /// The confirmed subscriptions, with the channels' names.
    private(set) var channels: [UserID: String] = [:]
    /// The version of RESP in replies.
    private(set) var version = 2
    private var versionAccepted = 2
    private(set) var acceptsRequests = true
    private var drainReason: ReplyError?
    private var isClosed = false
    private let connectionID: Int
    private let allowsWhenUnavailable: Bool
    private let subscriptionsMaximum: Int

    init(connectionID: Int, allowsWhenUnavailable: Bool, subscriptionsMaximum: Int) {
        self.connectionID = connectionID
        self.allowsWhenUnavailable = allowsWhenUnavailable
        self.subscriptionsMaximum = subscriptionsMaximum
    }

    var isEmpty: Bool { answered == entries.count }
    var isFinished: Bool { !acceptsRequests && !isClosed && isEmpty }

    func waits(_ number: Int) -> Bool {
        if case .waiting = entries[number] { true } else { false }
    }

    func isSubscription(_ number: Int) -> Bool {
        if case .waiting(.command(.subscribe)) = entries[number] { true } else { false }
    }

    /// False as soon as the peer's token has ended.
    var mayReceiveMessages: Bool { acceptsRequests && (drainReason ?? .draining) == .draining }

    /// The first reason stays, but the end of a token counts also after a shutdown has begun.
    mutating func drain(because reason: ReplyError) {
        if drainReason == nil || drainReason == .draining { drainReason = reason }
    }
    mutating func inputEnds() { acceptsRequests = false }

    mutating func close() {
        isClosed = true
        acceptsRequests = false
        answered = entries.count
        channels = [:]
    }

    /// - Returns: the request's number.
    mutating func receive(_ request: DecodedRequest) -> Int {
        entries.append(entry(request))
        return entries.count - 1
    }

    private mutating func entry(_ request: DecodedRequest) -> Entry {
        if let drainReason {
            acceptsRequests = false
            return .ready(.error(drainReason))
        }
        switch request {
        case .fatal(let error):
            acceptsRequests = false
            return .ready(.error(error))
        case .failure(let error): return .ready(.error(error))
        case .command(let command): return entry(command)
        }
    }

    private mutating func entry(_ command: Command) -> Entry {
        switch command {
        case .subscribe(let channels):
            if intended.union(channels.map(\.user)).count > subscriptionsMaximum {
                return .ready(.error(.tooManySubscriptions(subscriptionsMaximum)))
            }
            return .waiting(.command(command))
        case .unsubscribe(let channels): return .unsubscribed(channels)
        case .ping(let text): return .ping(text)
        case .quit:
            acceptsRequests = false
            return .ready(.ok)
        case _ where versionAccepted == 2 && !intended.isEmpty: return .ready(.error(.onlySubscriptions))
        case .hello where !intended.isEmpty: return .ready(.error(.helloWhileSubscribed))
        case .authenticate where !intended.isEmpty: return .ready(.error(.helloWhileSubscribed))
        case .authenticate(let credentials), .hello(_, let credentials?, _):
            guard credentials.token.text == FuzzInput.goodToken else { return .ready(.error(.wrongToken)) }
            guard case .hello(let version, _, _) = command else { return .ready(.ok) }
            versionAccepted = version ?? versionAccepted
            return .hello(versionAccepted)
        case .hello(let version, nil, _):
            versionAccepted = version ?? versionAccepted
            return .hello(versionAccepted)
        case .echo(let text): return .ready(.text(text.text))
        case .help(let verb): return .ready(.help(about: verb))
        case .info: return .ready(.lines(["a=b"]))
        case .client(.id): return .ready(.integer(connectionID))
        case .client, .select: return .ready(.ok)
        case .command: return .ready(.empty)
        default: return .waiting(.command(command))
        }
    }

    private func intendedUsers() -> Set<UserID> {
        entries.enumerated().reduce(into: []) { users, entry in
            switch entry.element {
            // The peer does not know of the refusal before its reply.
            case .refused(_, let channels) where entry.offset >= answered: users.formUnion(channels.map(\.user))
            case .waiting(.command(.subscribe(let channels))), .subscribed(let channels):
                users.formUnion(channels.map(\.user))
            case .unsubscribed(let channels?): users.subtract(channels.map(\.user))
            case .unsubscribed(nil): users.removeAll()
            default: break
            }
        }
    }

    mutating func complete(_ number: Int, _ outcome: Outcome) {
        guard case .waiting(.command(let command)) = entries[number] else { return }
        entries[number] =
            switch (command, outcome) {
            case (.subscribe(let channels), .failure(let error)): .refused(ReplyError(error), channels)
            case (.subscribe(let channels), _): .subscribed(channels)
            case (.withSentences(let inner, let sentences), _):
                .ready(reply(to: inner, outcome, with: sentences), sentences)
            default: .ready(reply(to: command, outcome))
            }
    }

    private func reply(
        to command: Command,
        _ outcome: Outcome,
        with sentences: SentenceOptions = SentenceOptions()
    ) -> Reply {
        let vocabulary = Words.shipped.vocabulary(for: sentences)
        let keepChatting = Phrase(.uncounted).text(in: vocabulary)
        let tryAgain = Phrase(.unreadable).text(in: vocabulary)
        switch outcome {
        case .answer(let answer): return .answer(answer)
        case .periodUsages(let periods): return .periodUsages(periods)
        case .report(let report): return .report(report)
        case .done, .subscribed: return .ok
        case .periods, .allowances: preconditionFailure("no verb has this outcome")
        case .failure(let error):
            switch command {
            case .withParts(let inner, _): return reply(to: inner, outcome, with: sentences)
            case .consume(let user, _, _), .check(let user, _):
                if error.isOutage, allowsWhenUnavailable {
                    return .text("ALLOWED user=\(user) degraded=1 banner=\"\(keepChatting)\"")
                }
            case .usage where error.isTransient:
                var reply = ReplyError(error)
                reply.text = tryAgain
                return .error(reply)
            default: break
            }
            return .error(ReplyError(error))
        }
    }

    /// Removes the replies that are ready.
    mutating func takeReady() -> ByteBuffer {
        var output = ByteBuffer()
        while answered < entries.count, !waits(answered) {
            apply(entries[answered], &output)
            answered += 1
        }
        return output
    }

    private mutating func apply(_ entry: Entry, _ output: inout ByteBuffer) {
        switch entry {
        case .waiting: break
        case .ready(let reply, let sentences):
            reply.encode(into: &output, in: Words.shipped.vocabulary(for: sentences))
        case .refused(let error, _): Reply.error(error).encode(into: &output)
        case .hello(let version):
            self.version = version
            Reply.hello(version: version, serverVersion: "1.2.3", connectionID: connectionID).encode(into: &output)
        case .ping(let text):
            if version == 2, !channels.isEmpty {
                output.writeSubscribedPong(text)
            } else {
                (text.map { Reply.text($0.text) } ?? .pong).encode(into: &output)
            }
        case .subscribed(let added):
            for channel in added {
                channels[channel.user] = channel.name
                ChannelMessage.subscribed(channel: channel.name, count: channels.count)
                    .encode(into: &output, version: version)
            }
        case .unsubscribed(let ended): unsubscribe(ended, &output)
        }
    }

    private mutating func unsubscribe(_ ended: [UsageChannel]?, _ output: inout ByteBuffer) {
        let names = ended?.map { ($0.user, $0.name) } ?? channels.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        for (user, name) in names {
            channels[user] = nil
            ChannelMessage.unsubscribed(channel: name, count: channels.count).encode(into: &output, version: version)
        }
        if names.isEmpty {
            ChannelMessage.unsubscribed(channel: nil, count: 0).encode(into: &output, version: version)
        }
    }
}

extension ReplyError {
    fileprivate static func tooManySubscriptions(_ maximum: Int) -> ReplyError {
        ReplyError(
            code: .badArg,
            text: "too many subscriptions; a connection may have \(maximum), subscriptions-maximum sets it"
        )
    }
}
