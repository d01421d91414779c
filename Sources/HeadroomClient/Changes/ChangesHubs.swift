import Synchronization

/// Distributes the followed users over as many subscription connections as they need.
final class ChangesHubs: Sendable {
    private struct State {
        var hubs: [ChangesHub] = []
        var isClosed = false
    }

    private let state = Mutex(State())
    private let makeHub: @Sendable () -> ChangesHub

    /// A service accepts 1,024 subscriptions on a connection by default (`subscriptions-maximum`).
    static let usersPerConnection = 1_000

    init(_ makeHub: @escaping @Sendable () -> ChangesHub) {
        self.makeHub = makeHub
    }

    func follow(_ user: UserID) -> AsyncStream<UsageStatus> {
        state.withLock { state in
            if state.isClosed { return AsyncStream { $0.finish() } }
            let maximum = ChangesHubs.usersPerConnection
            if let hub = state.hubs.first(where: { $0.hasRoom(for: user, maximum: maximum) }) {
                return hub.follow(user)
            }
            let hub = makeHub()
            state.hubs.append(hub)
            return hub.follow(user)
        }
    }

    /// Ends all streams. Later ones end at once.
    func close() {
        let hubs = state.withLock { state in
            state.isClosed = true
            return state.hubs
        }
        for hub in hubs { hub.close() }
    }
}
