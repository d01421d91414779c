import Synchronization

/// How much is under way, and whether more may begin.
final class Admission: Sendable {
    private struct State {
        var underWay = 0
        var isClosed = false
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let maximum: Int
    private let state = Mutex(State())

    init(maximum: Int) {
        self.maximum = maximum
    }

    var isClosed: Bool { state.withLock { $0.isClosed } }

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
        let waiter = state.withLock { state in
            state.underWay -= 1
            return state.underWay == 0 ? state.waiter.take() : nil
        }
        waiter?.resume()
    }

    /// Lets nothing more in, and waits until nothing is under way.
    func close(within limit: Duration) async {
        let timer = Task { [weak self] in
            try await Task.sleep(for: limit)
            self?.state.withLock { $0.waiter.take() }?.resume()
        }
        await withCheckedContinuation { continuation in
            let isDone = state.withLock { state in
                state.isClosed = true
                guard state.underWay > 0, state.waiter == nil else { return true }
                state.waiter = continuation
                return false
            }
            if isDone { continuation.resume() }
        }
        timer.cancel()
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
