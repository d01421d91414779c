import Synchronization

/// A queue of results for an event loop, which any thread appends to. The first append to an empty queue schedules one task on
/// the event loop. That task takes everything that is queued by then.
final class ArrivalQueue<Arrival: Sendable>: Sendable {
    private struct State {
        var arrivals: [Arrival] = []
        var isClosed = false
    }

    private let state = Mutex(State())

    /// Drops the arrival once the queue is closed.
    ///
    /// - Parameter hop: schedules the task that calls `takeAll`; must not call it itself. It runs under the lock. Otherwise
    ///   `close()` could run before it, and it would use an event loop that has ended.
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
