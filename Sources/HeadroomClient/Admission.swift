import Synchronization

/// Limits the requests under way, and lets a shutdown wait for them.
final class Admission: Sendable {
    private struct State {
        var underWay = 0
        var isClosed = false
        /// Callers of `close`, which wait until nothing is under way.
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
        let error = state.withLock { state -> HeadroomError? in
            if state.isClosed { return .shutDown }
            if state.underWay >= maximum { return .tooMany(maximum) }
            state.underWay += 1
            return nil
        }
        if let error { throw error }
    }

    /// Admits work that belongs to an admitted request, regardless of the limit and of a shutdown.
    func enterNested() {
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

    /// Admits nothing more, and waits until nothing is under way.
    ///
    /// - Parameter limit: how long to wait at most.
    func close(within limit: Duration) async {
        await withCheckedContinuation { continuation in
            let waiter = state.withLock { state -> UInt64? in
                state.isClosed = true
                guard state.underWay > 0 else { return nil }
                state.lastWaiter += 1
                state.waiters[state.lastWaiter] = Waiter(continuation: continuation)
                return state.lastWaiter
            }
            if let waiter { scheduleTimeout(of: waiter, after: limit) } else { continuation.resume() }
        }
    }

    private func scheduleTimeout(of waiter: UInt64, after limit: Duration) {
        let timer = Task { [weak self] in
            try await Task.sleep(for: limit)
            self?.state.withLock { $0.waiters.removeValue(forKey: waiter) }?.continuation.resume()
        }
        let isWaiting = state.withLock { state in
            state.waiters[waiter]?.timer = timer
            return state.waiters[waiter] != nil
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
