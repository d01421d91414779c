import Synchronization

/// A queue from any thread to an event loop. Appending to an empty queue schedules one task on the event loop, which
/// removes everything that is queued by then.
final class EventLoopQueue<Element: Sendable>: Sendable {
    private struct State {
        var elements: [Element] = []
        var isClosed = false
    }

    private let state = Mutex(State())

    /// Drops the element once the queue is closed.
    ///
    /// - Parameter schedule: schedules the task that calls `removeAll`, and must not call it itself. It runs under the
    ///   lock, so that it never uses an event loop that has ended after `close()`.
    func append(_ element: Element, schedule: () -> Void) {
        state.withLock {
            guard !$0.isClosed else { return }
            $0.elements.append(element)
            if $0.elements.count == 1 { schedule() }
        }
    }

    /// Removes all elements. It is called on the event loop.
    func removeAll() -> [Element] {
        state.withLock {
            let elements = $0.elements
            $0.elements = []
            return elements
        }
    }

    /// After this, no task is scheduled. Call it before the event loop ends.
    func close() {
        state.withLock { $0.isClosed = true }
    }
}
