import DequeModule
import Usage

/// The users whose changes connections subscribe to, with the newest observation of each. It does no I/O; only the
/// change publisher's thread uses it.
///
/// A user is read once for all subscribers, and each change is published once to each of them.
struct ChangeSubscriberList {
    /// A user's state as it was read from the database.
    struct Observation: Equatable {
        var snapshot: UsageSnapshot
        /// A text that differs once the user's rows are written again.
        var fingerprint: String
        /// When the snapshot changes although no row does; nil means never.
        var changesAt: Instant?
    }

    private struct Entry {
        var subscribers: Set<ChangeSubscriber> = []
        /// The newest observation; nil until the user is read for the first time.
        var observation: Observation?
    }

    private var users: [UserID: Entry] = [:]
    private var bySubscriber: [ChangeSubscriber: Set<UserID>] = [:]
    /// The requests that wait until each of their users is read for the first time.
    private var pending: [SubscribeRequest] = []
    /// The outcomes of requests for a user that cannot be read.
    private var failed: [Completion] = []
    /// The users to read, because they were never read or have changed. Some may have no subscriber any more.
    private var stale: Deque<UserID> = []
    private let usersMaximum: Int

    /// - Parameter usersMaximum: the most users with subscribers, about 500 bytes each.
    init(usersMaximum: Int) {
        self.usersMaximum = usersMaximum
    }

    var isEmpty: Bool { users.isEmpty && pending.isEmpty }
    var count: Int { users.count }
    var hasPending: Bool { !pending.isEmpty }
    var hasStale: Bool { !stale.isEmpty }

    // MARK: Subscribing

    /// - Returns: the outcome if it is known already.
    mutating func subscribe(_ request: SubscribeRequest) -> Completion? {
        let new = request.users.filter { users[$0] == nil }
        guard users.count + new.count <= usersMaximum else {
            return Completion(returnAddress: request.returnAddress, outcome: .failure(.tooManySubscribedUsers))
        }
        for user in request.users {
            if users[user] == nil { stale.append(user) }
            users[user, default: Entry()].subscribers.insert(request.subscriber)
            bySubscriber[request.subscriber, default: []].insert(user)
        }
        guard isRead(request) else {
            pending.append(request)
            return nil
        }
        return Completion(returnAddress: request.returnAddress, outcome: .subscribed)
    }

    private func isRead(_ request: SubscribeRequest) -> Bool {
        // A user that lost its subscribers meanwhile need not be read.
        request.users.allSatisfy { users[$0].map { $0.observation != nil } ?? true }
    }

    mutating func unsubscribe(_ user: UserID, _ subscriber: ChangeSubscriber) {
        bySubscriber[subscriber]?.remove(user)
        if bySubscriber[subscriber]?.isEmpty == true { bySubscriber[subscriber] = nil }
        users[user]?.subscribers.remove(subscriber)
        if users[user]?.subscribers.isEmpty == true { users[user] = nil }
    }

    /// Removes a closed connection. Its requests need no outcome.
    mutating func disconnect(_ subscriber: ChangeSubscriber) {
        for user in bySubscriber[subscriber] ?? [] { unsubscribe(user, subscriber) }
        pending.removeAll { $0.subscriber == subscriber }
    }

    // MARK: Time

    /// The earliest deadline of a waiting request.
    var nextDeadline: ContinuousClock.Instant? { pending.lazy.map(\.deadline).min() }

    /// Fails the requests whose deadline has passed, and removes their subscriptions to users that were never read.
    mutating func expire(at now: ContinuousClock.Instant) -> [Completion] {
        guard let next = nextDeadline, next <= now else { return [] }
        return giveUp(.subscribeFailed) { $0.deadline <= now }
    }

    /// Fails the requests that wait for a user whose row cannot be read. Existing subscribers get the next change once
    /// it can be read again.
    mutating func fail(_ user: UserID, _ error: EngineError) {
        failed += giveUp(error) { $0.users.contains(user) }
    }

    private mutating func giveUp(_ error: EngineError, _ isOver: (SubscribeRequest) -> Bool) -> [Completion] {
        let over = pending.filter(isOver)
        pending.removeAll(where: isOver)
        for request in over {
            for user in request.users where users[user]?.observation == nil && !isPending(user, request.subscriber) {
                unsubscribe(user, request.subscriber)
            }
        }
        return ChangeSubscriberList.failures(over, error)
    }

    /// Whether another request of the same connection waits for the user.
    private func isPending(_ user: UserID, _ subscriber: ChangeSubscriber) -> Bool {
        pending.contains { $0.subscriber == subscriber && $0.users.contains(user) }
    }

    /// Fails all waiting requests, because the publisher stops.
    mutating func failAll() -> [Completion] {
        defer { pending.removeAll() }
        return ChangeSubscriberList.failures(pending, .subscribeFailed)
    }

    private static func failures(_ requests: [SubscribeRequest], _ error: EngineError) -> [Completion] {
        requests.map { Completion(returnAddress: $0.returnAddress, outcome: .failure(error)) }
    }

    // MARK: Reading

    /// Removes the next users to read, each with the period of its newest row. `putBack` adds them again if reading
    /// fails.
    mutating func takeStale(atMost count: Int) -> [(user: UserID, period: String)] {
        var taken: [(UserID, String)] = []
        while taken.count < count, let user = stale.popFirst() {
            guard let entry = users[user] else { continue }
            taken.append((user, entry.observation?.snapshot.period.label ?? ""))
        }
        return taken
    }

    mutating func putBack(_ taken: [(user: UserID, period: String)]) {
        for (user, _) in taken.reversed() { stale.prepend(user) }
    }

    /// Marks users to be read, because they have changed, or may have.
    mutating func markStale(_ changed: some Sequence<UserID>) {
        stale.append(contentsOf: changed)
    }

    mutating func markAllStale() {
        stale = Deque(users.keys)
    }

    /// The users whose snapshot has changed by the passing of time.
    func due(at now: Instant) -> [UserID] {
        users.compactMap { user, entry in
            entry.observation?.changesAt.map { $0 <= now } == true ? user : nil
        }
    }

    /// All users that were read, with their fingerprints.
    var fingerprints: [(user: UserID, fingerprint: String)] {
        users.compactMap { user, entry in entry.observation.map { (user, $0.fingerprint) } }
    }

    /// - Returns: one publication for each subscriber if the visible state has changed.
    mutating func update(_ user: UserID, _ observation: Observation) -> [Publication] {
        guard let entry = users[user] else { return [] }
        users[user]?.observation = observation
        guard let before = entry.observation, !observation.snapshot.hasSameUsage(as: before.snapshot) else { return [] }
        let answer = observation.snapshot.usage(of: user)
        return entry.subscribers.map { Publication(subscriber: $0, answer: answer) }
    }

    /// Removes the requests that are complete: all users were read, or one of them cannot be read.
    mutating func takeCompletions() -> [Completion] {
        var completions = failed
        failed.removeAll()
        var waiting: [SubscribeRequest] = []
        for request in pending {
            if isRead(request) {
                completions.append(Completion(returnAddress: request.returnAddress, outcome: .subscribed))
            } else {
                waiting.append(request)
            }
        }
        pending = waiting
        return completions
    }
}
