import Synchronization

/// How much is under way, and whether more may begin.
final class Admission: Sendable {
    private struct State {
        var underWay = 0
        var isClosed = false
        /// Who waits until nothing is under way, each for so long as it may.
        var waiters: [UInt64: Waiter] = [:]
        var lastWaiter: UInt64 = 0
    }

    private struct Waiter {
        let continuation: CheckedContinuation<Void, Never>
        var timer: Task<Void, any Error>?
    }

    private let maximum: Int
    private let state = Mutex(State())

    init(maximum: Int) {
        self.maximum = maximum
    }

    var isClosed: Bool { state.withLock { $0.isClosed } }
    var underWay: Int { state.withLock { $0.underWay } }
    var waiterCount: Int { state.withLock { $0.waiters.count } }

    /// Must be followed by `leave`.
    func enter() throws(HeadroomError) {
        let refusal = state.withLock { state -> HeadroomError? in
            if state.isClosed { return .shutDown }
            if state.underWay >= maximum { return .tooMany(maximum) }
            state.underWay += 1
            return nil
        }
        if let refusal { throw refusal }
    }

    /// For what belongs to something that was let in before; it is let in whatever else is so.
    func enterWithin() {
        state.withLock { $0.underWay += 1 }
    }

    func leave() {
        let waiters = state.withLock { state -> [Waiter] in
            state.underWay -= 1
            guard state.underWay == 0 else { return [] }
            defer { state.waiters = [:] }
            return Array(state.waiters.values)
        }
        for waiter in waiters {
            waiter.timer?.cancel()
            waiter.continuation.resume()
        }
    }

    /// Lets nothing more in, and waits until nothing is under way.
    func close(within limit: Duration) async {
        await withCheckedContinuation { continuation in
            let place = state.withLock { state -> UInt64? in
                state.isClosed = true
                guard state.underWay > 0 else { return nil }
                state.lastWaiter += 1
                state.waiters[state.lastWaiter] = Waiter(continuation: continuation)
                return state.lastWaiter
            }
            if let place { giveUp(place, after: limit) } else { continuation.resume() }
        }
    }

    private func giveUp(_ place: UInt64, after limit: Duration) {
        let timer = Task { [weak self] in
            try await Task.sleep(for: limit)
            self?.state.withLock { $0.waiters.removeValue(forKey: place) }?.continuation.resume()
        }
        let isWaiting = state.withLock { state in
            state.waiters[place]?.timer = timer
            return state.waiters[place] != nil
        }
        if !isWaiting { timer.cancel() }
    }
}

extension HeadroomError {
    fileprivate static func tooMany(_ maximum: Int) -> HeadroomError {
        HeadroomError(
            code: .tooManyRequests,
            message: "\(maximum) requests wait for their answers in this client; nothing was counted"
        )
    }
}
