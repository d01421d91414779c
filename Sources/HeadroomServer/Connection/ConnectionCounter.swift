import Synchronization

/// How many connections there are, in all and from each network, over all event loops.
package final class ConnectionCounter: Sendable {
    package struct Snapshot: Sendable {
        package var current = 0
        package var total: UInt64 = 0
        package var refused: UInt64 = 0
    }

    private struct State {
        var counts = Snapshot()
        /// Only of networks that somebody is connected from.
        var ofNetwork: [PeerNetwork: Int] = [:]
        var refusals = 0
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    package var snapshot: Snapshot { state.withLock { $0.counts } }

    enum Admission {
        case admitted
        /// Counted as refused, as is the next: there are as many as may be.
        case tooMany
        case tooManyFromNetwork
    }

    /// - Parameter network: nil is not counted by.
    func enter(
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

    func leave(from network: PeerNetwork? = nil) {
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

    /// Refused connections that are kept open at a time, so that their peers can read why they were refused. Each has a
    /// descriptor that no other limit counts.
    static let refusalsMaximum = 64

    /// Whether one more refused connection may be kept open; `endRefusal` gives its place back.
    func beginRefusal() -> Bool {
        state.withLock { state in
            guard state.refusals < ConnectionCounter.refusalsMaximum else { return false }
            state.refusals += 1
            return true
        }
    }

    func endRefusal() {
        state.withLock { $0.refusals -= 1 }
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
