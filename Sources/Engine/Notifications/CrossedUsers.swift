import Synchronization
import Usage

/// Users whose last answer moved one of their allowances into a higher tier, until their notifications are recorded.
///
/// Entries are hints. The next sweep of the table finds a user that is lost, or for whom there is no room.
package final class CrossedUsers: Sendable {
    /// The most users, which take at most 1 MB.
    private static let capacity = 16_384

    private let users = Mutex<Set<UserID>>([])

    package init() {}

    /// Adds the users of such answers, on the lane's thread. It takes the lock only if there is one.
    func add(_ completions: [Completion]) {
        var crossed: [UserID] = []
        for completion in completions {
            if case .answer(let answer) = completion.outcome, answer.isCrossing { crossed.append(answer.user) }
        }
        if !crossed.isEmpty { add(crossed) }
    }

    package func add(_ crossed: some Sequence<UserID>) {
        users.withLock { users in
            for user in crossed where users.count < CrossedUsers.capacity { users.insert(user) }
        }
    }

    /// Removes some users, at most `maximum`.
    package func take(atMost maximum: Int) -> [UserID] {
        users.withLock { users in
            if users.count <= maximum {
                defer { users = [] }
                return Array(users)
            }
            let taken = Array(users.prefix(maximum))
            users.subtract(taken)
            return taken
        }
    }
}
