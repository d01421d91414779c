import DequeModule

/// Tracks the followers of each user, so that each follower gets the latest usage in spite of lost connections.
///
/// A subscription reports changes from its confirmation on, so the usage is read once after it. A change that arrives
/// during the read is newer than the subscription, and every later change arrives too: the result of the read is then
/// dropped.
struct SubscriptionStateMachine {
    enum Action: Equatable {
        /// Get a connection.
        case connect
        /// No user is followed any more.
        case disconnect
        case subscribe(UserID)
        case unsubscribe(UserID)
        /// Read the user's usage; report the result with the number.
        case read(UserID, reading: UInt64)
        case deliver(UsageStatus, to: [UInt64])
        /// End these followers' streams.
        case finish([UInt64])
    }

    private enum Link {
        /// No user is followed. Can transition to: connecting.
        case idle
        /// Can transition to: connected, idle.
        case connecting
        /// Can transition to: connecting, idle.
        case connected
    }

    private struct Followed {
        var followers: [UInt64] = []
        /// The followers without a delivery yet.
        var unserved: [UInt64] = []
        /// The service has confirmed the subscription, on the connection in use.
        var isSubscribed = false
        /// The usage that was delivered last.
        var last: UsageStatus?
        /// The read that is under way, unless a change has made it unnecessary.
        var reading: UInt64?
    }

    private var link = Link.idle
    private var users: [UserID: Followed] = [:]
    /// Users whose unsubscription is not confirmed yet. Subscribing before that could leave no subscription.
    private var unsubscribing: Set<UserID> = []
    private var lastReading: UInt64 = 0

    /// The number of users with a subscription now or soon.
    var userCount: Int { users.count + unsubscribing.count }

    func follows(_ user: UserID) -> Bool { users[user] != nil }

    mutating func added(_ follower: UInt64, of user: UserID) -> [Action] {
        let isFirst = users[user] == nil
        users[user, default: Followed()].followers.append(follower)
        if let followed = users[user], followed.isSubscribed, followed.reading == nil, let last = followed.last {
            // The latest delivery is the current usage.
            return [.deliver(last, to: [follower])]
        }
        users[user]?.unserved.append(follower)
        switch link {
        case .idle:
            link = .connecting
            return [.connect]
        case .connecting: return []
        case .connected: return isFirst && !unsubscribing.contains(user) ? [.subscribe(user)] : []
        }
    }

    mutating func removed(_ follower: UInt64, of user: UserID) -> [Action] {
        guard var followed = users[user], let index = followed.followers.firstIndex(of: follower) else { return [] }
        followed.followers.remove(at: index)
        followed.unserved.removeAll { $0 == follower }
        users[user] = followed.followers.isEmpty ? nil : followed
        if users.isEmpty {
            guard case .connected = link else { return [] }
            link = .idle
            return [.disconnect]
        }
        // An unconfirmed subscription is ended when it is confirmed.
        return followed.followers.isEmpty && followed.isSubscribed ? [unsubscribe(user)] : []
    }

    private mutating func unsubscribe(_ user: UserID) -> Action {
        unsubscribing.insert(user)
        return .unsubscribe(user)
    }

    mutating func unsubscribed(_ user: UserID) -> [Action] {
        guard unsubscribing.remove(user) != nil, users[user] != nil else { return [] }
        return [.subscribe(user)]
    }

    mutating func connected() -> [Action] {
        guard !users.isEmpty else {
            link = .idle
            return [.disconnect]
        }
        link = .connected
        unsubscribing = []
        return users.keys.sorted().map { .subscribe($0) }
    }

    /// The connection was lost, or could not be opened.
    mutating func lost() -> [Action] {
        for user in users.keys {
            users[user]?.reading = nil
            users[user]?.isSubscribed = false
        }
        unsubscribing = []
        guard !users.isEmpty else {
            link = .idle
            return []
        }
        link = .connecting
        return [.connect]
    }

    mutating func confirmed(_ user: UserID) -> [Action] {
        guard case .connected = link else { return [] }
        guard users[user] != nil else { return [unsubscribe(user)] }
        users[user]?.isSubscribed = true
        return [read(user)]
    }

    private mutating func read(_ user: UserID) -> Action {
        lastReading += 1
        users[user]?.reading = lastReading
        return .read(user, reading: lastReading)
    }

    mutating func received(_ status: UsageStatus) -> [Action] {
        users[status.user]?.reading = nil
        return deliver(status)
    }

    mutating func readCompleted(_ status: UsageStatus, reading: UInt64) -> [Action] {
        guard let followed = users[status.user], followed.reading == reading else { return [] }
        users[status.user]?.reading = nil
        return deliver(status)
    }

    /// The read got no answer.
    mutating func readFailed(_ user: UserID, reading: UInt64) -> [Action] {
        guard let followed = users[user], followed.reading == reading else { return [] }
        return [read(user)]
    }

    /// The service refuses requests about the user permanently.
    mutating func refused(_ user: UserID) -> [Action] {
        guard let followed = users.removeValue(forKey: user) else { return [] }
        guard users.isEmpty, case .connected = link else { return [.finish(followed.followers)] }
        link = .idle
        return [.finish(followed.followers), .disconnect]
    }

    /// The service refuses all requests permanently.
    mutating func refused() -> [Action] {
        let followers = users.values.flatMap(\.followers)
        users = [:]
        link = .idle
        return [.finish(followers)]
    }

    private mutating func deliver(_ status: UsageStatus) -> [Action] {
        guard let followed = users[status.user] else { return [] }
        let followers = followed.last == status ? followed.unserved : followed.followers
        users[status.user]?.last = status
        users[status.user]?.unserved = []
        return followers.isEmpty ? [] : [.deliver(status, to: followers)]
    }
}
