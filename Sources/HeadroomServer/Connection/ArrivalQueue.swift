import Synchronization

/// What other threads bring to an event loop: the first of several schedules a hop, which takes the others along.
final class ArrivalQueue<Arrival: Sendable>: Sendable {
    private struct State {
        var arrivals: [Arrival] = []
        var isClosed = false
    }

    private let state = Mutex(State())

    /// Drops the arrival once the queue is closed.
    ///
    /// - Parameter hop: schedules `takeAll` on the event loop. Called under the lock: between the lock and the hop, the
    ///   queue could be closed and the event loop be gone, which must not be asked for anything then.
    func append(_ arrival: Arrival, hop: () -> Void) {
        state.withLock {
            guard !$0.isClosed else { return }
            $0.arrivals.append(arrival)
            if $0.arrivals.count == 1 { hop() }
        }
    }

    /// On the event loop.
    func takeAll() -> [Arrival] {
        state.withLock {
            let arrivals = $0.arrivals
            $0.arrivals = []
            return arrivals
        }
    }

    /// After this, no hop is scheduled. Call it before the event loop ends.
    func close() {
        state.withLock { $0.isClosed = true }
    }
}
