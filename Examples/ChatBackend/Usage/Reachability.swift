import HeadroomClient
import ServiceLifecycle
import Synchronization

/// Whether Headroom can be asked where users stand: one look a second for the whole process, however many pages are open.
final class Reachability: Service {
    private static let interval = Duration.seconds(1)

    private struct State {
        var isReachable = true
        var hasEnded = false
        var nextFollower = 0
        var followers: [Int: AsyncStream<Bool>.Continuation] = [:]
    }

    private let headroom: HeadroomClient
    private let deadline: Duration
    private let state = Mutex(State())

    init(_ headroom: HeadroomClient, deadline: Duration) {
        self.headroom = headroom
        self.deadline = deadline
    }

    var isReachable: Bool { state.withLock { $0.isReachable } }

    func run() async throws {
        try? await cancelWhenGracefulShutdown {
            while true {
                self.note(await self.look())
                try await Task.sleep(for: Reachability.interval)
            }
        }
        end()
    }

    /// A service whose database is away answers, and knows nothing of anybody.
    private func look() async -> Bool {
        guard let info = try? await headroom.info(deadline: deadline) else { return false }
        return info["database"] != "down"
    }

    private func note(_ isReachable: Bool) {
        state.withLock { state in
            guard state.isReachable != isReachable, !Task.isCancelled else { return }
            state.isReachable = isReachable
            for follower in state.followers.values { follower.yield(isReachable) }
        }
    }

    /// First as it is now, then each change; who reads slowly gets the newest. Ends when the chat shuts down.
    func changes() -> AsyncStream<Bool> {
        let (stream, continuation) = AsyncStream.makeStream(of: Bool.self, bufferingPolicy: .bufferingNewest(1))
        let follower: Int? = state.withLock { state in
            guard !state.hasEnded else { return nil }
            state.nextFollower += 1
            state.followers[state.nextFollower] = continuation
            continuation.yield(state.isReachable)
            return state.nextFollower
        }
        guard let follower else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { _ = $0.followers.removeValue(forKey: follower) }
        }
        return stream
    }

    private func end() {
        let followers = state.withLock { state in
            state.hasEnded = true
            return Array(state.followers.values)
        }
        // Outside of the lock, which their ends take.
        for follower in followers { follower.finish() }
    }
}
