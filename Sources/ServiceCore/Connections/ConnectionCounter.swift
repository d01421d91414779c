import Synchronization

/// Counts connections, in total and by network, over all event loops.
package final class ConnectionCounter: Sendable {
    package struct Snapshot: Sendable {
        package var current = 0
        package var total: UInt64 = 0
        package var refused: UInt64 = 0
    }

    private struct State {
        var counts = Snapshot()
        /// Networks without connections are removed.
        var ofNetwork: [PeerNetwork: Int] = [:]
        var refusals = 0
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    package var snapshot: Snapshot { state.withLock { $0.counts } }

    package enum Admission {
        case admitted
        /// The connection is counted as refused, as `tooManyFromNetwork` is.
        case tooMany
        case tooManyFromNetwork
    }

    /// - Parameter network: nil has no limit.
    package func add(
        from network: PeerNetwork? = nil,
        atMost maximum: Int,
        ofNetworkAtMost networkMaximum: Int = .max
    ) -> Admission {
        state.withLock { state in
            let ofNetwork = network.map { state.ofNetwork[$0, default: 0] } ?? 0
            guard state.counts.current < maximum, ofNetwork < networkMaximum else {
                state.counts.refused += 1
                return state.counts.current < maximum ? .tooManyFromNetwork : .tooMany
            }
            state.counts.current += 1
            state.counts.total += 1
            if let network { state.ofNetwork[network] = ofNetwork + 1 }
            return .admitted
        }
    }

    package func remove(from network: PeerNetwork? = nil) {
        let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
            state.counts.current -= 1
            if let network, let ofNetwork = state.ofNetwork[network] {
                state.ofNetwork[network] = ofNetwork > 1 ? ofNetwork - 1 : nil
            }
            guard state.counts.current == 0 else { return nil }
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    /// How many refused connections may linger at a time, so that their peers can read the error. Their file
    /// descriptors are not limited otherwise.
    static let refusalsMaximum = 64

    /// Returns whether one more refused connection may linger. `endRefusal` must be called after it.
    package func beginRefusal() -> Bool {
        state.withLock { state in
            guard state.refusals < ConnectionCounter.refusalsMaximum else { return false }
            state.refusals += 1
            return true
        }
    }

    package func endRefusal() {
        state.withLock { $0.refusals -= 1 }
    }

    /// Waits until there are no connections, or until the timeout.
    package func waitUntilEmpty(timeout: Duration) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.waitUntilEmpty() }
            group.addTask { _ = try? await Task.sleep(for: timeout) }
            await group.next()
            group.cancelAll()
            self.stopWaiting()
        }
    }

    private func waitUntilEmpty() async {
        await withCheckedContinuation { continuation in
            let isEmpty = state.withLock { state in
                // After the timeout `stopWaiting` may have run already, and nothing would resume the continuation.
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
