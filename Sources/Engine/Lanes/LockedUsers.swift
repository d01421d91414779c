import DequeModule
import Usage

/// The users whose rows another session has locked, and their requests, which wait apart from those of all others. It
/// does no I/O; it is a part of `LaneQueue`.
///
/// A statement that needs a locked row waits until `lock_timeout`, and with it every user of the batch. So a lane
/// remembers the users that have made a batch wait, and does not put them into a batch of others again. It looks at
/// intervals whether their rows are still locked, without waiting for the lock. Once they are not, the users' requests
/// are executed in batches of their own, which wait briefly for a lock. A user whose rows were free for a while is
/// forgotten.
struct LockedUsers {
    private enum State {
        /// The requests wait until the lane looks at the rows again, at this instant. Can transition to: free.
        case locked(until: ContinuousClock.Instant)
        /// The rows were not locked when last seen. Can transition to: locked; the user is forgotten at this instant.
        case free(until: ContinuousClock.Instant)
    }

    private struct User {
        var state: State
        /// The time between two looks. It doubles each time that the rows are locked.
        var interval: Duration
        /// The user's requests, in the order of arrival.
        var requests: Deque<Waiting> = []
    }

    /// A request that waits, or that was refused.
    struct Waiting: Equatable {
        var request: Request
        /// The answer if the request is refused, or its deadline passes.
        var reason: EngineError

        var deadline: Deadline { request.deadline }
        /// The completion that refuses the request.
        var completion: Completion {
            Completion(returnAddress: request.returnAddress, outcome: .failure(reason))
        }
    }

    private var users: [UserID: User] = [:]
    /// The number of waiting requests.
    private(set) var count = 0
    /// The requests that may not wait. `expire` returns them.
    private var refused: [Waiting] = []
    private let countMaximum: Int
    private let firstInterval: Duration
    private let longestInterval: Duration
    private let memory: Duration

    /// The most users that are remembered. Requests of further users fail.
    private static let usersMaximum = 4_096

    /// - Parameters:
    ///   - countMaximum: the most requests that may wait; further ones are refused.
    ///   - requestTimeout: the time of which all others here are parts or multiples.
    init(countMaximum: Int, requestTimeout: Duration) {
        self.countMaximum = countMaximum
        firstInterval = requestTimeout / 40
        longestInterval = requestTimeout / 8
        memory = requestTimeout * 5
    }

    var isEmpty: Bool { users.isEmpty && refused.isEmpty }
    /// Whether a request has no outcome yet.
    var hasRequests: Bool { count > 0 || !refused.isEmpty }

    // MARK: Requests arrive

    /// Decides whether a request that the lane has taken is executed with those of other users.
    ///
    /// - Returns: false if it waits, or is refused.
    mutating func allows(_ request: Request) -> Bool {
        guard let user = users[request.user] else { return true }
        // A read waits for no lock, but it must not overtake the user's earlier requests.
        guard request.operation.mayWaitForLock || !user.requests.isEmpty else { return true }
        if count < countMaximum {
            users[request.user]?.requests.append(Waiting(request: request, reason: .busy))
            count += 1
        } else {
            refused.append(Waiting(request: request, reason: .busy))
        }
        return false
    }

    /// Adds requests that had no effect, because a session has locked their users' rows. Those of one user are in their
    /// order, and arrived before those that wait.
    ///
    /// - Parameter reason: the answer to requests whose deadline passes.
    mutating func add(_ locked: [Request], _ reason: EngineError, at now: ContinuousClock.Instant) {
        for request in locked.reversed() {
            if users[request.user] == nil {
                guard users.count < LockedUsers.usersMaximum else {
                    refused.append(Waiting(request: request, reason: reason))
                    continue
                }
                let until = now + firstInterval
                users[request.user] = User(state: .locked(until: until), interval: firstInterval)
            } else if case .free = users[request.user]?.state {
                markLocked(request.user, at: now)
            }
            users[request.user]?.requests.prepend(Waiting(request: request, reason: reason))
            count += 1
        }
    }

    private mutating func markLocked(_ user: UserID, at now: ContinuousClock.Instant) {
        guard let interval = users[user]?.interval else { return }
        let next = min(interval * 2, longestInterval)
        users[user]?.interval = next
        users[user]?.state = .locked(until: now + next)
    }

    // MARK: The lane executes them

    /// Takes users to look at, or requests of users whose rows are free, those that have waited longest first. Nil if
    /// there is nothing to do now.
    mutating func take(atMost limit: Int, at now: ContinuousClock.Instant) -> LaneQueue.Work? {
        var due: [UserID] = []
        var waiting: [(user: UserID, deadline: Deadline)] = []
        var forgotten: [UserID] = []
        for (user, entry) in users {
            switch (entry.state, entry.requests.first) {
            case (.locked(let until), _): if until <= now { due.append(user) }
            case (.free, let first?): waiting.append((user, first.deadline))
            case (.free(let until), nil): if until <= now { forgotten.append(user) }
            }
        }
        for user in forgotten { users[user] = nil }
        if !due.isEmpty { return .look(Array(due.prefix(limit))) }
        waiting.sort { $0.deadline < $1.deadline }
        var batch: [BatchedRequest] = []
        for (user, _) in waiting {
            while batch.count < limit, let request = users[user]?.requests.first?.request {
                guard let batched = BatchedRequest(request) else {
                    guard batch.isEmpty, let unbatched = UnbatchedRequest(request) else { break }
                    removeFirst(of: user)
                    return .apart(.unbatched(unbatched))
                }
                batch.append(batched)
                removeFirst(of: user)
            }
        }
        return batch.isEmpty ? nil : .apart(.batch(batch))
    }

    private mutating func removeFirst(of user: UserID) {
        users[user]?.requests.removeFirst()
        count -= 1
    }

    /// Notes what the lane has seen of the rows of these users.
    mutating func note(_ seen: [UserID], stillLocked locked: Set<UserID>, at now: ContinuousClock.Instant) {
        for user in seen {
            if locked.contains(user) {
                markLocked(user, at: now)
            } else {
                users[user]?.state = .free(until: now + memory)
            }
        }
    }

    /// When `take` has something to do, if nothing else happens before.
    var nextInstant: ContinuousClock.Instant? {
        users.values.lazy.map { user in
            switch user.state {
            case .locked(let until), .free(let until): until
            }
        }.min()
    }

    // MARK: Time and other lanes

    /// Removes and returns the requests whose deadline has passed, and those that were refused.
    mutating func expire(at now: Deadline) -> [Waiting] {
        defer { refused = [] }
        for (user, entry) in users {
            var rest = entry.requests
            while let first = rest.first, first.deadline <= now { refused.append(rest.removeFirst()) }
            guard rest.count < entry.requests.count else { continue }
            count -= entry.requests.count - rest.count
            users[user]?.requests = rest
        }
        return refused
    }

    var nextDeadline: Deadline? {
        refused.isEmpty ? users.values.lazy.compactMap { $0.requests.first?.deadline }.min() : Deadline(.now)
    }

    /// Forgets users who belong to another lane from now on, and returns their requests.
    mutating func remove(where leaves: (UserID) -> Bool) -> [Request] {
        var removed: [Request] = []
        for (user, entry) in users where leaves(user) {
            removed += entry.requests.lazy.map(\.request)
            users[user] = nil
        }
        count -= removed.count
        return removed
    }
}

extension EngineOperation {
    /// Whether a session that has locked the user's rows can make the operation wait.
    fileprivate var mayWaitForLock: Bool {
        switch self {
        case .batched(.check, _), .batched(.usage, _), .unbatched(.usageInPeriod), .unbatched(.allowances),
            .unbatched(.history):
            false
        case .batched, .unbatched(.change): true
        }
    }
}
