import DequeModule
import Synchronization

/// A queue from any thread to an event loop. Appending to an empty queue schedules one task on the event loop, which
/// removes everything that is queued by then.
final class EventLoopQueue<Element: Sendable>: Sendable {
    private struct State {
        var elements: Deque<Element> = []
        var isClosed = false
    }

    private let state = Mutex(State())
    /// This is locked while a task is scheduled, so that no event loop is used that has ended after `close()`. With the
    /// lock of `state`, the event loop, which `schedule` wakes, would wait for it at once.
    private let scheduling = Mutex(())

    /// Drops the element once the queue is closed.
    ///
    /// - Parameter schedule: schedules the task that calls `removeAll`, and must not call `append` or `close` itself.
    func append(_ element: consuming Element, schedule: () -> Void) {
        // The element is moved, so that the event loop owns it alone.
        var moved = Optional(element)
        scheduling.withLock { _ in
            let isFirst = state.withLock {
                guard !$0.isClosed, let element = moved.take() else { return false }
                $0.elements.append(element)
                return $0.elements.count == 1
            }
            if isFirst { schedule() }
        }
    }

    /// Removes all elements. It is called on the event loop.
    func removeAll() -> Deque<Element> {
        state.withLock { exchange(&$0.elements, with: []) }
    }

    /// After this, no task is scheduled. Call it before the event loop ends.
    func close() {
        scheduling.withLock { _ in state.withLock { $0.isClosed = true } }
    }
}
