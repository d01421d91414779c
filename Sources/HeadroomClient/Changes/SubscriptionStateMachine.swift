import DequeModule

/// Who follows which user, and what is to be done so that each hears the newest state, whatever becomes of the
/// connection.
///
/// A subscription tells of changes from its confirmation on, so the state is read once after it. A message that comes while
/// it is being read is from after the subscription too, and whatever is newer than the message is told by another one:
/// the reading is then not needed.
struct SubscriptionStateMachine {
    enum Action: Equatable {
        /// Get a connection.
        case connect
        /// Nobody follows anybody any more.
        case disconnect
        case subscribe(UserID)
        case unsubscribe(UserID)
        /// Ask where the user stands; the number comes back with the answer.
        case read(UserID, reading: UInt64)
        case deliver(UsageStatus, to: [UInt64])
        /// The service refuses for good.
        case finish([UInt64])
    }

    private enum Link {
        /// Nobody follows anybody. Can transition to: connecting.
        case idle
        /// Can transition to: connected, idle.
        case connecting
        /// Can transition to: connecting, idle.
        case connected
    }

    private struct Followed {
        var followers: [UInt64] = []
        /// Those of them who have heard nothing yet.
        var untold: [UInt64] = []
        /// The service has confirmed the subscription, on the connection in use.
        var isSubscribed = false
        /// What was told last.
        var last: UsageStatus?
        /// The reading that is under way, unless a message has made it unnecessary.
        var reading: UInt64?
    }

    private var link = Link.idle
    private var users: [UserID: Followed] = [:]
    /// Those who are being unsubscribed from: to subscribe again before that is done could end with nothing.
    private var leaving: Set<UserID> = []
    private var lastReading: UInt64 = 0

    /// How many the service has subscriptions of, or will have.
    var userCount: Int { users.count + leaving.count }

    func follows(_ user: UserID) -> Bool { users[user] != nil }

    mutating func added(_ follower: UInt64, of user: UserID) -> [Action] {
        let isFirst = users[user] == nil
        users[user, default: Followed()].followers.append(follower)
        if let followed = users[user], followed.isSubscribed, followed.reading == nil, let last = followed.last {
            // What was told last is the state, as far as anybody knows.
            return [.deliver(last, to: [follower])]
        }
        users[user]?.untold.append(follower)
        switch link {
        case .idle:
            link = .connecting
            return [.connect]
        case .connecting: return []
        case .connected: return isFirst && !leaving.contains(user) ? [.subscribe(user)] : []
        }
    }

    mutating func removed(_ follower: UInt64, of user: UserID) -> [Action] {
        guard var followed = users[user], let index = followed.followers.firstIndex(of: follower) else { return [] }
        followed.followers.remove(at: index)
        followed.untold.removeAll { $0 == follower }
        users[user] = followed.followers.isEmpty ? nil : followed
        if users.isEmpty {
            guard case .connected = link else { return [] }
            link = .idle
            return [.disconnect]
        }
        // What is not confirmed yet is unsubscribed from when it is.
        return followed.followers.isEmpty && followed.isSubscribed ? [leave(user)] : []
    }

    private mutating func leave(_ user: UserID) -> Action {
        leaving.insert(user)
        return .unsubscribe(user)
    }

    mutating func unsubscribed(_ user: UserID) -> [Action] {
        guard leaving.remove(user) != nil, users[user] != nil else { return [] }
        return [.subscribe(user)]
    }

    mutating func connected() -> [Action] {
        guard !users.isEmpty else {
            link = .idle
            return [.disconnect]
        }
        link = .connected
        leaving = []
        return users.keys.sorted().map { .subscribe($0) }
    }

    /// The connection is lost, or could not be had.
    mutating func lost() -> [Action] {
        for user in users.keys {
            users[user]?.reading = nil
            users[user]?.isSubscribed = false
        }
        leaving = []
        guard !users.isEmpty else {
            link = .idle
            return []
        }
        link = .connecting
        return [.connect]
    }

    mutating func confirmed(_ user: UserID) -> [Action] {
        guard case .connected = link else { return [] }
        guard users[user] != nil else { return [leave(user)] }
        users[user]?.isSubscribed = true
        return [read(user)]
    }

    private mutating func read(_ user: UserID) -> Action {
        lastReading += 1
        users[user]?.reading = lastReading
        return .read(user, reading: lastReading)
    }

    mutating func told(_ status: UsageStatus) -> [Action] {
        users[status.user]?.reading = nil
        return deliver(status)
    }

    mutating func hasRead(_ status: UsageStatus, reading: UInt64) -> [Action] {
        guard let followed = users[status.user], followed.reading == reading else { return [] }
        users[status.user]?.reading = nil
        return deliver(status)
    }

    /// Nobody could say where the user stands.
    mutating func couldNotRead(_ user: UserID, reading: UInt64) -> [Action] {
        guard let followed = users[user], followed.reading == reading else { return [] }
        return [read(user)]
    }

    /// What was asked about the user is refused, and will be.
    mutating func refused(_ user: UserID) -> [Action] {
        guard let followed = users.removeValue(forKey: user) else { return [] }
        guard users.isEmpty, case .connected = link else { return [.finish(followed.followers)] }
        link = .idle
        return [.finish(followed.followers), .disconnect]
    }

    /// All that is asked is refused, and will be.
    mutating func refused() -> [Action] {
        let followers = users.values.flatMap(\.followers)
        users = [:]
        link = .idle
        return [.finish(followers)]
    }

    private mutating func deliver(_ status: UsageStatus) -> [Action] {
        guard let followed = users[status.user] else { return [] }
        let listeners = followed.last == status ? followed.untold : followed.followers
        users[status.user]?.last = status
        users[status.user]?.untold = []
        return listeners.isEmpty ? [] : [.deliver(status, to: listeners)]
    }
}
