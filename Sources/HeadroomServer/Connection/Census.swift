import Synchronization

/// How many connections there are, over all event loops.
final class Census: Sendable {
    struct Snapshot: Sendable {
        var current = 0
        var total: UInt64 = 0
        var refused: UInt64 = 0
    }

    private struct State {
        var counts = Snapshot()
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    var snapshot: Snapshot { state.withLock { $0.counts } }

    /// False, and counted as refused, when there are as many as may be.
    func enter(atMost maximum: Int) -> Bool {
        state.withLock {
            guard $0.counts.current < maximum else {
                $0.counts.refused += 1
                return false
            }
            $0.counts.current += 1
            $0.counts.total += 1
            return true
        }
    }

    func leave() {
        let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
            state.counts.current -= 1
            guard state.counts.current == 0 else { return nil }
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    /// Returns when nobody is left, or when the time is up.
    func emptied(within limit: Duration) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.emptied() }
            group.addTask { _ = try? await Task.sleep(for: limit) }
            await group.next()
            group.cancelAll()
            self.stopWaiting()
        }
    }

    private func emptied() async {
        await withCheckedContinuation { continuation in
            let isEmpty = state.withLock { state in
                // Time may be up before this began to wait: then nobody would come to end it.
                guard state.counts.current > 0, !Task.isCancelled else { return true }
                state.waiter = continuation
                return false
            }
            if isEmpty { continuation.resume() }
        }
    }

    private func stopWaiting() {
        let waiter = state.withLock { state in
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }
}
