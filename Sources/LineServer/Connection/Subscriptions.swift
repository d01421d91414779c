import DequeModule
import LineProtocol
import NIOCore
import Usage

/// The subscriptions of one connection, and its unsent messages. Does no I/O; part of `ConnectionStateMachine`.
///
/// A change is accepted when its request is received, and takes effect when its reply is written. So the counts in
/// confirmations, and the messages after them, follow the order of the requests. Only the end of a subscription stops
/// its messages at once, because the user is not subscribed to from then on.
///
/// Only the newest message about each user is kept for a slow peer, so that the number of subscriptions limits their
/// memory.
struct Subscriptions {
    /// The effect of a request, applied when its reply is written.
    enum Change {
        case subscribed([UsageChannel])
        case refused(ReplyError)
        /// The peer unsubscribes from these channels; nil: from all.
        case unsubscribed([UsageChannel]?)
        /// The reply, but on a RESP2 connection that has subscriptions at that time.
        case ping(EchoedBytes?, Reply)
        /// The version of RESP changes, from the reply on.
        case hello(version: Int, Reply)
    }

    /// An accepted change that is not confirmed yet.
    private enum Accepted {
        case subscribe([UserID])
        case unsubscribe([UserID]?)
    }

    /// The confirmed subscriptions, with the channels' names.
    private var names: [UserID: String] = [:]
    /// The subscriptions once all accepted changes are confirmed.
    private var intended: Set<UserID> = []
    private var unconfirmed: Deque<Accepted> = []
    /// The newest unsent message about each user.
    private var unsent: [UserID: Answer] = [:]
    private var unsentOrder: Deque<UserID> = []
    /// The version of RESP in replies.
    private var version = 2
    /// The version once all accepted requests are answered.
    private(set) var intendedVersion = 2
    private var unconfirmedVersions = 0
    private let maximum: Int

    init(maximum: Int) {
        self.maximum = maximum
    }

    /// There are subscriptions now, or once all accepted changes are confirmed.
    var isSubscribed: Bool { !intended.isEmpty || !names.isEmpty }

    /// How many there are once all accepted changes are confirmed.
    var count: Int { intended.count }

    /// There are subscriptions once all accepted changes are confirmed.
    var willBeSubscribed: Bool { !intended.isEmpty }

    /// In RESP2 a subscribed client library decodes every reply as a message.
    var restrictsVerbs: Bool { intendedVersion == 2 && willBeSubscribed }

    // MARK: When a request is received

    /// Returns an error when there would be too many subscriptions.
    mutating func subscribe(to channels: [UsageChannel]) -> ReplyError? {
        let users = channels.map(\.user)
        let added = Set(users).count { !intended.contains($0) }
        guard intended.count + added <= maximum else {
            return ReplyError(
                code: .badArg,
                text: "too many subscriptions; a connection may have \(maximum), subscriptions-maximum sets it"
            )
        }
        intended.formUnion(users)
        unconfirmed.append(.subscribe(users))
        return nil
    }

    /// - Returns: the users to unsubscribe from.
    mutating func unsubscribe(from channels: [UsageChannel]?) -> [UserID] {
        let users = channels?.map(\.user) ?? Array(intended)
        unconfirmed.append(.unsubscribe(channels?.map(\.user)))
        intended.subtract(users)
        dropUnsubscribed()
        return users
    }

    /// Drops messages about users that are not subscribed to any more. Nothing would replace these messages, so a peer
    /// that reads them after it has subscribed again would get an old snapshot.
    private mutating func dropUnsubscribed() {
        guard !unsent.isEmpty else { return }
        unsent = unsent.filter { intended.contains($0.key) }
        unsentOrder.removeAll { unsent[$0] == nil }
    }

    /// - Returns: whether the version is in force at once. Else earlier requests are to be confirmed in the old
    ///   version.
    mutating func setVersion(_ version: Int) -> Bool {
        intendedVersion = version
        guard unconfirmed.isEmpty, unconfirmedVersions == 0 else {
            unconfirmedVersions += 1
            return false
        }
        self.version = version
        return true
    }

    // MARK: When its reply is written

    mutating func apply(_ change: Change, into output: inout ByteBuffer) {
        switch change {
        case .subscribed(let channels):
            _ = unconfirmed.popFirst()
            for channel in channels {
                names[channel.user] = channel.name
                write(.subscribed(channel: channel.name, count: names.count), &output)
            }
        case .refused(let error):
            _ = unconfirmed.popFirst()
            updateIntended()
            Reply.error(error).encode(into: &output)
        case .unsubscribed(let channels?):
            _ = unconfirmed.popFirst()
            for channel in channels {
                names[channel.user] = nil
                write(.unsubscribed(channel: channel.name, count: names.count), &output)
            }
        case .unsubscribed(nil):
            _ = unconfirmed.popFirst()
            endAll(&output)
        case .ping(let text, let reply):
            if version == 2, !names.isEmpty {
                output.writeSubscribedPong(text)
            } else {
                reply.encode(into: &output)
            }
        case .hello(let version, let reply):
            unconfirmedVersions -= 1
            self.version = version
            reply.encode(into: &output)
        }
    }

    /// Writes one confirmation per subscription, or a single one if there are none, as Redis does.
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

    /// Computes `intended` anew, without the channels of a refused request.
    private mutating func updateIntended() {
        intended = Set(names.keys)
        for accepted in unconfirmed {
            switch accepted {
            case .subscribe(let users): intended.formUnion(users)
            case .unsubscribe(let users?): intended.subtract(users)
            case .unsubscribe(nil): intended.removeAll()
            }
        }
        dropUnsubscribed()
    }

    // MARK: Messages

    /// Queues a message. Replaces an unsent one about the same user.
    mutating func push(_ answer: Answer) {
        guard intended.contains(answer.user) else { return }
        if unsent.updateValue(answer, forKey: answer.user) == nil { unsentOrder.append(answer.user) }
    }

    /// There may be messages to send; some may need a confirmation first.
    var hasUnsent: Bool { !unsentOrder.isEmpty }

    /// Writes messages about confirmed subscriptions until `output` has `limit` bytes or none are left.
    mutating func writeMessages(into output: inout ByteBuffer, in vocabulary: Vocabulary, upToBytes limit: Int) {
        for _ in 0..<unsentOrder.count where output.readableBytes < limit {
            guard let user = unsentOrder.popFirst() else { return }
            if let name = names[user], let answer = unsent[user] {
                ChannelMessage.usage(channel: name, answer).encode(into: &output, version: version, in: vocabulary)
            } else if intended.contains(user) {
                unsentOrder.append(user)
                continue
            }
            unsent[user] = nil
        }
    }
}
