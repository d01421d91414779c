import DequeModule
import LineProtocol
import NIOCore
import Usage

/// What one connection is subscribed to, and what it has not been told yet. Sans-IO; part of `ConnectionStateMachine`.
///
/// A change of subscriptions is accepted when its request comes, and takes effect when its reply's turn has come: the
/// counts in confirmations, and what is pushed after them, then follow the order of the requests. Messages end at once when
/// somebody is not to be told of any more: from then on nobody watches for it.
///
/// A peer that is slow to read is told the newest snapshot of each user once, however often that changed meanwhile: what
/// waits is bounded by the number of subscriptions.
struct Subscriptions {
    /// A request's effect, when its turn has come.
    enum Change {
        case subscribed([UsageChannel])
        case refused(ReplyError)
        /// Nil: from everything.
        case unsubscribed([UsageChannel]?)
        /// Answered by what is subscribed to when its turn comes.
        case ping(String?)
        /// Another version of RESP, from its reply on.
        case hello(version: Int, Reply)
    }

    /// Accepted, and not confirmed yet.
    private enum Accepted {
        case subscribe([UserID])
        case unsubscribe([UserID]?)
    }

    /// In force, with the channels' names.
    private var names: [UserID: String] = [:]
    /// In force once everything that was accepted is confirmed.
    private var intended: Set<UserID> = []
    private var underWay: Deque<Accepted> = []
    /// Not sent yet, the newest of each user.
    private var unsent: [UserID: Answer] = [:]
    private var unsentOrder: Deque<UserID> = []
    /// Of RESP, in force.
    private var version = 2
    /// In force once everything that was accepted is answered.
    private var intendedVersion = 2
    private var versionsUnderWay = 0
    private let maximum: Int

    init(maximum: Int) {
        self.maximum = maximum
    }

    /// The peer listens, now or as soon as what it asked for is confirmed.
    var isAny: Bool { !intended.isEmpty || !names.isEmpty }

    /// There will be some when everything that was accepted is confirmed.
    var isAnyIntended: Bool { !intended.isEmpty }

    /// In RESP2 a client library takes whatever comes for a message of its subscriptions.
    var restrictsVerbs: Bool { intendedVersion == 2 && isAnyIntended }

    // MARK: When the request comes

    /// The error when there would be too many.
    mutating func accept(_ channels: [UsageChannel]) -> ReplyError? {
        let users = channels.map(\.user)
        let added = Set(users).count { !intended.contains($0) }
        guard intended.count + added <= maximum else {
            return ReplyError(
                code: .badArg,
                text: "too many subscriptions; a connection may have \(maximum), subscriptions-maximum sets it"
            )
        }
        intended.formUnion(users)
        underWay.append(.subscribe(users))
        return nil
    }

    /// - Returns: the users who need not be watched any more.
    mutating func dismiss(_ channels: [UsageChannel]?) -> [UserID] {
        let users = channels?.map(\.user) ?? Array(intended)
        underWay.append(.unsubscribe(channels?.map(\.user)))
        intended.subtract(users)
        dropUnwatched()
        return users
    }

    /// Drops messages about users who are not watched any more: nothing newer comes that would replace them. To a peer
    /// that takes them only after it has subscribed anew they would be old news.
    private mutating func dropUnwatched() {
        guard !unsent.isEmpty else { return }
        unsent = unsent.filter { intended.contains($0.key) }
        unsentOrder.removeAll { unsent[$0] == nil }
    }

    /// - Returns: false when what comes before it has still to be confirmed in the version before it.
    mutating func accept(version: Int) -> Bool {
        intendedVersion = version
        guard underWay.isEmpty, versionsUnderWay == 0 else {
            versionsUnderWay += 1
            return false
        }
        self.version = version
        return true
    }

    // MARK: When its turn has come

    mutating func settle(_ change: Change, into output: inout ByteBuffer) {
        switch change {
        case .subscribed(let channels):
            _ = underWay.popFirst()
            for channel in channels {
                names[channel.user] = channel.name
                write(.subscribed(channel: channel.name, count: names.count), &output)
            }
        case .refused(let error):
            _ = underWay.popFirst()
            recount()
            Reply.error(error).encode(into: &output)
        case .unsubscribed(let channels?):
            _ = underWay.popFirst()
            for channel in channels {
                names[channel.user] = nil
                write(.unsubscribed(channel: channel.name, count: names.count), &output)
            }
        case .unsubscribed(nil):
            _ = underWay.popFirst()
            endAll(&output)
        case .ping(let text):
            if version == 2, !names.isEmpty {
                output.writeSubscribedPong(text)
            } else {
                (text.map { .text($0) } ?? Reply.pong).encode(into: &output)
            }
        case .hello(let version, let reply):
            versionsUnderWay -= 1
            self.version = version
            reply.encode(into: &output)
        }
    }

    /// As Redis does, with one confirmation for each, or for none.
    private mutating func endAll(_ output: inout ByteBuffer) {
        let ended = names.sorted { $0.key < $1.key }
        names.removeAll()
        for (index, entry) in ended.enumerated() {
            write(.unsubscribed(channel: entry.value, count: ended.count - index - 1), &output)
        }
        if ended.isEmpty { write(.unsubscribed(channel: nil, count: 0), &output) }
    }

    private func write(_ message: ChannelMessage, _ output: inout ByteBuffer) {
        message.encode(into: &output, version: version)
    }

    /// What a refused request wanted is not intended any more, unless another one wants it too.
    private mutating func recount() {
        intended = Set(names.keys)
        for accepted in underWay {
            switch accepted {
            case .subscribe(let users): intended.formUnion(users)
            case .unsubscribe(let users?): intended.subtract(users)
            case .unsubscribe(nil): intended.removeAll()
            }
        }
        dropUnwatched()
    }

    // MARK: Messages

    /// Takes in a changed snapshot, in place of one of the same user that has not been sent.
    mutating func push(_ answer: Answer) {
        guard intended.contains(answer.user) else { return }
        if unsent.updateValue(answer, forKey: answer.user) == nil { unsentOrder.append(answer.user) }
    }

    /// There may be messages to send.
    var hasUnsent: Bool { !unsentOrder.isEmpty }

    /// Writes messages, until there are so many bytes in `output` or none are left. What is not confirmed yet stays.
    mutating func writeMessages(into output: inout ByteBuffer, upToBytes limit: Int) {
        for _ in 0..<unsentOrder.count where output.readableBytes < limit {
            guard let user = unsentOrder.popFirst() else { return }
            if let name = names[user], let answer = unsent[user] {
                write(.usage(channel: name, answer), &output)
            } else if intended.contains(user) {
                unsentOrder.append(user)
                continue
            }
            unsent[user] = nil
        }
    }
}
