import DequeModule
import Usage

/// The users that connections watch, and what is known of each. Sans-IO: the watcher's thread alone has it, tells it what
/// it reads, and delivers what it returns.
///
/// A user is read once for all who watch; what changed is told once to each of them.
struct WatchList {
    /// What the database said about a user.
    struct Reading: Equatable {
        var snapshot: UsageSnapshot
        /// Tells whether the user's rows were written since.
        var fingerprint: String
        /// When time alone changes the snapshot; nil for never.
        var changesAt: Instant?
    }

    private struct Watched {
        var subscribers: Set<Subscriber> = []
        /// Nil until read for the first time.
        var reading: Reading?
    }

    private var users: [UserID: Watched] = [:]
    private var bySubscriber: [Subscriber: Set<UserID>] = [:]
    /// Requests that wait for the first reading of one of their users.
    private var pending: [WatchRequest] = []
    /// Outcomes of requests for a user who cannot be read.
    private var refused: [Completion] = []
    /// Users to be read: never read yet, or changed. Some may not be watched any more.
    private var unread: Deque<UserID> = []
    private let usersMaximum: Int

    /// - Parameter usersMaximum: users watched at most, about 500 bytes each.
    init(usersMaximum: Int) {
        self.usersMaximum = usersMaximum
    }

    var isEmpty: Bool { users.isEmpty && pending.isEmpty }
    var count: Int { users.count }
    var hasPending: Bool { !pending.isEmpty }
    var hasUnread: Bool { !unread.isEmpty }

    // MARK: Who watches whom

    /// Takes in a request.
    ///
    /// - Returns: its outcome where that is known already.
    mutating func watch(_ request: WatchRequest) -> Completion? {
        let new = request.users.filter { users[$0] == nil }
        guard users.count + new.count <= usersMaximum else {
            return Completion(returnAddress: request.returnAddress, outcome: .failure(.tooManyWatched))
        }
        for user in request.users {
            if users[user] == nil { unread.append(user) }
            users[user, default: Watched()].subscribers.insert(request.subscriber)
            bySubscriber[request.subscriber, default: []].insert(user)
        }
        guard isRead(request) else {
            pending.append(request)
            return nil
        }
        return Completion(returnAddress: request.returnAddress, outcome: .watching)
    }

    private func isRead(_ request: WatchRequest) -> Bool {
        // A user who was unsubscribed from meanwhile needs no reading.
        request.users.allSatisfy { users[$0].map { $0.reading != nil } ?? true }
    }

    mutating func unwatch(_ user: UserID, _ subscriber: Subscriber) {
        bySubscriber[subscriber]?.remove(user)
        if bySubscriber[subscriber]?.isEmpty == true { bySubscriber[subscriber] = nil }
        users[user]?.subscribers.remove(subscriber)
        if users[user]?.subscribers.isEmpty == true { users[user] = nil }
    }

    /// The connection is gone, and nobody is there to be told anything.
    mutating func leave(_ subscriber: Subscriber) {
        for user in bySubscriber[subscriber] ?? [] { unwatch(user, subscriber) }
        pending.removeAll { $0.subscriber == subscriber }
    }

    // MARK: Time

    /// When the next waiting request's time is up.
    var nextDeadline: ContinuousClock.Instant? { pending.lazy.map(\.deadline).min() }

    /// Gives up the requests whose deadline has passed. Who was never read is not watched for them any more.
    mutating func expire(at now: ContinuousClock.Instant) -> [Completion] {
        guard let next = nextDeadline, next <= now else { return [] }
        return giveUp(.cannotWatch) { $0.deadline <= now }
    }

    /// A row of the user holds a value out of range. Requests that wait for it fail; who watches the user already is
    /// told when the row can be read again.
    mutating func fail(_ user: UserID, _ error: EngineError) {
        refused += giveUp(error) { $0.users.contains(user) }
    }

    private mutating func giveUp(_ error: EngineError, _ isOver: (WatchRequest) -> Bool) -> [Completion] {
        let over = pending.filter(isOver)
        pending.removeAll(where: isOver)
        for request in over {
            for user in request.users where users[user]?.reading == nil && !isPending(user, request.subscriber) {
                unwatch(user, request.subscriber)
            }
        }
        return WatchList.refusals(over, error)
    }

    /// Another request of the same connection waits for the user.
    private func isPending(_ user: UserID, _ subscriber: Subscriber) -> Bool {
        pending.contains { $0.subscriber == subscriber && $0.users.contains(user) }
    }

    /// Nobody will read any more.
    mutating func refuseAll() -> [Completion] {
        defer { pending.removeAll() }
        return WatchList.refusals(pending, .cannotWatch)
    }

    private static func refusals(_ requests: [WatchRequest], _ error: EngineError) -> [Completion] {
        requests.map { Completion(returnAddress: $0.returnAddress, outcome: .failure(error)) }
    }

    // MARK: Reading

    /// Users to read next, each with the period where its row is expected; they count as read from now on, unless
    /// they are put back.
    mutating func takeUnread(atMost count: Int) -> [(user: UserID, period: String)] {
        var taken: [(UserID, String)] = []
        while taken.count < count, let user = unread.popFirst() {
            guard let watched = users[user] else { continue }
            taken.append((user, watched.reading?.snapshot.period.label ?? ""))
        }
        return taken
    }

    /// They could not be read after all.
    mutating func putBack(_ taken: [(user: UserID, period: String)]) {
        for (user, _) in taken.reversed() { unread.prepend(user) }
    }

    /// They have changed, or may have.
    mutating func markUnread(_ changed: some Sequence<UserID>) {
        unread.append(contentsOf: changed)
    }

    mutating func markAllUnread() {
        unread = Deque(users.keys)
    }

    /// Users whose snapshot time has changed.
    func due(at now: Instant) -> [UserID] {
        users.compactMap { user, watched in
            watched.reading?.changesAt.map { $0 <= now } == true ? user : nil
        }
    }

    /// All who were read, each with its fingerprint.
    var fingerprints: [(user: UserID, fingerprint: String)] {
        users.compactMap { user, watched in watched.reading.map { (user, $0.fingerprint) } }
    }

    /// Takes in what was read about a user.
    ///
    /// - Returns: whom to tell, where it reads otherwise than before.
    mutating func learn(_ user: UserID, _ reading: Reading) -> [Publication] {
        guard let watched = users[user] else { return [] }
        users[user]?.reading = reading
        guard let before = watched.reading, !reading.snapshot.hasSameUsage(as: before.snapshot) else { return [] }
        let answer = reading.snapshot.usage(of: user)
        return watched.subscribers.map { Publication(subscriber: $0, answer: answer) }
    }

    /// The requests that have all they waited for, and those that never will.
    mutating func takeConfirmed() -> [Completion] {
        var confirmed = refused
        refused.removeAll()
        var waiting: [WatchRequest] = []
        for request in pending {
            if isRead(request) {
                confirmed.append(Completion(returnAddress: request.returnAddress, outcome: .watching))
            } else {
                waiting.append(request)
            }
        }
        pending = waiting
        return confirmed
    }
}
